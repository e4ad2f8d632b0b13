"""Tables that stay open between writes: each for one writer at a time, and as it left them for readers. Shell: threads.

Opening a table reads its log since the last checkpoint, following it reads the commits that came since it was read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from sqlrun.engines import deletion_vectors, delta_files
from sqlrun.errors import EngineError

if TYPE_CHECKING:
    from deltalake import DeltaTable

# What delta-rs holds of a table grows with each commit: after so many writes it is opened anew.
WRITES = 16


@dataclass(frozen=True, slots=True)
class _Spare:
    """An open table that nobody uses, the entry of its version in the log, and how often it was written to."""

    table: DeltaTable
    entry: delta_files.Entry
    writes: int


# By path; whoever writes takes it out.
_spare: dict[str, _Spare] = {}
_keeping = Lock()


class AsWritten:
    """A table at the version that its writer has made, for reading alone.

    What readers ask for is noted down, as the writer's own object goes on to other versions; for all else the table is
    opened.
    """

    def __init__(self, path: str, table: DeltaTable) -> None:
        self._path = path
        self.table_uri = table.table_uri
        self._version, self._schema = table.version(), table.schema()
        self._metadata, self._protocol = table.metadata(), table.protocol()
        self._files = delta_files.entries(table)

    def version(self) -> int:
        """Tell the version."""
        return self._version

    def schema(self) -> Any:
        """Give the schema."""
        return self._schema

    def metadata(self) -> Any:
        """Give the metadata."""
        return self._metadata

    def protocol(self) -> Any:
        """Give the protocol."""
        return self._protocol

    def get_add_actions(self, flatten: bool = False) -> Any:
        """Give the log's entries of the files."""
        return self._files if flatten else self._opened.get_add_actions()

    def __getattr__(self, name: str) -> Any:
        """Ask the table, opened for it."""
        return getattr(self._opened, name)

    @cached_property
    def _opened(self) -> DeltaTable:
        return delta_files.opened(self._path, self._version)


@contextmanager
def writing(path: str) -> Iterator[DeltaTable]:
    """Lend a table at its newest version to one who writes to it; where all goes well it stays open afterwards.

    Raises: EngineError if there is no such table, or its log can't be read.
    """
    with _keeping:
        spare = _spare.pop(path, None)
    table = None if spare is None else _followed(path, spare)
    writes = 0 if spare is None or table is None else spare.writes
    table = table or delta_files.open_table(path)
    before = table.version()
    yield table
    entry = delta_files.entry_of(path, table.version())
    if entry is None:
        return
    shown = cast("DeltaTable", AsWritten(path, table))
    deletion_vectors.hand_on(table, shown)
    delta_files.keep_open(path, shown)
    if writes < WRITES:
        with _keeping:
            _spare[path] = _Spare(table, entry, writes + (table.version() != before))


def _followed(path: str, spare: _Spare) -> DeltaTable | None:
    """Bring a table up to date; None where the log that it has read is no longer there."""
    if delta_files.entry_of(path, spare.table.version()) != spare.entry:
        return None
    try:
        with delta_files.explained(path):
            delta_files.follow(path, spare.table)
    except EngineError:
        return None  # opened anew, it says what is wrong
    return spare.table
