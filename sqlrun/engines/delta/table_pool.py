"""Pool of tables that stay open between writes: one writer at a time, its last version for readers. Shell: threads.

Opening a table reads its log since the last checkpoint; updating it reads only the commits since its version. A
background thread reads a writer's own commit, and writes every tenth version's checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, cast

from sqlrun.engines.delta import deletion_vectors, merged_rows, table_facts
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError, first_line

if TYPE_CHECKING:
    from deltalake import DeltaTable

# Maximum number of writes before a table is opened again: delta-rs' memory of a table grows with each commit.
WRITES = 16


@dataclass(frozen=True, slots=True)
class _Facts:
    """The facts that readers of a version need: schema, metadata, protocol and the log's entries of its files."""

    schema: Any
    metadata: Any
    protocol: Any
    files: Any


@dataclass(frozen=True, slots=True)
class _Spare:
    """An unused open table, the log entry of its newest version, and its number of writes.

    `facts`: until it is done, the table is still reading its log; until `rest` is done, it may write a checkpoint.
    """

    table: DeltaTable
    entry: delta_table.Entry
    writes: int
    facts: Future[_Facts]
    rest: Future[None]


# By path; a writer removes it while it writes.
_spare: dict[str, _Spare] = {}
_keeping = Lock()
# What background threads have yet to do, and messages about checkpoints that failed.
_running: set[Future[None]] = set()
_failed: list[str] = []


class AsWritten:
    """A table at the version that its writer has made, read-only.

    Its facts are read in advance, because the writer's own object continues to later versions; for other attributes the
    table is opened.
    """

    def __init__(self, path: str, uri: str, version: int, coming: Future[_Facts]) -> None:
        self._path, self._version, self._coming = path, version, coming
        self.table_uri = uri

    def version(self) -> int:
        """Return the version."""
        return self._version

    def schema(self) -> Any:
        """Return the schema."""
        return self._facts.schema

    def metadata(self) -> Any:
        """Return the metadata."""
        return self._facts.metadata

    def protocol(self) -> Any:
        """Return the protocol."""
        return self._facts.protocol

    def get_add_actions(self, flatten: bool = False) -> Any:
        """Return the log's entries of the files."""
        return self._facts.files if flatten else self._opened.get_add_actions()

    def __getattr__(self, name: str) -> Any:
        """Open the table and return its attribute."""
        return getattr(self._opened, name)

    @cached_property
    def _facts(self) -> _Facts:
        # If reading the log failed, opening the table raises the error.
        return _read_facts(self._opened) if self._coming.exception() else self._coming.result()

    @cached_property
    def _opened(self) -> DeltaTable:
        return delta_table.opened(self._path, self._version)


def nothing() -> None:
    """Create nothing: the table exists."""


@contextmanager
def writing(
    path: str, create: Callable[[], None] = nothing, base: int | None = None, *, follow: bool = True
) -> Iterator[DeltaTable]:
    """Lend a table at its newest version to a writer; if the block succeeds, the table stays open afterwards.

    `create` is called before a table is opened that isn't open yet. `base` is the version that the writer expects: a
    table that is open at this version isn't updated, because a commit behind another writer's fails. Without `follow`
    an open table is never updated.
    Raises: EngineError if there is no such table, or its log can't be read.
    """
    with _keeping:
        spare = _spare.pop(path, None)
    table = None if spare is None else _followed(path, spare, base if follow else spare.table.version())
    writes = 0 if spare is None or table is None else spare.writes
    if table is None:
        create()
        table = delta_table.open_table(path)
    before = table.version()
    yield table
    # A later commit of another writer is found when the table is lent again.
    version = version_made(table)
    entry = delta_table.entry_of(path, version)
    if entry is None:
        return
    facts, rest = Future[_Facts](), Future[None]()
    as_written = cast("DeltaTable", AsWritten(path, table.table_uri, version, facts))
    deletion_vectors.hand_on(table, as_written)
    merged_rows.hand_on(table, as_written)
    delta_table.keep_open(path, as_written)
    if version == table.version():
        _catch_up(path, table, version, facts)
        rest.set_result(None)
    else:
        due = _is_due(table, before, version)
        if due:
            _running.add(rest)
            rest.add_done_callback(_running.discard)
        # The table is returned to the pool only when that is done.
        Thread(target=_follow_up, args=(path, table, version, due, facts, rest), name="sqlrun-log").start()
    if writes < WRITES:
        with _keeping:
            _spare[path] = _Spare(table, entry, writes + (version != before), facts, rest)


def settle() -> tuple[str, ...]:
    """Wait until background threads have written all checkpoints; return a message about each failure."""
    wait(list(_running))
    found = tuple(_failed)
    _failed.clear()
    return found


def _is_due(table: DeltaTable, before: int, version: int) -> bool:
    """Return whether one of the commits after a version has a checkpoint."""
    interval = int(table.metadata().configuration.get("delta.checkpointInterval", "100"))
    return version // interval > before // interval


def _follow_up(
    path: str, table: DeltaTable, version: int, due: bool, facts: Future[_Facts], rest: Future[None]
) -> None:
    """Catch up with own commits; then write a checkpoint if it is due."""
    try:
        _catch_up(path, table, version, facts)
        if due and facts.exception() is None:
            table.create_checkpoint()
    except Exception as error:  # of any kind: the rows are committed, only later reads are slower
        _failed.append(
            f"The checkpoint of version {version} of {path} couldn't be written: {first_line(error)}. The table takes "
            "longer to open until the next one"
        )
    finally:
        rest.set_result(None)


def version_made(table: DeltaTable) -> int:
    """Return the version that a table's writer has made: the open table's, or one that it has yet to read."""
    version = table.version()
    while table_facts.is_noted(table, version + 1, table_facts.COMMITTED):
        version += 1
    return version


def _catch_up(path: str, table: DeltaTable, version: int, facts: Future[_Facts]) -> None:
    """Update a table to a version of its log, and note its facts there."""
    try:
        if table.version() != version:
            delta_table.follow(path, table)
        if table.version() != version:
            raise EngineError(f"another writer changed {path}: it is at version {table.version()}, not {version}")
        facts.set_result(_read_facts(table))
    except BaseException as error:  # a panic of delta-rs, too: the next user opens the table again
        facts.set_exception(error)


def _read_facts(table: DeltaTable) -> _Facts:
    return _Facts(table.schema(), table.metadata(), table.protocol(), delta_table.entries(table))


def _followed(path: str, spare: _Spare, base: int | None) -> DeltaTable | None:
    """Return a table that is updated, or is at version `base`; None if the log that it has read no longer exists."""
    wait([spare.rest])
    if spare.facts.exception() or delta_table.entry_of(path, spare.table.version()) != spare.entry:
        return None
    if spare.table.version() == base:
        return spare.table
    try:
        with delta_table.explained(path):
            delta_table.follow(path, spare.table)
    except EngineError:
        return None  # opening it again raises the error
    return spare.table
