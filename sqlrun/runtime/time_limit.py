"""Time limits for Python code. Shell: threads, processes.

An exception raised in its thread stops Python code between two bytecodes. A regular-expression search is a single
step, however long it takes: a search that may run forever is done by another process, which can be killed.
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
# Seconds to wait for the exception: one step of pandas may take a while.
PATIENCE = 5.0
# Reads patterns and texts, writes a list of booleans for each pattern. Without site-packages it starts at once.
SEARCH = """\
import pickle, re, sys
patterns, texts = pickle.load(sys.stdin.buffer)
pickle.dump([[re.search(p, t) is not None for t in texts] for p in map(re.compile, patterns)], sys.stdout.buffer)
"""


class OutOfTimeError(Exception):
    """Work exceeded its time limit and was stopped."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it ran longer than {seconds:g} s and was stopped")


class _Stop(BaseException):
    """Stop of the work; no `except Exception` on the way catches it."""


def within(seconds: float, work: Callable[[], T]) -> T:
    """Run work in its own thread and return its result; its exceptions are raised here.

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
    """Return for each pattern whether each text matches by `re.search`, run in a process that can be killed.

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
