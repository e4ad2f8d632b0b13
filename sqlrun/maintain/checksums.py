"""Checksums of every table's rows at each tick, to detect corrupt or doubled writes. Shell: the engine.

A table's checksum is its number of rows and the sum of their hashes (`row_hash.py`), which doesn't depend on their
order. A tick adds inserted rows and subtracts deleted ones, from the table's change feed. `verify --checksums` sums the
rows that the table has. If the two differ, the table isn't what the change feed said to the tables that read it.

DuckDB hashes by its own function. Spark sums up what is too large for one machine, and hashes texts by MD5, as DuckDB
can, too. A checksum says which of them made it. If the engine of a tick can't continue it, the tick sums up all rows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sqlrun.engine_api import Dialect, Engine, Relation, StoredColumn
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.maintain import row_hash
from sqlrun.maintain.tick_context import TickContext
from sqlrun.project import model_of
from sqlrun.publish.reader import query
from sqlrun.publish.table_state import Published, TableState

# Maximum number of rows that the engine for checks sums up, if another engine maintains the table.
FEW = 1_000_000
BITS = 64
# The hash function that both engines have: MD5 of the row's text.
PORTABLE = ""
OTHER_DUCKDB = (
    "Its checksum is of another version of DuckDB, whose hash function differs. Use that version, or compare rows: "
    "`sqlrun verify`. The next build records a new checksum."
)


@dataclass(frozen=True, slots=True)
class Checksum:
    """A table's number of rows, and the sum of their hashes modulo 2^64.

    `function`: the hash function, PORTABLE or what `duckdb_function` returned.
    """

    rows: int
    total: int
    function: str = PORTABLE

    def plus(self, other: Checksum) -> Checksum:
        """Return the sum of two checksums by the same function; deleted rows count negatively."""
        assert self.function == other.function
        return Checksum(self.rows + other.rows, (self.total + other.total) % 2**BITS, self.function)

    def __str__(self) -> str:
        """Return the text in the ledger: rows, sum in hexadecimal digits, and function unless it is portable."""
        return f"{self.rows} {self.total:016x} {self.function}".rstrip()


def read(text: str) -> Checksum:
    """Return the checksum of a text from the ledger.

    >>> read("3 00000000000000ff")
    Checksum(rows=3, total=255, function='')
    >>> read("3 00000000000000ff duckdb:0123abcd").function
    'duckdb:0123abcd'
    """
    rows, total, *function = text.split(" ")
    return Checksum(int(rows), int(total, 16), *function)


@functools.cache
def duckdb_function() -> str:
    """Return the name of this DuckDB's hash function, with the first digits of a hash of known values."""
    (row,) = query(row_hash.DUCKDB_PROBE, ()).to_pylist()
    return f"duckdb:{row['number']:016x}"[: len("duckdb:") + 8]


def number(columns: Iterable[StoredColumn], function: str, dialect: Dialect) -> str:
    """Return SQL for a row's number by a hash function that the engine has."""
    return row_hash.number(columns, dialect) if function == PORTABLE else row_hash.duckdb_number(columns)


def continuable(state: TableState | None, dialect: Dialect) -> Checksum | None:
    """Return a table's recorded checksum if the engine can add to it; None if there is none, or by another function."""
    if state is None or not state.checksum:
        return None
    recorded = read(state.checksum)
    has_function = recorded.function == PORTABLE or (dialect == "duckdb" and recorded.function == duckdb_function())
    return recorded if has_function else None


NOTHING: Mapping[str, Checksum | None] = MappingProxyType({})


def add_to_states(
    context: TickContext, tables: tuple[str, ...], added: Mapping[str, Checksum | None] = NOTHING
) -> None:
    """Record the checksums of tables after this tick; `added` has the gains that are already known."""
    for name in tables:
        made = after(context, name, added.get(name))
        with context.lock:
            context.states[name] = context.states[name].with_checksum(str(made))


def after(context: TickContext, name: str, added: Checksum | None = None) -> Checksum:
    """Return a table's checksum after the tick: the previous one plus the change, or that of all rows.

    All rows are summed up if the table is new, or the engine lacks the hash function of the previous checksum: another
    version of DuckDB computed it, or DuckDB did and now Spark has to sum up a large change.
    """
    table, now = context.plan.tables[name], context.states[name]
    before, path, columns = table.state, table.spec.path, table.spec.columns
    if before is not None and added is not None:
        return read(before.checksum).plus(added)
    commits = context.commits(name, before.version, now.version) if before is not None else ()
    engine = _engine(context, delta_table.rows_changed(path, commits) if commits else 0)
    recorded = continuable(before, engine.dialect)
    if recorded is None:
        engine = _engine(context, delta_table.rows_at(path, now.version))
        whole = Relation("summed", path, columns, "new", version=now.version)
        return _added_up(engine, whole, duckdb_function() if engine.dialect == "duckdb" else PORTABLE)
    if not commits:
        return recorded
    changes = Relation("summed", path, columns, "changes", commits=commits)
    return recorded.plus(_added_up(engine, changes, recorded.function))


def _engine(context: TickContext, rows: int) -> Engine:
    return context.reader if rows <= FEW else context.engine


def _added_up(engine: Engine, rows: Relation, function: str) -> Checksum:
    return _of_row(engine.query(sql(rows, engine.dialect, function), (rows,)).to_pylist()[0], function)


def _of_row(row: dict[str, str], function: str) -> Checksum:
    return Checksum(int(row["n"]), int(row["total"]) % 2**BITS, function)


def sql(rows: Relation, dialect: Dialect, function: str) -> str:
    """Return the query that sums up a relation named `summed`, as texts, which both engines return exactly."""
    changes = rows.row_set == "changes"
    kind, weight = ("string", "cast(_weight as decimal(2, 0))") if dialect == "spark" else ("varchar", "_weight")
    each = number(rows.columns, function, dialect)
    total = f"sum({weight} * {each})" if changes else f"sum({each})"
    count = "sum(_weight)" if changes else "count(*)"
    return (
        f"select cast(coalesce({count}, 0) as {kind}) as n, cast(coalesce({total}, 0) as {kind}) as total from summed"
    )


@dataclass(frozen=True, slots=True)
class Found:
    """One table's checksum in the ledger and its actual one. `message`: why there is none."""

    table: str
    recorded: Checksum
    actual: Checksum | None
    message: str = ""

    @property
    def ok(self) -> bool:
        """Return whether the two are equal."""
        return self.recorded == self.actual


def compare(warehouse: str, published: Published, names: tuple[str, ...]) -> Iterator[Found]:
    """Yield the comparison for each table of the named models, hidden ones included, at a published tick."""
    for name, state in sorted(published.tables.items()):
        if state.checksum and model_of(name) in names:
            yield _found(warehouse, name, state)


def _found(warehouse: str, name: str, state: TableState) -> Found:
    recorded = read(state.checksum)
    if continuable(state, "duckdb") is None:
        return Found(name, recorded, None, OTHER_DUCKDB)
    path = f"{warehouse}/{state.path}"
    try:
        rows = Relation("summed", path, _columns(path, state.version), "new", version=state.version)
        there = _of_row(query(sql(rows, "duckdb", recorded.function), [rows]).to_pylist()[0], recorded.function)
    except EngineError as error:
        return Found(name, recorded, None, str(error))
    return Found(name, recorded, there)


def _columns(path: str, version: int) -> tuple[StoredColumn, ...]:
    """Return a table's own columns: the ledger has only the columns that readers see."""
    return delta_table.columns_at(path, version)
