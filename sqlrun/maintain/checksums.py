"""Checksums of every table's rows at each tick, to detect corrupt or doubled writes. Shell: the engine.

A table's checksum is its number of rows and the sum of their hashes (`row_hash.py`), which doesn't depend on their
order. A tick adds inserted rows and subtracts deleted ones, from the table's change feed. `verify --checksums` sums the
rows that the table has. If the two differ, the table isn't what the change feed said to the tables that read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


@dataclass(frozen=True, slots=True)
class Checksum:
    """A table's number of rows, and the sum of their hashes modulo 2^64."""

    rows: int
    total: int

    def plus(self, other: Checksum) -> Checksum:
        """Return the sum of two checksums; deleted rows count negatively."""
        return Checksum(self.rows + other.rows, (self.total + other.total) % 2**BITS)

    def __str__(self) -> str:
        """Return the text in the ledger: rows, then the sum in hexadecimal digits."""
        return f"{self.rows} {self.total:016x}"


def read(text: str) -> Checksum:
    """Return the checksum of a text from the ledger.

    >>> read("3 00000000000000ff")
    Checksum(rows=3, total=255)
    """
    rows, total = text.split(" ")
    return Checksum(int(rows), int(total, 16))


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
    """Return a table's checksum after the tick: the previous one plus the change, or that of a new table's rows."""
    table, now = context.plan.tables[name], context.states[name]
    before = table.state
    columns = table.spec.columns
    if before is None or not before.checksum:
        rows = delta_table.rows_at(table.spec.path, now.version)
        whole = Relation("summed", table.spec.path, columns, "new", version=now.version)
        return _added_up(_engine(context, rows), whole)
    commits = context.commits(name, before.version, now.version)
    if not commits:
        return read(before.checksum)
    if added is not None:
        return read(before.checksum).plus(added)
    rows = delta_table.rows_changed(table.spec.path, commits)
    changes = Relation("summed", table.spec.path, columns, "changes", commits=commits)
    return read(before.checksum).plus(_added_up(_engine(context, rows), changes))


def _engine(context: TickContext, rows: int) -> Engine:
    return context.reader if rows <= FEW else context.engine


def _added_up(engine: Engine, rows: Relation) -> Checksum:
    return _of_row(engine.query(sql(rows, engine.dialect), (rows,)).to_pylist()[0])


def _of_row(row: dict[str, str]) -> Checksum:
    return Checksum(int(row["n"]), int(row["total"]) % 2**BITS)


def sql(rows: Relation, dialect: Dialect) -> str:
    """Return the query that sums up a relation named `summed`, as texts, which both engines return exactly."""
    changes = rows.row_set == "changes"
    kind, weight = ("string", "cast(_weight as decimal(2, 0))") if dialect == "spark" else ("varchar", "_weight")
    number = row_hash.number(rows.columns, dialect)
    total = f"sum({weight} * {number})" if changes else f"sum({number})"
    count = "sum(_weight)" if changes else "count(*)"
    return (
        f"select cast(coalesce({count}, 0) as {kind}) as n, cast(coalesce({total}, 0) as {kind}) as total from summed"
    )


@dataclass(frozen=True, slots=True)
class Found:
    """One table's checksum in the ledger and its actual one. `message`: why the table can't be read."""

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
    path = f"{warehouse}/{state.path}"
    try:
        rows = Relation("summed", path, _columns(path, state.version), "new", version=state.version)
        there = _of_row(query(sql(rows, "duckdb"), [rows]).to_pylist()[0])
    except EngineError as error:
        return Found(name, recorded, None, str(error))
    return Found(name, recorded, there)


def _columns(path: str, version: int) -> tuple[StoredColumn, ...]:
    """Return a table's own columns: the ledger has only the columns that readers see."""
    return delta_table.columns_at(path, version)
