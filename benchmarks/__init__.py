"""What a tick costs, by history and beside what others would write: `python -m benchmarks.tick --help`."""
