"""Compiled stages in memory: inputs, tables and their changes, without files or ledger. Shell: DuckDB.

Each relation has three tables, named as in statements: `x__new` is the table after the tick, `x__old` before it, and
`x__changes` contains inserted and deleted rows, each with a weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from sqlrun.engine_api import Dialect
from sqlrun.engines.duckdb.memory_texts import Written
from sqlrun.incremental.script import WEIGHT
from sqlrun.incremental.stages import Stage
from sqlrun.transpile.writer import identifier, names, type_name

# Name and Spark SQL type.
Columns = Sequence[tuple[str, str]]
# Returns the statement that updates a stage after changes of these relations; None if it can't have changed.
Write = Callable[[Stage, frozenset[str]], Written | None]

# Maximum number of seconds for a query over hand-written rows.
LONGEST = 60.0
# A second barrier after the check of the model's text: a query that passed it still finds no file and no network.
LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "memory_limit": "2GB",
    "max_temp_directory_size": "0B",
    "threads": 1,
}


def connect(**settings: bool) -> Any:
    """Open an in-memory DuckDB without access to files and the network."""
    import duckdb

    connection = duckdb.connect(config=LOCKED | settings)
    connection.execute("set TimeZone = 'UTC'; set lock_configuration = true")
    return connection


def failures() -> type[Exception]:
    """Return DuckDB's base error class, imported on demand."""
    import duckdb

    return duckdb.Error


class Computer(Protocol):
    """The engine that runs statements over a memory's tables."""

    @property
    def dialect(self) -> Dialect:
        """Return the SQL dialect that it accepts."""

    def foresee(self, stage: Stage, text: str) -> None:
        """Announce a SELECT of a stage's public columns that will run after the stage is written."""

    def carry_out(self, memory: Memory, stage: Stage, texts: Sequence[str]) -> None:
        """Execute a stage's statement: it updates `x__new`; `x__old` has the table before it."""

    def rows(self, memory: Memory, text: str) -> list[tuple[Any, ...]]:
        """Run a SELECT over the relations."""


class OnDuckDB:
    """Runs statements in the tables' own database."""

    dialect: Dialect = "duckdb"

    def foresee(self, stage: Stage, text: str) -> None:
        """Do nothing: two queries cost as much as one combined query."""

    def carry_out(self, memory: Memory, stage: Stage, texts: Sequence[str]) -> None:
        """Execute the statement's texts one after the other."""
        memory.connection.execute("; ".join(texts))

    def rows(self, memory: Memory, text: str) -> list[tuple[Any, ...]]:
        """Run a SELECT."""
        found: list[tuple[Any, ...]] = memory.connection.execute(text).fetchall()
        return found


class Memory:
    """Inputs and stages as tables in memory; `tick` updates the stages after changes of the inputs."""

    def __init__(self, connection: Any, computer: Computer) -> None:
        self.connection, self.computer = connection, computer
        self.columns: dict[str, Columns] = {}
        self._stale: set[str] = set()  # relations whose `old` and `changes` are those of the previous tick
        self._empty: set[str] = set()  # relations whose `old` has never had a row
        self._noted: set[str] = set()  # stages whose `changes` may have rows

    def hold(self, name: str, columns: Columns) -> None:
        """Create the empty tables of a relation."""
        shape = ", ".join(f"{identifier(n, 'duckdb')} {type_name(kind, 'duckdb')}" for n, kind in columns)
        new, old, changes = (relation(name, row_set) for row_set in ("new", "old", "changes"))
        self.connection.execute(
            f"create or replace temp table {new} ({shape}); create or replace temp table {old} ({shape}); "
            f"create or replace temp table {changes} ({shape}, {WEIGHT} bigint)"
        )
        self.columns[name] = columns
        self._empty.add(name)

    def load(self, name: str) -> bool:
        """Apply an input's `changes` to its table; return whether there were any."""
        new, old, changes = (relation(name, row_set) for row_set in ("new", "old", "changes"))
        weights = f"count(*) filter ({WEIGHT} > 0), count(*) filter ({WEIGHT} < 0), max({WEIGHT})"
        inserted, deleted, most = self.connection.execute(f"select {weights} from {changes}").fetchall()[0]
        self._settle(name)
        if not inserted and not deleted:
            return False
        listed = names((n for n, _ in self.columns[name]), "duckdb")
        added = f"select {listed} from {changes} where {WEIGHT} > 0"
        if inserted and most > 1:
            added = f"select {listed} from (select *, unnest(range({WEIGHT})) as _copy from {changes})"
        taken = f"select {listed} from (select *, unnest(range(-{WEIGHT})) as _copy from {changes})"
        if deleted:
            text = f"(select {listed} from {old} union all {added}) except all {taken}"
            self.connection.execute(f"delete from {new}; insert into {new} {text}")
        else:
            self.connection.execute(f"insert into {new} {added}")
        self._stale.add(name)
        return True

    def tick(self, stages: Iterable[Stage], changed: Iterable[str], write: Write, last: str = "") -> set[str]:
        """Update stages in order; return the names of all changed relations.

        Changes of the `last` stage aren't recorded, because nothing reads them.
        """
        found = set(changed)
        for stage in stages:
            self._settle(stage.name)
            written = write(stage, frozenset(found))
            if written is not None:
                self._stale.add(stage.name)
                self.computer.carry_out(self, stage, written.texts)
                if stage.name != last and self._record(stage.name):
                    found.add(stage.name)
        return found

    def forget(self, inputs: Iterable[str]) -> None:
        """Clear the changes of these inputs before the next tick."""
        self.connection.execute("; ".join(f"delete from {relation(name, 'changes')}" for name in inputs))

    def _settle(self, name: str) -> None:
        """Copy the table's current contents to `old`."""
        if name in self._stale:
            new, old = relation(name, "new"), relation(name, "old")
            clear = "" if name in self._empty else f"delete from {old}; "
            self.connection.execute(f"{clear}insert into {old} from {new}")
            self._stale.discard(name)
            self._empty.discard(name)

    def _record(self, name: str) -> bool:
        """Record the differences between a table and its `old` as `changes`; return whether there are any."""
        new, old, changes = (relation(name, row_set) for row_set in ("new", "old", "changes"))
        listed = names((n for n, _ in self.columns[name]), "duckdb")
        clear = f"delete from {changes}; " if name in self._noted else ""
        text = f"select {listed}, 1 from {new}"
        if name not in self._empty:
            text = (
                f"select {listed}, 1 from (select {listed} from {new} except all select {listed} from {old}) "
                f"union all select {listed}, -1 from (select {listed} from {old} except all select {listed} from {new})"
            )
        count = self.connection.execute(f"{clear}insert into {changes} {text}").fetchall()
        self._noted.add(name)
        return bool(count[0][0])


def relation(name: str, row_set: str) -> str:
    """Return the name of one of a relation's tables."""
    return identifier(f"{name}__{row_set}", "duckdb")
