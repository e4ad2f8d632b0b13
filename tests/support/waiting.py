"""How long a test waits for another process before it fails: a limit for one that hangs, not a measure of speed."""

from __future__ import annotations

# Seconds. On two slow cores, which eight other processes used as well, a build on Spark took 187.
HUNG = 600.0
