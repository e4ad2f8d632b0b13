"""The idempotency keys of a source's requests, in a SQLite file beside its lines. Shell: a file.

A transaction is durable when it returns. The file is locked as long as it is open, so one process writes to a source.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

VERSION = 1
# Maximum number of keys to forget with one group, so that no request waits long for it.
FORGOTTEN_AT_ONCE = 1000
TABLES = (
    "create table requests (key blob primary key, digest blob not null, lines integer not null, file text not null, "
    "at integer not null) without rowid",
    "create index requests_at on requests (at)",
    "create table unpublished (file text primary key) without rowid",
)


class Locked(Exception):
    """Another process has the file open."""


@dataclass(frozen=True, slots=True)
class Known:
    """A recorded request: the hash of its body, its number of lines, and the file with them."""

    digest: bytes
    lines: int
    file: str


class KeyRecord:
    """The recorded keys. Methods raise sqlite3.Error on failure; then nothing is known about the last transaction."""

    def __init__(self, path: str) -> None:
        """Open or create the file. Raises: Locked; sqlite3.Error, also for a file of another version."""
        self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
        except sqlite3.OperationalError as error:
            self._connection.close()
            # SQLite's own text; Python 3.10 has no code beside it.
            if str(error) == "database is locked":
                raise Locked from None
            raise
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        run = self._connection.execute
        # With this lock, the write-ahead log needs no shared memory, which some mounted disks lack.
        run("pragma locking_mode = exclusive")
        run("pragma journal_mode = wal")
        run("pragma synchronous = full")
        run("begin immediate")
        (version,) = run("pragma user_version").fetchone()
        if version == 0:
            for statement in TABLES:
                run(statement)
            run(f"pragma user_version = {VERSION}")
        run("commit")
        if version not in (0, VERSION):
            raise sqlite3.DatabaseError(f"it has version {version}, which this sqlrun doesn't know")

    def close(self) -> None:
        """Close the file and free its lock."""
        self._connection.close()

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Known]:
        """Return the recorded requests with these keys."""
        found = {}
        for key in keys:
            row = self._connection.execute("select digest, lines, file from requests where key = ?", (key,)).fetchone()
            if row is not None:
                found[key] = Known(*row)
        return found

    def add(self, file: str, requests: Mapping[bytes, Known], published: Iterable[str], at: int) -> None:
        """Record the requests of a file that isn't published yet, and that others are; `at` is Unix time."""
        run = self._connection.execute
        run("begin immediate")
        for each in published:
            run("delete from unpublished where file = ?", (each,))
        run("insert into unpublished values (?)", (file,))
        rows = [(key, known.digest, known.lines, known.file, at) for key, known in requests.items()]
        self._connection.executemany("insert into requests values (?, ?, ?, ?, ?)", rows)
        run("commit")

    def forget(self, before: int) -> None:
        """Forget some of the keys that were recorded before a time."""
        self._connection.execute(
            "delete from requests where key in (select key from requests where at < ? order by at limit ?)",
            (before, FORGOTTEN_AT_ONCE),
        )

    def unpublished(self) -> list[str]:
        """Return the files that may not be published yet, oldest first."""
        return [file for (file,) in self._connection.execute("select file from unpublished order by file")]

    def settle(self) -> None:
        """Record that all files are published."""
        self._connection.execute("delete from unpublished")
