"""The interface of an engine: values in, values out, without any engine's types. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sqlrun.source_api import AcceptedLoss, Extent, Positions, SourceReader

if TYPE_CHECKING:
    import pyarrow as pa

# Maximum number of samples of dropped lines, for each reason.
SAMPLES = 5
LONGEST_SAMPLE = 500  # characters of a sample's text
RowSet = Literal["old", "new", "changes", "snapshot", "difference"]
Dialect = Literal["spark", "duckdb"]


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A physical column; `type` is Spark SQL's type text, such as `decimal(18,2)` or `array<struct<a:int>>`."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A Delta table: its path and its layout. `name` is for messages and run stats.

    `vectors`: a new table's files may have deletion vectors, which some readers don't support.
    """

    name: str
    path: str
    columns: tuple[StoredColumn, ...]
    partition_by: tuple[str, ...] = ()
    vectors: bool = True


@dataclass(frozen=True, slots=True)
class GivenKeys:
    """A table that is given to a query, and its key columns, which are never NULL there.

    `few_rows`: few stored rows are expected to have a key of the table, even if it has many. `commits`: the ones that
    changed its rows, if it has rows of the relation's own table; else empty.
    """

    table: str = ""
    columns: tuple[str, ...] = ()
    few_rows: bool = False
    commits: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Relation:
    """A name in a statement, and the rows behind it, with the columns in the order of `columns`.

    `old` and `new` are the table at `version`. `changes` are the rows of the change feed of `commits`, in any order,
    with an additional last column `_weight`: +1 for insert and update_postimage, -1 for delete and update_preimage.

    The other two are of a table that others write: `snapshot` is the table at `version`, and `difference` the rows that
    `version` has in addition to `since`, or lacks, with `_weight`: the number of times. Columns are found regardless of
    case, and cast to their types; columns that an older file lacks are NULL.

    `where` is a literal condition in the engine's dialect (pruning, or the public part of a table); "" is all. It
    filters the stored rows and may read columns that aren't among `columns`.

    `ranges`, if any: rows outside all of them (column, least, greatest) aren't needed, so files without a row inside
    can be skipped.

    `given_keys`, if they have columns: rows that share no key with them aren't needed, so an engine can leave them out.
    """

    name: str
    path: str
    columns: tuple[StoredColumn, ...]
    row_set: RowSet
    version: int = 0
    commits: tuple[int, ...] = ()
    since: int = 0
    where: str = ""
    ranges: tuple[tuple[str, Any, Any], ...] = ()
    given_keys: GivenKeys = GivenKeys()


@dataclass(frozen=True, slots=True)
class Prune:
    """Limits on what a merge reads of its target, as literals from the delta's own rows.

    `partitions`: partition columns that belong to the key: `t.c IN (<distinct values in the delta>)`.

    `ranges`: (key column, group column): an OR of `t.key BETWEEN min AND max`, one range for each distinct value of the
    group column in the delta. Both are empty if nothing can be pruned.
    """

    partitions: tuple[str, ...] = ()
    ranges: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Append:
    """Append the rows of `sql`; its columns are the table's."""

    sql: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace the whole table by the rows of `sql`, in one commit."""

    sql: str


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Replace whole partitions by the rows of `sql`, in one commit; other partitions stay.

    `partitions` returns the partition values to replace, one row per partition; every row of `sql` is in one of them.
    """

    sql: str
    partitions: str


@dataclass(frozen=True, slots=True)
class Load:
    """Replace the whole table by these rows of Python values, in one commit (seeds). Column order is the table's."""

    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """One MERGE: `t` is the table, `s` the rows of `delta` (at most one for each key).

    Expressions are SQL in the engine's dialect over `s.` and `t.`. A matched row is deleted if `delete_when` holds,
    else updated by `update` if `update_when` holds; an unmatched row is inserted by `insert` if `insert_when` holds. ""
    means never for `delete_when`, always for the other two.

    Keys in `null_safe` match NULL with NULL; the others are never NULL. `repeats`: the table may have several rows of a
    key, all of which the merge treats alike.
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
    """No-op: nothing has to happen before the commit."""


@dataclass(frozen=True, slots=True)
class Write:
    """One statement on one table in one tick: at most one Delta commit, which must be `base` + 1.

    The commit carries the transaction id (`app_id`, `tick`) and the metadata. Without a change there is no commit.

    `lenient`: an expression that fails is NULL, as in landing. `may_commit` blocks until a commit is allowed; it is
    called before the commit begins. `parameters`: the values of the times in the statement. `own_commit`: sqlrun may
    write the commit itself instead of the engine's library (decision 41).
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
    """The cost of one write. Counts come from the engine; None if it doesn't report them."""

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
class DroppedLine:
    """A line that was left out, as an example of its reason; a long text is cut."""

    reason: str
    origin: str
    text: str


@dataclass(frozen=True, slots=True)
class LineCounts:
    """What became of the lines of a source that are neither landed nor quarantined.

    `lines` is the number of all lines that were read, None if it isn't known. `dropped` counts those left out by their
    reason: a drop rule's, or one of `project.FILTERED` and `project.BLANK_LINE`. `by_part` counts them by part (as in
    `source_api.Origin`) and reason, blank lines excepted; {} on an engine that doesn't count by part. `samples` are a
    few of them, at most `SAMPLES` of each reason.
    """

    lines: int | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    by_part: Mapping[tuple[str, str], int] = field(default_factory=dict)
    samples: tuple[DroppedLine, ...] = ()

    def __add__(self, other: LineCounts) -> LineCounts:
        """Return the counts of two batches together."""
        reasons = (*self.dropped, *(reason for reason in other.dropped if reason not in self.dropped))
        parts = (*self.by_part, *(part for part in other.by_part if part not in self.by_part))
        known = self.lines is not None and other.lines is not None
        return LineCounts(
            (self.lines or 0) + (other.lines or 0) if known else None,
            {reason: self.dropped.get(reason, 0) + other.dropped.get(reason, 0) for reason in reasons},
            {part: self.by_part.get(part, 0) + other.by_part.get(part, 0) for part in parts},
            tuple(one for reason in reasons for one in _first(reason, (*self.samples, *other.samples))),
        )


def _first(reason: str, samples: tuple[DroppedLine, ...]) -> tuple[DroppedLine, ...]:
    return tuple(one for one in samples if one.reason == reason)[:SAMPLES]


# Counts of no batch, and of a batch that nothing has counted.
NO_LINES, UNKNOWN_LINES = LineCounts(lines=0), LineCounts()


@dataclass(frozen=True, slots=True)
class LandedBatch:
    """A batch of a source, the versions of the landing table that contain it (more than one of a stream), its parts.

    `extents` is what was read of each part, counted before the landing query; empty if an engine counts the batch as a
    whole. `counts` are of all its lines.
    """

    commits: tuple[int, ...]
    parts: Positions
    extents: Mapping[str, Extent]
    counts: LineCounts
    lost: tuple[AcceptedLoss, ...] = ()

    @property
    def version(self) -> int:
        """Return the version of the table with all of the batch."""
        return self.commits[-1]


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a write: `version` is the table's, equal to the base if nothing changed.

    `notes` are for the user. `batches` are the ones that a landing has committed.
    """

    version: int
    receipt: Receipt
    notes: tuple[str, ...] = ()
    batches: tuple[LandedBatch, ...] = ()

    @property
    def counts(self) -> LineCounts:
        """Return what a landing did with the lines of all its batches."""
        return sum((batch.counts for batch in self.batches), NO_LINES)

    @property
    def dropped(self) -> Mapping[str, int]:
        """Return the numbers of lines that a landing left out, by reason; without those of 0."""
        return {reason: count for reason, count in self.counts.dropped.items() if count}


@dataclass(frozen=True, slots=True)
class Landing:
    """A source that lands in a table.

    `query` reads the relation `lines(value string, file string)`, one row per line of text, and returns the table's
    columns; `file` is the line's origin in `source`. It may be a function, since mostly nothing lands and the query
    isn't needed. `checkpoint` is the engine's folder for the parts that it has landed. `accept_lost`: a planned part
    that is gone is left out. `own_commit`: as in `Write`. `drops`: the reasons why the query may leave out lines; if
    there are any, such lines are rows with their reason in a last column `_dropped`, NULL for all others. `base`: the
    table's version at the start of the tick, if it is known; behind a later commit of another writer nothing lands.
    """

    table: TableSpec
    source: SourceReader
    checkpoint: str
    query: str | Callable[[], str]
    app_id: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    accept_lost: bool = False
    own_commit: bool = True
    drops: tuple[str, ...] = ()
    base: int | None = None

    @property
    def sql(self) -> str:
        """Return the text of the query."""
        return self.query if isinstance(self.query, str) else self.query()


NONE_GIVEN: Mapping[str, pa.Table] = MappingProxyType({})


class Engine(Protocol):
    """The operations of an engine. Paths are absolute; SQL is in `dialect`; every failure is an `EngineError`."""

    @property
    def name(self) -> str:
        """Return `spark` or `duckdb`, as in a profile."""

    @property
    def dialect(self) -> Dialect:
        """Return the engine's SQL dialect."""

    def start(self) -> None:
        """Open the engine; calling it again does nothing."""

    def create(self, table: TableSpec) -> None:
        """Create the empty table, with its change feed on, as version 0, unless it exists."""

    def head(self, path: str) -> int | None:
        """Return the latest version of a table; None if there is no table."""

    def land(self, landing: Landing) -> Written:
        """Land all pending lines of the source, exactly once. The result has the table's latest version."""

    def write(self, write: Write) -> Written:
        """Run one statement. Raise if the table isn't at `base` or another commit intervenes."""

    def restore(self, path: str, version: int, head: int | None = None) -> None:
        """Restore a table's content of `version`, as a new commit; with `head`, only if that is the latest version."""

    def query(self, sql: str, relations: tuple[Relation, ...], given: Mapping[str, pa.Table] = NONE_GIVEN) -> pa.Table:
        """Run a SELECT over the relations and return its rows (timestamps are UTC microseconds).

        `given` are rows in memory, by the name that the SELECT has for them.
        """

    def parts(self, sql: str, relations: tuple[Relation, ...], rows: int) -> Iterator[pa.Table]:
        """Run a SELECT over the relations and yield its rows, `rows` at a time; nothing if there are none."""

    def close(self) -> None:
        """Release all resources."""


class Catalog(Protocol):
    """The schemas and tables of a metastore, each table a folder of Delta files; every failure is an `EngineError`."""

    def tables(self, schema: str) -> frozenset[str]:
        """Return the names of a schema's tables; create the schema if it doesn't exist."""

    def location(self, schema: str, table: str) -> str:
        """Return the URI of a table's folder; "" for a view."""

    def create(self, schema: str, table: str, folder: str) -> None:
        """Create a table over a folder; an existing table stays."""

    def drop(self, schema: str, table: str) -> None:
        """Drop a table; its folder stays."""
