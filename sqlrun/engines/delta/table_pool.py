"""Tables that stay open between writes: each for one writer at a time, and as it left them for readers. Shell: threads.

Opening a table reads its log since the last checkpoint, following it reads the commits that came since it was read.
Where a writer's commit hasn't been read yet, that is done beside whatever comes next.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, cast

from sqlrun.engines.delta import deletion_vectors
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError

if TYPE_CHECKING:
    from deltalake import DeltaTable

# What delta-rs holds of a table grows with each commit: after so many writes it is opened anew.
WRITES = 16


@dataclass(frozen=True, slots=True)
class _Noted:
    """What readers of a version ask for: its schema, metadata, protocol, and the log's entries of its files."""

    schema: Any
    metadata: Any
    protocol: Any
    files: Any


@dataclass(frozen=True, slots=True)
class _Spare:
    """An open table that nobody uses, the entry of its newest version in the log, and how often it was written to.

    `noted`: until that is done, the table is still following its log.
    """

    table: DeltaTable
    entry: delta_table.Entry
    writes: int
    noted: Future[_Noted]


# By path; whoever writes takes it out.
_spare: dict[str, _Spare] = {}
_keeping = Lock()


class AsWritten:
    """A table at the version that its writer has made, for reading alone.

    What readers ask for is noted down, as the writer's own object goes on to other versions; for all else the table is
    opened.
    """

    def __init__(self, path: str, uri: str, version: int, coming: Future[_Noted]) -> None:
        self._path, self._version, self._coming = path, version, coming
        self.table_uri = uri

    def version(self) -> int:
        """Return the version."""
        return self._version

    def schema(self) -> Any:
        """Return the schema."""
        return self._noted.schema

    def metadata(self) -> Any:
        """Return the metadata."""
        return self._noted.metadata

    def protocol(self) -> Any:
        """Return the protocol."""
        return self._noted.protocol

    def get_add_actions(self, flatten: bool = False) -> Any:
        """Return the log's entries of the files."""
        return self._noted.files if flatten else self._opened.get_add_actions()

    def __getattr__(self, name: str) -> Any:
        """Ask the table, opened for it."""
        return getattr(self._opened, name)

    @cached_property
    def _noted(self) -> _Noted:
        # Where the log couldn't be followed, opening it says what is wrong.
        return _note_down(self._opened) if self._coming.exception() else self._coming.result()

    @cached_property
    def _opened(self) -> DeltaTable:
        return delta_table.opened(self._path, self._version)


@contextmanager
def writing(path: str) -> Iterator[DeltaTable]:
    """Lend a table at its newest version to one who writes to it; where all goes well it stays open afterwards.

    Raises: EngineError if there is no such table, or its log can't be read.
    """
    with _keeping:
        spare = _spare.pop(path, None)
    table = None if spare is None else _followed(path, spare)
    writes = 0 if spare is None or table is None else spare.writes
    table = table or delta_table.open_table(path)
    before = table.version()
    yield table
    version = delta_table.newest(path, table)
    entry = delta_table.entry_of(path, version)
    if entry is None:
        return
    noted = Future[_Noted]()
    shown = cast("DeltaTable", AsWritten(path, table.table_uri, version, noted))
    deletion_vectors.hand_on(table, shown)
    delta_table.keep_open(path, shown)
    if version == table.version():
        _catch_up(path, table, version, noted)
    else:
        # Nobody else has the table until that is done.
        Thread(target=_catch_up, args=(path, table, version, noted), name="sqlrun-log").start()
    if writes < WRITES:
        with _keeping:
            _spare[path] = _Spare(table, entry, writes + (version != before), noted)


def _catch_up(path: str, table: DeltaTable, version: int, noted: Future[_Noted]) -> None:
    """Bring a table to a version of its log, and note down what it says then."""
    try:
        delta_table.follow(path, table)
        if table.version() != version:
            raise EngineError(f"another writer changed {path}: it is at version {table.version()}, not {version}")
        noted.set_result(_note_down(table))
    except BaseException as error:  # a panic of delta-rs, too: who needs the table opens it anew
        noted.set_exception(error)


def _note_down(table: DeltaTable) -> _Noted:
    return _Noted(table.schema(), table.metadata(), table.protocol(), delta_table.entries(table))


def _followed(path: str, spare: _Spare) -> DeltaTable | None:
    """Bring a table up to date; None where the log that it has read is no longer there."""
    if spare.noted.exception() or delta_table.entry_of(path, spare.table.version()) != spare.entry:
        return None
    try:
        with delta_table.explained(path):
            delta_table.follow(path, spare.table)
    except EngineError:
        return None  # opened anew, it says what is wrong
    return spare.table
