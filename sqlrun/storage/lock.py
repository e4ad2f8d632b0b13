"""The build lock: one build at a time on a warehouse. Shell: a lock file."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime

from sqlrun.errors import EngineError, LockedError
from sqlrun.storage.factory import storage_of
from sqlrun.storage.store_errors import StoreError


def holder(at: datetime) -> str:
    """Describe this process for another one that finds the warehouse locked."""
    return json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "since": at.isoformat(timespec="seconds")})


@contextmanager
def hold(warehouse: str, at: datetime, wait: Callable[[str], None] | None = None) -> Iterator[str]:
    """Lock the warehouse. The lock is freed when its process dies.

    `wait` receives the holder's name, once; then this process waits for the lock.
    Raises: LockedError naming host, pid and time of the lock, if another process holds it and there is no `wait`;
        EngineError if the file can't be written; UsageError if a link in the warehouse leads elsewhere, or the store
        is unsuitable.
    """

    def taken(text: str) -> None:
        message = f"another build holds the warehouse {warehouse}{_holder_name(text)}"
        if wait is None:
            raise LockedError(f"{message}. Wait for it to end (see `build --wait`), or stop it.") from None
        wait(f"{message}. Waiting for it to end.")

    storage, file, me = storage_of(warehouse), _file(warehouse), holder(at)
    storage.require_usable(warehouse)
    with ExitStack() as stack:
        with _explain_errors(file):
            stack.enter_context(storage.hold(file, me, taken))
        yield me


def require(warehouse: str, me: str) -> None:
    """Check that the process that locked the warehouse as `me` still holds the lock; called before each write.

    The lock goes with its file, not with its name. Another build may have begun if a user deleted the file, or if a
    network file system released the lock while this process was suspended.
    Raises: LockedError naming the other process.
    """
    file = _file(warehouse)
    with _explain_errors(file):
        text = storage_of(warehouse).holder(file)
    if text != me:
        by = _holder_name(text)
        taken = f"was taken over by another build{by}" if text else "is no longer locked: its lock file is missing"
        raise LockedError(f"the warehouse {warehouse} {taken}. This build stopped without publishing. Start it again.")


def _file(warehouse: str) -> str:
    return f"{warehouse}/_sqlrun/lock"


@contextmanager
def _explain_errors(file: str) -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise  # it says what to do
    except OSError as error:
        raise EngineError(
            f"the lock file {file} can't be written: {error.strerror or error}. Builds, rollbacks and vacuums need "
            "write access to the warehouse. Nothing was written"
        ) from error


def _holder_name(text: str) -> str:
    """Return the holder's name from the lock file's text."""
    try:
        by, _ = json.JSONDecoder().raw_decode(text)
        return f": pid {by['pid']} on {by['host']}, since {by['since']}"
    except (ValueError, TypeError, KeyError):
        return ""
