"""What sqlrun asks of an engine: values in, values out, no engine's type crosses. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sqlrun.source_api import SourceReader

if TYPE_CHECKING:
    import pyarrow as pa

RowSet = Literal["old", "new", "changes"]
Dialect = Literal["spark", "duckdb"]


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A physical column; `type` is Spark SQL's type text, such as `decimal(18,2)` or `array<struct<a:int>>`."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A Delta table: where it lies and what it holds. `name` is for messages and receipts.

    `vectors`: as it is made, its files may have deletion vectors; some readers know none, and refuse such a table.
    """

    name: str
    path: str
    columns: tuple[StoredColumn, ...]
    partition_by: tuple[str, ...] = ()
    vectors: bool = True


@dataclass(frozen=True, slots=True)
class Relation:
    """A name that a statement mentions, and the rows behind it.

    `old` and `new` are the table at `version`. `changes` are the rows of the change feed of `commits`, in any
    order, with a last column `_weight`: +1 for insert and update_postimage, -1 for delete and update_preimage.
    `where` is a literal condition in the engine's dialect (pruning, or the public part of a table); "" is all. It
    is applied to the stored rows and may read columns that are not among `columns`.
    `ranges`, where there are any: rows outside all of them (column, least, greatest) are not needed, so that files
    without a row inside need not be opened.
    Columns come in the order of `columns`.
    """

    name: str
    path: str
    columns: tuple[StoredColumn, ...]
    row_set: RowSet
    version: int = 0
    commits: tuple[int, ...] = ()
    where: str = ""
    ranges: tuple[tuple[str, Any, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Prune:
    """How a merge narrows what it reads of its target, as literals taken from the delta's own rows.

    `partitions`: partition columns that belong to the key: `t.c IN (<distinct values in the delta>)`.
    `ranges`: (key column, group column): an OR of `t.key BETWEEN min AND max`, one range for each distinct
    value of the group column in the delta. Both are empty where nothing can be pruned.
    """

    partitions: tuple[str, ...] = ()
    ranges: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Append:
    """Add the rows of `sql`; its columns are the table's."""

    sql: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Make the rows of `sql` the whole table, in one commit."""

    sql: str


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Make the rows of `sql` the whole of some partitions, in one commit; others stay.

    `touched` gives the values of the table's partition columns, one row a partition; no row of `sql` lies elsewhere.
    """

    sql: str
    touched: str


@dataclass(frozen=True, slots=True)
class Load:
    """Make these rows of Python values the whole table, in one commit (seeds). Column order is the table's."""

    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """One MERGE: `t` is the table, `s` the rows of `delta` (at most one for each key).

    Expressions are SQL in the engine's dialect over `s.` and `t.`. A matched row is deleted where `delete_when`
    holds, else updated by `update` where `update_when` holds; an unmatched row is inserted by `insert` where
    `insert_when` holds. "" means: never for `delete_when`, always for the other two.
    Keys in `null_safe` match NULL with NULL; the others are never NULL. `repeats`: the table may have several rows of
    a key, and what becomes of them doesn't depend on which of them it is.
    """

    delta: str
    key: tuple[str, ...]
    null_safe: tuple[str, ...]
    update: tuple[tuple[str, str], ...]
    insert: tuple[tuple[str, str], ...]
    delete_when: str = ""
    update_when: str = ""
    insert_when: str = ""
    prune: Prune = Prune()
    repeats: bool = False


Statement = Append | Replace | Overwrite | Load | Merge


def need_not_wait() -> None:
    """Let a commit begin: where nothing else could stand before it."""


@dataclass(frozen=True, slots=True)
class Write:
    """One statement on one table in one tick: at most one Delta commit, which must be `base` + 1.

    The commit carries the transaction id (`app_id`, `tick`) and the metadata. Nothing to change: no commit.
    `lenient`: an expression that fails is NULL, as it is while files land. `may_commit` returns as soon as it may be
    committed; it is asked before that is begun. `parameters`: the values of the times that the statement names.
    `own_commit`: sqlrun may write the commit itself; the engine's library does otherwise (decision 41).
    """

    table: TableSpec
    base: int
    tick: int
    app_id: str
    relations: tuple[Relation, ...]
    statement: Statement
    metadata: Mapping[str, str] = field(default_factory=dict)
    lenient: bool = False
    may_commit: Callable[[], object] = need_not_wait
    parameters: Mapping[str, datetime] = field(default_factory=dict)
    own_commit: bool = True


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one write cost. Counts are those that the engine reports; None where it can't tell."""

    seconds: float
    rows_read: int | None = None
    bytes_read: int | None = None
    files_read: int | None = None
    rows_written: int | None = None
    bytes_written: int | None = None
    files_written: int | None = None
    jobs: int | None = None
    commits: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """`version` is the table's after the write; equal to the base when nothing changed. `notes` are to be told."""

    version: int
    receipt: Receipt
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Landing:
    """A source entering a table. `query` reads the relation `lines(value string, file string)`, one row a line of
    text, and gives the table's columns; `file` is the line's origin in `source`. It may be written as late as it is
    wanted: in most looks at a source nothing lands. `checkpoint` is a folder for the engine's memory of the parts that
    it has landed. `accept_lost`: a part that was planned and is gone is left out. `own_commit`: as of a `Write`."""

    table: TableSpec
    source: SourceReader
    checkpoint: str
    query: str | Callable[[], str]
    app_id: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    accept_lost: bool = False
    own_commit: bool = True

    @property
    def sql(self) -> str:
        """The text of the query."""
        return self.query if isinstance(self.query, str) else self.query()


NONE_GIVEN: Mapping[str, pa.Table] = MappingProxyType({})


class Engine(Protocol):
    """The verbs. Paths are absolute; SQL is in `dialect`; every failure is an `EngineError`."""

    @property
    def name(self) -> str:
        """`spark` or `duckdb`, as in a profile."""

    @property
    def dialect(self) -> Dialect:
        """Which SQL the engine takes."""

    def start(self) -> None:
        """Open what is needed; calling it again does nothing."""

    def create(self, table: TableSpec) -> None:
        """Make the empty table, with its change feed on, as version 0; nothing if it is there."""

    def head(self, path: str) -> int | None:
        """Return the newest version of a table; None where there is no table."""

    def land(self, landing: Landing) -> Written:
        """Land all that is new of the source, exactly once; the version is the table's newest."""

    def write(self, write: Write) -> Written:
        """Carry out one statement; raise if the table is not at `base` or another commit comes between."""

    def restore(self, path: str, version: int, head: int | None = None) -> None:
        """Make `version` the content of the table again, as a new commit; with `head`, only where it is the newest."""

    def query(self, sql: str, relations: tuple[Relation, ...], given: Mapping[str, pa.Table] = NONE_GIVEN) -> pa.Table:
        """Run a SELECT over the relations and return its rows (timestamps are UTC microseconds).

        `given` are rows that the caller holds, by the name that the SELECT has for them.
        """

    def parts(self, sql: str, relations: tuple[Relation, ...], rows: int) -> Iterator[pa.Table]:
        """Run a SELECT over the relations and return its rows, so many at a time; none where there are none."""

    def close(self) -> None:
        """Let go of everything."""
