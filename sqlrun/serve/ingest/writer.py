"""Groups of requests to files of a source's folder, each durable and with its keys. Shell: files, the clock.

A group becomes one file, in this order: its lines, in a hidden folder; its keys, which name the file; the file's move
to the source's folder. Each step is durable before the next one begins. The keys decide: with them the file will be
published, by this process or the next one; without them it never was, and is deleted. So a lines' file may be landed,
archived and deleted at any time, and its keys still say that its lines arrived.
"""

from __future__ import annotations

import errno
import re
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import assert_never

from sqlrun.errors import LockedError
from sqlrun.runtime import atomic_files
from sqlrun.serve.ingest.key_record import KeyRecord, Known, Locked
from sqlrun.storage.factory import storage_of

HIDDEN = ".sqlrun-ingest"
KEYS = "keys.db"
KEYS_ARE_KNOWN_FOR = timedelta(days=30)
# Of this process's own files in the hidden folder: lines, and temporary files of the storage.
OWN = re.compile(r"\.?ingest-[0-9A-Za-z-]+\.jsonl(\.[0-9a-f]{32}\.tmp)?")
NO_SPACE = {errno.ENOSPC, errno.EDQUOT}


class Full(Exception):
    """The disk has no space for the lines: none of them is in the source."""


class Unwritable(Exception):
    """The folder can't be written; the text is the reason, for the server's log."""


@dataclass(frozen=True, slots=True)
class Request:
    """The lines of one request. `digest` is the hash of its body, `key` of its idempotency key; None without one."""

    data: bytes
    lines: int
    digest: bytes
    key: bytes | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The lines are durable in a file of the source. `again`: an earlier request with the key has brought them."""

    lines: int
    file: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """An earlier request with the key had another body; nothing was written."""


Outcome = Accepted | Conflict


class Writer:
    """The writer of one source's folder. One thread at a time may call it."""

    def __init__(self, folder: str, clock: Callable[[], datetime]) -> None:
        self.folder, self._clock = folder, clock
        self._hidden = f"{folder}/{HIDDEN}"
        self._storage = storage_of(folder)
        self._record: KeyRecord | None = None
        self._identity: int | str | None = None
        self._published: list[str] = []
        self._last: datetime | None = None

    def write(self, requests: Sequence[Request]) -> list[Outcome]:
        """Return each request's outcome; the accepted ones are durable.

        Raises: Full, Unwritable. Then no request has an outcome, and a request with a key may be sent again.
        """
        try:
            record = self._opened()
            return self._written(record, requests)
        except (OSError, sqlite3.Error, Locked) as error:
            # Whether the keys are recorded is known after the file was opened again; so is what to do with the lines.
            self.close()
            raise _reason(self.folder, error) from error

    def recover(self) -> None:
        """Publish or delete what an earlier process left behind, if there was one.

        Raises: LockedError if another server writes to the folder; Unwritable, Full.
        """
        if not self._storage.is_there(self._hidden):
            return
        try:
            self._opened()
        except Locked:
            raise LockedError(
                f"another `sqlrun serve --ingest` writes to {self.folder}. Stop it, or serve without --ingest"
            ) from None
        except (OSError, sqlite3.Error) as error:
            self.close()
            raise _reason(self.folder, error) from error

    def close(self) -> None:
        """Close the record of keys; the next write opens it again."""
        if self._record is not None:
            self._record.close()
        self._record, self._published = None, []

    def _opened(self) -> KeyRecord:
        """Return the open record; open it again if a user deleted its file, which keys would be added to in vain."""
        if self._record is not None and self._identity == self._seen():
            return self._record
        self.close()
        self._storage.make_folder(self._hidden)
        if Path(self._hidden).is_symlink():
            raise OSError(errno.ELOOP, f"{HIDDEN} is a link")
        record = KeyRecord(f"{self._hidden}/{KEYS}")
        try:
            # The names of the record's files, of their folder and of the source's folder.
            for folder in (self._hidden, self.folder, Path(self.folder).parent):
                atomic_files.sync_one(folder)
            self._settle(record)
        except BaseException:
            record.close()
            raise
        self._record, self._identity = record, self._seen()
        return record

    def _seen(self) -> int | str | None:
        stamp = self._storage.stamp(f"{self._hidden}/{KEYS}")
        return stamp.identity if stamp else None

    def _settle(self, record: KeyRecord) -> None:
        """Publish the files that have keys, and delete files without keys: their senders got no answer."""
        for file in record.unpublished():
            if self._storage.is_there(f"{self._hidden}/{file}"):
                self._publish(file)
        record.settle()
        for name in self._storage.names(self._hidden):
            if OWN.fullmatch(name):
                self._storage.delete(f"{self._hidden}/{name}")

    def _publish(self, file: str) -> None:
        self._storage.move(f"{self._hidden}/{file}", f"{self.folder}/{file}")
        atomic_files.sync_one(self.folder)

    def _written(self, record: KeyRecord, requests: Sequence[Request]) -> list[Outcome]:
        now = self._clock()
        record.forget(int((now - KEYS_ARE_KNOWN_FOR).timestamp()))
        file = self._name(now)
        known = record.find({request.key for request in requests if request.key is not None})
        old, outcomes, data = frozenset(known), list[Outcome](), list[bytes]()
        for request in requests:
            found = None if request.key is None else known.get(request.key)
            if found is None:
                data.append(request.data)
                outcomes.append(Accepted(request.lines, file))
                if request.key is not None:
                    known[request.key] = Known(request.digest, request.lines, file)
            elif found.digest == request.digest:
                outcomes.append(Accepted(found.lines, found.file, again=True))
            else:
                outcomes.append(Conflict())
        if data:
            self._storage.put(f"{self._hidden}/{file}", b"".join(data), synced=True)
            if new := {key: each for key, each in known.items() if key not in old}:
                record.add(file, new, self._published, int(now.timestamp()))
                self._published = [file]
            self._publish(file)
        return outcomes

    def _name(self, now: datetime) -> str:
        """Return the name of a new file. Names of one process sort by time, also if the clock goes back."""
        if self._last is not None:
            now = max(now, self._last + timedelta(microseconds=1))
        self._last = now
        # Of two processes one after the other, the clock of the second may be behind.
        return f"ingest-{now:%Y%m%dT%H%M%S%f}Z-{secrets.token_hex(4)}.jsonl"


def wrote(outcomes: Sequence[Outcome]) -> bool:
    """Return whether a group with these outcomes has become a file."""
    for outcome in outcomes:
        match outcome:
            case Accepted(again=False):
                return True
            case Accepted() | Conflict():
                pass
            case _:
                assert_never(outcome)
    return False


def _reason(folder: str, error: OSError | sqlite3.Error | Locked) -> Full | Unwritable:
    match error:
        case OSError() if error.errno in NO_SPACE:
            return Full()
        case OSError():
            return Unwritable(f"{folder} can't be written: {error.strerror or error}")
        case Locked():
            return Unwritable(f"another server writes to {folder}")
        case sqlite3.Error():
            if str(error) == "database or disk is full":
                return Full()
            return Unwritable(
                f"{folder}/{HIDDEN}/{KEYS} can't be used: {error}. If it is corrupt, stop the server and delete it: "
                "keys of earlier requests are then unknown"
            )
        case _:
            assert_never(error)
