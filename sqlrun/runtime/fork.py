"""Work on a cache's entries that a second process takes half of. Shell: processes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

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
    source, target = os.pipe()
    process = os.fork()
    if process == 0:
        _tell(target, jobs[half:], cache)
    os.close(target)
    try:
        for job in jobs[:half]:
            job()
        with os.fdopen(source, "rb", closefd=False) as told:
            found = told.read()
    except BaseException:
        os.kill(process, signal.SIGKILL)
        raise
    finally:
        os.close(source)
        _, status = os.waitpid(process, 0)
    if status == 0:
        cache.learn(found)


def _tell(target: int, jobs: Sequence[Callable[[], Any]], cache: Cache) -> None:
    """Do the fork's part, and end it: nothing of the parent's is left to run, be it a handler or a buffer."""
    status = 1
    try:
        mark = cache.mark()
        for job in jobs:
            job()
        with os.fdopen(target, "wb") as pipe:
            pipe.write(cache.since(mark))
        status = 0
    finally:
        os._exit(status)


def may_fork() -> bool:
    """Tell whether a fork of this process would be whole, and has a core to run on."""
    alone = threading.active_count() == 1 and not any(name in sys.modules for name in THREADED)
    return alone and sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1
