"""Unit tests split between two processes. Shell: processes."""

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

# Fewer tests finish before a second DuckDB has started.
FEW = 24
Run = Callable[[Sequence[UnitTest]], Generator[TestResult, None, None]]


def shared(tests: Sequence[UnitTest], run: Run, cache: Cache | None) -> Generator[TestResult, None, None]:
    """Run tests, in order; a fork runs the second half if that pays off, and its cache entries go to `cache`.

    A test without a result, because the fork ended early, is an error.
    """
    if len(tests) < FEW or not fork.may_fork():
        yield from run(tests)
        return
    half = middle([weight(test) for test in tests])
    with fork.begun(partial(_send_results, tests[half:], run, cache)) as other:
        yield from run(tests[:half])
        yield from _received(other, tests[half:], cache)


def weight(test: UnitTest) -> int:
    """Return the estimated cost of a test in runs of a query: a tick takes several, and raw lines a long one."""
    lines = any(given.lines is not None for given in test.given)
    return (1 + 3 * len(test.steps)) * (3 if lines else 1)


def middle(weights: Sequence[int]) -> int:
    """Return how many of the first weights have half of the sum or slightly more; never all of them.

    >>> middle([1, 1, 1, 1, 1]), middle([1, 1, 1, 9]), middle([9, 1, 1, 1])
    (3, 3, 1)
    """
    passed, total = 0, sum(weights)
    for place, each in enumerate(weights[:-1], 1):
        passed += each
        if 2 * passed >= total:
            return place
    return len(weights) - 1


def _send_results(tests: Sequence[UnitTest], run: Run, cache: Cache | None, pipe: BinaryIO) -> None:
    """Run the fork's half: write each result when it is ready, then the new cache entries."""
    mark = cache.mark() if cache else 0
    with closing(run(tests)) as running:
        for result in running:
            pickle.dump(result, pipe)
            pipe.flush()
    pickle.dump(cache.since(mark) if cache else b"", pipe)


def _received(other: fork.Fork, tests: Sequence[UnitTest], cache: Cache | None) -> Generator[TestResult, None, None]:
    """Yield the fork's results when they arrive, and errors for missing ones."""
    for number in range(len(tests)):
        try:
            result = pickle.load(other.output)
        except (EOFError, pickle.UnpicklingError):
            why = f"the process for this test ended early ({_exit_text(other.wait())})"
            for left in tests[number:]:
                yield TestResult(left.name, left.model, left.place, "error", 0.0, message=why)
            return
        yield result
    with suppress(EOFError, pickle.UnpicklingError):
        learned = pickle.load(other.output)
        if cache is not None:
            cache.learn(learned)
    other.wait()


def _exit_text(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
