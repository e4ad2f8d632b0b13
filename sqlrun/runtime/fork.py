"""A forked process that does half of some work, and the pipe for its results. Shell: processes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, NoReturn

from sqlrun.runtime.disk_cache import Cache

# Fewer jobs finish before a fork pays off.
FEW = 24
# A process that imported one of these has threads unknown to Python, which a fork would lose.
THREADED = ("pyarrow", "duckdb", "deltalake", "pyspark", "numpy", "pandas")


def done(jobs: Sequence[Callable[[], Any]], cache: Cache) -> None:
    """Run jobs whose only result is their entries in `cache`; a fork runs the second half if that pays off.

    A job that fails in the fork is left undone; the next reader of the cache runs it and gets its error.
    """
    if len(jobs) < FEW or not may_fork():
        for job in jobs:
            job()
        return
    half = len(jobs) // 2

    def work(pipe: BinaryIO) -> None:
        mark = cache.mark()
        for job in jobs[half:]:
            job()
        pipe.write(cache.since(mark))

    with begun(work) as other:
        for job in jobs[:half]:
            job()
        found = other.output.read()
        if other.wait() == 0:
            cache.learn(found)


class Fork:
    """A fork of this process; `output` is the pipe with its results. It ends with its work, or when the pipe closes."""

    def __init__(self, process: int, output: BinaryIO) -> None:
        self.output = output
        self._process = process
        self._code: int | None = None

    def wait(self) -> int:
        """Wait for its end and return its exit code, negative for a signal."""
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        return self._code

    def end(self) -> None:
        """Kill it, unless it has ended."""
        self.output.close()
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGKILL)
            self.wait()


@contextmanager
def begun(work: Callable[[BinaryIO], None]) -> Iterator[Fork]:
    """Yield a fork that runs `work` and writes its results to the pipe; no fork is left behind (decision 40)."""
    source, target = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(source)
        _carry_out(work, target)
    os.close(target)
    fork = Fork(process, os.fdopen(source, "rb"))
    try:
        yield fork
    finally:
        fork.end()


def _carry_out(work: Callable[[BinaryIO], None], target: int) -> NoReturn:
    """Run the fork's work and exit at once: none of the parent's handlers and buffers may run."""
    status = 1
    try:
        with os.fdopen(target, "wb") as pipe:
            work(pipe)
        status = 0
    finally:
        os._exit(status)


def may_fork() -> bool:
    """Return whether a fork of this process would be intact, and has a core to run on."""
    alone = threading.active_count() == 1 and not any(name in sys.modules for name in THREADED)
    return alone and sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1
