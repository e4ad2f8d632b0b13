"""Unit tests that two processes share. Shell: processes."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
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
    source, target = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(source)
        _tell(target, tests[half:], run, cache)
    os.close(target)
    ended: list[int] = []
    try:
        with os.fdopen(source, "rb") as told:
            yield from run(tests[:half])
            yield from _heard(told, tests[half:], lambda: _wait(process, ended), cache)
    finally:
        if not ended:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            _wait(process, ended)


def weight(test: UnitTest) -> int:
    """Guess what a test costs, in queries run once: a tick is several, and raw lines take a long query to read."""
    lines = any(given.lines is not None for given in test.given)
    return (1 + 3 * len(test.steps)) * (3 if lines else 1)


def middle(weights: Sequence[int]) -> int:
    """Tell how many of the first weigh half of all, or a little more; never all of them.

    >>> middle([1, 1, 1, 1, 1]), middle([1, 1, 1, 9]), middle([9, 1, 1, 1])
    (3, 3, 1)
    """
    passed, total = 0, sum(weights)
    for place, each in enumerate(weights[:-1], 1):
        passed += each
        if 2 * passed >= total:
            return place
    return len(weights) - 1


def _tell(target: int, tests: Sequence[UnitTest], run: Run, cache: Cache | None) -> None:
    """Do the fork's part, and end it: nothing of the parent's is left to run, be it a handler or a buffer."""
    status = 1
    try:
        mark = cache.mark() if cache else 0
        with os.fdopen(target, "wb") as pipe, closing(run(tests)) as running:
            for result in running:
                pickle.dump(result, pipe)
                pipe.flush()
            pickle.dump(cache.since(mark) if cache else b"", pipe)
        status = 0
    finally:
        os._exit(status)


def _heard(
    told: BinaryIO, tests: Sequence[UnitTest], wait: Callable[[], int], cache: Cache | None
) -> Generator[TestResult, None, None]:
    """Give the fork's results as they come, and errors in place of those that don't."""
    for number in range(len(tests)):
        try:
            result = pickle.load(told)
        except (EOFError, pickle.UnpicklingError):
            why = f"the process that was to run it ended before ({_said(wait())})"
            for left in tests[number:]:
                yield TestResult(left.name, left.model, left.place, "error", 0.0, message=why)
            return
        yield result
    with suppress(EOFError, pickle.UnpicklingError):
        learned = pickle.load(told)
        if cache is not None:
            cache.learn(learned)
    wait()


def _wait(process: int, ended: list[int]) -> int:
    if not ended:
        ended.append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
    return ended[0]


def _said(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
