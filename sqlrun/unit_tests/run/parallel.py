"""Unit tests that two processes share. Shell: processes."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import BinaryIO

from sqlrun.project import UnitTest
from sqlrun.runtime import fork
from sqlrun.runtime.disk_cache import Cache
from sqlrun.unit_tests.run.results import TestResult

# Fewer tests are done sooner than a second DuckDB is opened.
FEW = 24
Run = Callable[[Sequence[UnitTest]], Generator[TestResult, None, None]]


def shared(tests: Sequence[UnitTest], run: Run, cache: Cache | None) -> Generator[TestResult, None, None]:
    """Run tests, in order; a fork runs the second half where that pays, and `cache` learns what the fork's found out.

    A test that the fork didn't answer because it ended is an error.
    """
    if len(tests) < FEW or not fork.may_fork():
        yield from run(tests)
        return
    half = middle([weight(test) for test in tests])
    with fork.begun(partial(_tell, tests[half:], run, cache)) as other:
        yield from run(tests[:half])
        yield from _heard(other, tests[half:], cache)


def weight(test: UnitTest) -> int:
    """Guess what a test costs, in queries run once: a tick is several, and raw lines take a long query to read."""
    lines = any(given.lines is not None for given in test.given)
    return (1 + 3 * len(test.steps)) * (3 if lines else 1)


def middle(weights: Sequence[int]) -> int:
    """Return how many of the first weigh half of all, or a little more; never all of them.

    >>> middle([1, 1, 1, 1, 1]), middle([1, 1, 1, 9]), middle([9, 1, 1, 1])
    (3, 3, 1)
    """
    passed, total = 0, sum(weights)
    for place, each in enumerate(weights[:-1], 1):
        passed += each
        if 2 * passed >= total:
            return place
    return len(weights) - 1


def _tell(tests: Sequence[UnitTest], run: Run, cache: Cache | None, pipe: BinaryIO) -> None:
    """Do the fork's part: write each result as it comes, then what the cache has learnt."""
    mark = cache.mark() if cache else 0
    with closing(run(tests)) as running:
        for result in running:
            pickle.dump(result, pipe)
            pipe.flush()
    pickle.dump(cache.since(mark) if cache else b"", pipe)


def _heard(other: fork.Fork, tests: Sequence[UnitTest], cache: Cache | None) -> Generator[TestResult, None, None]:
    """Yield the fork's results as they come, and errors in place of those that don't."""
    for number in range(len(tests)):
        try:
            result = pickle.load(other.told)
        except (EOFError, pickle.UnpicklingError):
            why = f"the process that was to run it ended before ({_said(other.wait())})"
            for left in tests[number:]:
                yield TestResult(left.name, left.model, left.place, "error", 0.0, message=why)
            return
        yield result
    with suppress(EOFError, pickle.UnpicklingError):
        learned = pickle.load(other.told)
        if cache is not None:
            cache.learn(learned)
    other.wait()


def _said(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
