"""The expert's Structured Streaming job, `benchmarks/expert.py`, as a warm process."""
