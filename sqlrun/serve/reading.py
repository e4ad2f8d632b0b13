"""Answers that read files for one request, with limits on concurrent and waiting reads. Shell: the tick's files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anyio import CapacityLimiter, to_thread

from sqlrun.errors import EngineError
from sqlrun.serve.answers import Answer, problem

# Maximum numbers of concurrent reads and of waiting reads.
READING = 2
MOST_WAITING = 32

_reading = CapacityLimiter(READING)


async def read_files(make: Callable[..., Answer], *values: Any) -> Answer:
    """Return the answer of `make`, run in a thread; status 503 if too many reads wait or the files can't be read."""
    if _reading.statistics().tasks_waiting >= MOST_WAITING:
        return problem(503, "too many tables are being read; try again", ((b"retry-after", b"1"),))
    try:
        return await to_thread.run_sync(make, *values, limiter=_reading)
    except EngineError:
        return problem(503, "the warehouse can't be read at the moment", ((b"retry-after", b"5"),))
