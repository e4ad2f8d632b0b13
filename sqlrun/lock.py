"""One build at a time on a warehouse. Shell: a lock file."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from sqlrun.errors import LockedError


def holder(at: datetime) -> str:
    """Describe this process, for the one that finds the warehouse taken."""
    return json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "since": at.isoformat(timespec="seconds")})


@contextmanager
def hold(warehouse: str, at: datetime, wait: Callable[[str], None] | None = None) -> Iterator[str]:
    """Hold the warehouse; the lock of a process that died is free by itself.

    `wait` is told who holds it, once, and then the lock is waited for.
    Raises: LockedError naming host, pid and since when, if another process holds it and there is no `wait`.
    """
    file = Path(warehouse) / "_sqlrun" / "lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            taken = _taken(handle.read(), warehouse)
            if wait is None:
                raise LockedError(f"{taken}. Wait for it to end (build --wait does), or stop it.") from None
            wait(f"{taken}. Waiting for it to end.")
            fcntl.flock(handle, fcntl.LOCK_EX)
        me = holder(at)
        handle.truncate(0)
        handle.write(me)
        handle.flush()
        yield me


def _taken(text: str, warehouse: str) -> str:
    try:
        by = json.loads(text)
    except ValueError:
        return f"another build holds the warehouse {warehouse}"
    return f"another build holds the warehouse {warehouse}: pid {by['pid']} on {by['host']}, since {by['since']}"
