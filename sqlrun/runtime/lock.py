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

from sqlrun.errors import EngineError, LockedError
from sqlrun.runtime import own_folders


def holder(at: datetime) -> str:
    """Describe this process, for the one that finds the warehouse taken."""
    return json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "since": at.isoformat(timespec="seconds")})


@contextmanager
def hold(warehouse: str, at: datetime, wait: Callable[[str], None] | None = None) -> Iterator[str]:
    """Hold the warehouse; the lock of a process that died is free by itself.

    `wait` is told who holds it, once, and then the lock is waited for.
    Raises: LockedError naming host, pid and since when, if another process holds it and there is no `wait`;
        EngineError if the file can't be written; UsageError where a link in the warehouse leads elsewhere.
    """
    own_folders.require_warehouse(warehouse)
    file = _file(warehouse)
    me = holder(at)
    descriptor = _taken(file, warehouse, wait)
    try:
        with _explained(file):
            # The new words first, then the end of the old ones is cut off: who reads meanwhile finds a holder's name.
            os.pwrite(descriptor, me.encode(), 0)
            os.ftruncate(descriptor, len(me.encode()))
        yield me
    finally:
        os.close(descriptor)


def require(warehouse: str, me: str) -> None:
    """Make sure that the warehouse is still held by who took it as `me`; asked before each write.

    The lock goes with its file, not with its name. Where somebody deleted the file, or a file system between machines
    gave the lock away while this process stood still, another build may have begun.
    Raises: LockedError naming the other one.
    """
    try:
        text = _file(warehouse).read_text(errors="replace")
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise EngineError(_refusal(_file(warehouse), error)) from error
    if text != me:
        by = _named(text)
        taken = f"was taken over by another build{by}" if text else "is free for others: its lock file is gone"
        raise LockedError(
            f"the warehouse {warehouse} {taken}. This build has stopped without publishing; start it again."
        )


def _file(warehouse: str) -> Path:
    return Path(warehouse) / "_sqlrun" / "lock"


def _open(file: Path) -> int:
    with _explained(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _taken(file: Path, warehouse: str, wait: Callable[[str], None] | None) -> int:
    """Open the file and lock it; anew where it was deleted meanwhile (`sqlrun clean`): a lock goes with its file."""
    while True:
        descriptor = _open(file)
        try:
            _take(descriptor, warehouse, wait)
            if _is_there(file, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_there(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), file.stat())
    except FileNotFoundError:
        return False


def _take(descriptor: int, warehouse: str, wait: Callable[[str], None] | None) -> None:
    with _explained(_file(warehouse)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = os.pread(descriptor, 4096, 0).decode("utf-8", "replace")
            taken = f"another build holds the warehouse {warehouse}{_named(text)}"
            if wait is None:
                raise LockedError(f"{taken}. Wait for it to end (build --wait does), or stop it.") from None
            wait(f"{taken}. Waiting for it to end.")
            fcntl.flock(descriptor, fcntl.LOCK_EX)


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EngineError(_refusal(file, error)) from error


def _refusal(file: Path, error: OSError) -> str:
    return (
        f"the lock file {file} can't be written: {error.strerror or error}. A build, a rollback and an upkeep need to "
        "write the warehouse; nothing was written"
    )


def _named(text: str) -> str:
    """Name the holder, as far as the file tells."""
    try:
        by, _ = json.JSONDecoder().raw_decode(text)
        return f": pid {by['pid']} on {by['host']}, since {by['since']}"
    except (ValueError, TypeError, KeyError):
        return ""
