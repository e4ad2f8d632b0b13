"""One build at a time on a warehouse. Shell: a lock file."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime

from sqlrun.errors import EngineError, LockedError
from sqlrun.storage.factory import storage_of


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

    def taken(text: str) -> None:
        told = f"another build holds the warehouse {warehouse}{_named(text)}"
        if wait is None:
            raise LockedError(f"{told}. Wait for it to end (build --wait does), or stop it.") from None
        wait(f"{told}. Waiting for it to end.")

    storage, file, me = storage_of(warehouse), _file(warehouse), holder(at)
    storage.require_no_links(warehouse)
    with ExitStack() as held:
        with _explained(file):
            held.enter_context(storage.hold(file, me, taken))
        yield me


def require(warehouse: str, me: str) -> None:
    """Make sure that the warehouse is still held by who took it as `me`; asked before each write.

    The lock goes with its file, not with its name. Where somebody deleted the file, or a file system between machines
    gave the lock away while this process stood still, another build may have begun.
    Raises: LockedError naming the other one.
    """
    file = _file(warehouse)
    with _explained(file):
        try:
            text = storage_of(warehouse).read(file).decode("utf-8", "replace")
        except FileNotFoundError:
            text = ""
    if text != me:
        by = _named(text)
        taken = f"was taken over by another build{by}" if text else "is free for others: its lock file is gone"
        raise LockedError(
            f"the warehouse {warehouse} {taken}. This build has stopped without publishing; start it again."
        )


def _file(warehouse: str) -> str:
    return f"{warehouse}/_sqlrun/lock"


@contextmanager
def _explained(file: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EngineError(
            f"the lock file {file} can't be written: {error.strerror or error}. A build, a rollback and a vacuum need "
            "to write the warehouse; nothing was written"
        ) from error


def _named(text: str) -> str:
    """Return the name of the holder, as far as the file tells."""
    try:
        by, _ = json.JSONDecoder().raw_decode(text)
        return f": pid {by['pid']} on {by['host']}, since {by['since']}"
    except (ValueError, TypeError, KeyError):
        return ""
