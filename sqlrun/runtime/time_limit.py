"""Work that is stopped when its time is over. Shell: threads, processes.

What Python itself does is stopped between two of its steps, by an exception raised in its thread. A search by a regular
expression is one step, however long it takes: one that could run for ever is done by another process, which is killed.
"""

from __future__ import annotations

import ctypes
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
# Each step of pandas' own may take a while; the exception waits for its end.
PATIENCE = 5.0
# Reads patterns and texts, answers with a list of truths for each pattern. Without site-packages it starts at once.
SEARCH = """\
import pickle, re, sys
patterns, texts = pickle.load(sys.stdin.buffer)
pickle.dump([[re.search(p, t) is not None for t in texts] for p in map(re.compile, patterns)], sys.stdout.buffer)
"""


class OutOfTimeError(Exception):
    """What was to be done took too long and was stopped."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it ran longer than {seconds:g} s and was stopped")


class _Stop(BaseException):
    """No `except Exception` on the way keeps it."""


def within(seconds: float, work: Callable[[], T]) -> T:
    """Do work in a thread of its own; what it raises is raised here.

    Raises: OutOfTimeError.
    """
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="sqlrun-limited", daemon=True)
    thread.start()
    thread.join(seconds)
    while thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_Stop))
        thread.join(PATIENCE)
    if done:
        return done[0]
    if isinstance(failed[0], _Stop):
        raise OutOfTimeError(seconds)
    raise failed[0]


def searched(patterns: Sequence[str], texts: Sequence[str], seconds: float) -> list[list[bool]]:
    """Return for each pattern the texts in which `re.search` finds it, by a process that can be killed.

    Raises: OutOfTimeError, ValueError.
    """
    command = [sys.executable, "-I", "-S", "-c", SEARCH]
    try:
        ran = subprocess.run(command, input=pickle.dumps((patterns, texts)), capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise OutOfTimeError(seconds) from None
    if ran.returncode:
        last: list[bytes] = ran.stderr.strip().split(b"\n")[-1:]
        raise ValueError(f"the search ended with {ran.returncode}: {b''.join(last).decode(errors='replace')}")
    found: Any = pickle.loads(ran.stdout)
    return [[bool(truth) for truth in truths] for truths in found]
