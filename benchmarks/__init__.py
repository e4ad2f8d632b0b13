"""The cost of a tick, by length of history and compared with rivals: `python -m benchmarks.tick --help`."""
