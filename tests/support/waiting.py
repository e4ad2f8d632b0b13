"""How long a test waits for another process before it fails: a limit for one that hangs, not a measure of speed.

It doesn't suit a process that ends of its own accord earlier: a test that waits for its death could no longer fail.
"""

from __future__ import annotations

import time
from collections.abc import Callable

# Seconds. On two slow cores, beside other tests, a build on Spark took more than 200.
HUNG = 600.0


def wait_until(holds: Callable[[], object], complaint: str) -> None:
    """Return as soon as a condition holds. Raises: AssertionError with the complaint if it never does."""
    end = time.monotonic() + HUNG
    while not holds():
        assert time.monotonic() < end, complaint
        time.sleep(0.02)
