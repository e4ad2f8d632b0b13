"""Compiled stages kept in memory: inputs, tables and their changes, without files or ledger. Shell: DuckDB.

Each relation has three tables, as statements name them: `x__new` is the table, `x__old` what it was before the tick,
and `x__changes` holds what came and left, a weight a row.
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
# Writes what brings a stage up to date where these relations changed; None where nothing can have.
Write = Callable[[Stage, frozenset[str]], Written | None]

# Seconds that a query over rows typed by hand may take.
LONGEST = 60.0
# What a model may do was checked when it was read; a query that got past that still finds no file and no network here.
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
    """Open an in-memory DuckDB that is cut off from files and the network."""
    import duckdb

    connection = duckdb.connect(config=LOCKED | settings)
    connection.execute("set TimeZone = 'UTC'; set lock_configuration = true")
    return connection


def failures() -> type[Exception]:
    """Name DuckDB's errors without importing it before it is used."""
    import duckdb

    return duckdb.Error


class Computer(Protocol):
    """Who runs statements over a memory's tables."""

    @property
    def dialect(self) -> Dialect:
        """Which SQL it takes."""

    def foresee(self, stage: Stage, text: str) -> None:
        """Know of a SELECT of a stage's public columns that will be asked when the stage is written."""

    def carry_out(self, memory: Memory, stage: Stage, texts: Sequence[str]) -> None:
        """Make a stage's `x__new` what its statement says; `x__old` holds what it was."""

    def rows(self, memory: Memory, text: str) -> list[tuple[Any, ...]]:
        """Run a SELECT over the relations."""


class OnDuckDB:
    """Runs statements where the tables are."""

    dialect: Dialect = "duckdb"

    def foresee(self, stage: Stage, text: str) -> None:
        """Two queries cost as much as one of both."""

    def carry_out(self, memory: Memory, stage: Stage, texts: Sequence[str]) -> None:
        """Execute the statement's texts one after the other."""
        memory.connection.execute("; ".join(texts))

    def rows(self, memory: Memory, text: str) -> list[tuple[Any, ...]]:
        """Run a SELECT."""
        found: list[tuple[Any, ...]] = memory.connection.execute(text).fetchall()
        return found


class Memory:
    """Inputs and stages as tables in memory; `tick` keeps the stages true to the inputs."""

    def __init__(self, connection: Any, computer: Computer) -> None:
        self.connection, self.computer = connection, computer
        self.columns: dict[str, Columns] = {}
        self._stale: set[str] = set()  # relations whose `old` and `changes` are those of the tick before
        self._empty: set[str] = set()  # relations whose `old` has never held a row
        self._noted: set[str] = set()  # stages whose `changes` may hold rows

    def hold(self, name: str, columns: Columns) -> None:
        """Make the empty tables of a relation."""
        shape = ", ".join(f"{identifier(n, 'duckdb')} {type_name(kind, 'duckdb')}" for n, kind in columns)
        new, old, changes = (relation(name, row_set) for row_set in ("new", "old", "changes"))
        self.connection.execute(
            f"create or replace temp table {new} ({shape}); create or replace temp table {old} ({shape}); "
            f"create or replace temp table {changes} ({shape}, {WEIGHT} bigint)"
        )
        self.columns[name] = columns
        self._empty.add(name)

    def load(self, name: str) -> bool:
        """Let what the `changes` of an input say come and leave; tell whether there was anything."""
        new, old, changes = (relation(name, row_set) for row_set in ("new", "old", "changes"))
        weights = f"count(*) filter ({WEIGHT} > 0), count(*) filter ({WEIGHT} < 0), max({WEIGHT})"
        came, left, most = self.connection.execute(f"select {weights} from {changes}").fetchall()[0]
        self._settle(name)
        if not came and not left:
            return False
        listed = names((n for n, _ in self.columns[name]), "duckdb")
        added = f"select {listed} from {changes} where {WEIGHT} > 0"
        if came and most > 1:
            added = f"select {listed} from (select *, unnest(range({WEIGHT})) as _copy from {changes})"
        taken = f"select {listed} from (select *, unnest(range(-{WEIGHT})) as _copy from {changes})"
        if left:
            text = f"(select {listed} from {old} union all {added}) except all {taken}"
            self.connection.execute(f"delete from {new}; insert into {new} {text}")
        else:
            self.connection.execute(f"insert into {new} {added}")
        self._stale.add(name)
        return True

    def tick(self, stages: Iterable[Stage], changed: Iterable[str], write: Write, last: str = "") -> set[str]:
        """Bring stages up to date in their order; name all relations that changed.

        Of a stage that is the `last`, what changed is not noted: nothing reads it.
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
        """Leave no changes of these inputs for the next tick."""
        self.connection.execute("; ".join(f"delete from {relation(name, 'changes')}" for name in inputs))

    def _settle(self, name: str) -> None:
        """Make `old` what the table is now."""
        if name in self._stale:
            new, old = relation(name, "new"), relation(name, "old")
            clear = "" if name in self._empty else f"delete from {old}; "
            self.connection.execute(f"{clear}insert into {old} from {new}")
            self._stale.discard(name)
            self._empty.discard(name)

    def _record(self, name: str) -> bool:
        """Compare a table with what it was, as `changes`; tell whether they differ."""
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
