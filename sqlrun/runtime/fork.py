"""A second process that takes half of some work: a fork, and what it tells. Shell: processes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, NoReturn

from sqlrun.runtime.disk_cache import Cache

# Fewer jobs are done sooner than a process is made.
FEW = 24
# A process with one of these has threads that Python does not count, and that a fork would lose.
THREADED = ("pyarrow", "duckdb", "deltalake", "pyspark", "numpy", "pandas")


def done(jobs: Sequence[Callable[[], Any]], cache: Cache) -> None:
    """Do jobs whose only result is what `cache` keeps of them; a fork does the second half where that pays.

    What the fork can't do, because something is wrong, is left undone: whoever asks the cache does it then.
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
        found = other.told.read()
        if other.wait() == 0:
            cache.learn(found)


class Fork:
    """A fork of this process: `told` is what it writes. It ends with its work, or when nobody listens any more."""

    def __init__(self, process: int, told: BinaryIO) -> None:
        self.told = told
        self._process = process
        self._code: int | None = None

    def wait(self) -> int:
        """Wait for its end, and return its exit code: negative where a signal ended it."""
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        return self._code

    def end(self) -> None:
        """End it, where it has not ended."""
        self.told.close()
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGKILL)
            self.wait()


@contextmanager
def begun(work: Callable[[BinaryIO], None]) -> Iterator[Fork]:
    """Lend a fork that does some work and writes what is to be told of it; no fork is left behind (decision 40)."""
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
    """Do the fork's part, and end it: nothing of the parent's is left to run, be it a handler or a buffer."""
    status = 1
    try:
        with os.fdopen(target, "wb") as pipe:
            work(pipe)
        status = 0
    finally:
        os._exit(status)


def may_fork() -> bool:
    """Return whether a fork of this process would be whole, and has a core to run on."""
    alone = threading.active_count() == 1 and not any(name in sys.modules for name in THREADED)
    return alone and sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1
