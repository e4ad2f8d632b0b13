"""What a model's query gives over rows that are at hand, as values. Shell: DuckDB, in memory and cut off from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sqlrun.engines.duckdb.memory import LONGEST, connect, failures
from sqlrun.errors import EngineError, UsageError, first_line
from sqlrun.incremental import types
from sqlrun.incremental.compile import whole_query
from sqlrun.incremental.script import Moment
from sqlrun.parse import spark_only
from sqlrun.parse.parse import Query
from sqlrun.project import Column, Project, Row
from sqlrun.runtime.clock import parse_time
from sqlrun.runtime.stopping import limited
from sqlrun.test_definitions.values import literal
from sqlrun.transpile.writer import identifier, type_name
from sqlrun.unit_tests.run.steps import NO_TIME

if TYPE_CHECKING:
    import pyarrow as pa

NUMBER = "_n"  # the place of a row among its input's


class Answers(AbstractContextManager["Answers"]):
    """One model's query over inputs that are put in; of each, some rows can be left out and taken in again."""

    def __init__(self, project: Project, queries: Mapping[str, Query], name: str, as_of: str = "") -> None:
        """Open DuckDB. Raises: UsageError where DuckDB would answer the query otherwise than Spark."""
        query = queries[name]
        other = spark_only.problems([query], project.functions)
        if other:
            raise UsageError(
                f"{other[0].code} {other[0].place}  {other[0].message}. sqlrun computes these rows on DuckDB"
            )
        self.columns = query.rendered.model.columns
        self.inputs = inputs(project, query)
        text = whole_query(queries, name, (), Moment(parse_time(as_of or NO_TIME), None), "duckdb")
        names = {c: self._column(c) for c in query.columns}
        items = ", ".join(f"cast({identifier(c, 'duckdb')} as {type_name(column.type, 'duckdb')}) as "
                          f"{identifier(c, 'duckdb')}" for c, column in names.items())  # fmt: skip
        self._text = f"select {items} from ({text})"
        self._connection = connect()
        for table, columns in self.inputs.items():
            shape = ", ".join(f"{identifier(c.name, 'duckdb')} {type_name(c.type, 'duckdb')}" for c in columns)
            self._connection.execute(f"create temp table {self._all(table)} ({shape}, {NUMBER} bigint)")
            self._keep(table, "true")

    def _column(self, name: str) -> Column:
        column = next((c for c in self.columns if c.name == name), None)
        if column is None:
            raise UsageError(f"the contract lacks the column `{name}` of the query")
        return column

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close DuckDB."""
        self._connection.close()

    def _all(self, table: str) -> str:
        return identifier(f"{table}__all", "duckdb")

    def _keep(self, table: str, condition: str) -> None:
        shown = ", ".join(identifier(c.name, "duckdb") for c in self.inputs[table])
        name = identifier(f"{table}__new", "duckdb")
        text = f"create or replace temp view {name} as select {shown} from {self._all(table)} where {condition}"
        self._connection.execute(text)

    def put(self, table: str, rows: pa.Table) -> None:
        """Make these the rows of an input, in place of others."""
        import pyarrow as pa

        numbered = rows.append_column(NUMBER, pa.array(range(rows.num_rows), pa.int64()))
        names = ", ".join(identifier(name, "duckdb") for name in numbered.column_names)
        self._connection.execute(f"delete from {self._all(table)}")
        self._connection.register("_put", numbered)
        self._connection.execute(f"insert into {self._all(table)} ({names}) select {names} from _put")
        self._connection.unregister("_put")
        self._keep(table, "true")

    def type_in(self, table: str, rows: Iterable[Row]) -> None:
        """Make these the rows of an input, as a unit test would give them. Raises: ValueError."""
        kinds = [(c.name, types.parse(c.type)) for c in self.inputs[table]]
        self._connection.execute(f"delete from {self._all(table)}")
        for number, row in enumerate(rows):
            values = ", ".join([*(literal(row.get(n), k) for n, k in kinds), str(number)])
            self._connection.execute(f"insert into {self._all(table)} values ({values})")

    def only(self, table: str, numbers: Iterable[int]) -> None:
        """Leave out all rows of an input but these, by their place in what was put in."""
        chosen = ", ".join(map(str, numbers))
        self._keep(table, f"{NUMBER} in ({chosen})" if chosen else "false")

    def rows(self) -> list[dict[str, Any]]:
        """Ask the query; its rows in an order of their own. Raises: EngineError."""
        with limited(self._connection.interrupt, LONGEST):
            try:
                found = list(self._connection.sql(self._text).to_arrow_table().to_pylist())
                return sorted(found, key=_order)
            except failures() as error:
                raise EngineError(first_line(error)) from None


def _order(row: Row) -> list[tuple[bool, Any]]:
    """Order rows by all values that can be compared, NULL last."""
    plain = (value for value in row.values() if not isinstance(value, list | dict))
    return [(value is None, value if value is not None else 0) for value in plain]


def inputs(project: Project, query: Query) -> dict[str, tuple[Column, ...]]:
    """Return what a query reads, as its compiled SQL does, with the columns of its contract."""
    known = {model.name: model.columns for model in project.models} | {
        seed.name: seed.columns for seed in project.seeds
    }
    found = {name: known[name] for name in query.rendered.refs}
    return found | {s.table: s.columns for s in project.sources if s.table in query.rendered.sources}


def asks_for_time(query: Query) -> bool:
    """Return whether a query asks for the tick's time."""
    from sqlglot import exp

    return query.tree.find(exp.CurrentTimestamp, exp.CurrentDate) is not None
