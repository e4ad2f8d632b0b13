"""Answers that are read from files for one request: few at once, and few that wait. Shell: the tick's files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anyio import CapacityLimiter, to_thread

from sqlrun.errors import EngineError
from sqlrun.serve.answers import Answer, problem

# Maximum number of reads at once, and of those that wait.
READING = 2
MOST_WAITING = 32

_reading = CapacityLimiter(READING)


async def read_files(make: Callable[..., Answer], *values: Any) -> Answer:
    """Return what `make` answers, beside the loop; 503 where too many wait or the files can't be read."""
    if _reading.statistics().tasks_waiting >= MOST_WAITING:
        return problem(503, "too many tables are being read; ask again", ((b"retry-after", b"1"),))
    try:
        return await to_thread.run_sync(make, *values, limiter=_reading)
    except EngineError:
        return problem(503, "the warehouse can't be read just now", ((b"retry-after", b"5"),))
