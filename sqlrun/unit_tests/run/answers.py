"""Results of a model's query over given rows. Shell: DuckDB, in memory and without access to files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sqlrun.engines.duckdb import data_errors
from sqlrun.engines.duckdb.memory import LONGEST, connect, failures
from sqlrun.errors import UsageError
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

NUMBER = "_n"  # a row's number within its input


class Answers(AbstractContextManager["Answers"]):
    """One model's query over given inputs. Rows of an input can be hidden and shown again."""

    def __init__(self, project: Project, queries: Mapping[str, Query], name: str, as_of: str = "") -> None:
        """Open DuckDB. Raises: UsageError if DuckDB's result would differ from Spark's."""
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
            self._connection.execute(f"create temp table {self._full_table(table)} ({shape}, {NUMBER} bigint)")
            self._show(table, "true")

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

    def _full_table(self, table: str) -> str:
        return identifier(f"{table}__all", "duckdb")

    def _show(self, table: str, condition: str) -> None:
        shown = ", ".join(identifier(c.name, "duckdb") for c in self.inputs[table])
        name = identifier(f"{table}__new", "duckdb")
        text = f"create or replace temp view {name} as select {shown} from {self._full_table(table)} where {condition}"
        self._connection.execute(text)

    def put(self, table: str, rows: pa.Table) -> None:
        """Replace the rows of an input."""
        import pyarrow as pa

        numbered = rows.append_column(NUMBER, pa.array(range(rows.num_rows), pa.int64()))
        names = ", ".join(identifier(name, "duckdb") for name in numbered.column_names)
        self._connection.execute(f"delete from {self._full_table(table)}")
        self._connection.register("_put", numbered)
        self._connection.execute(f"insert into {self._full_table(table)} ({names}) select {names} from _put")
        self._connection.unregister("_put")
        self._show(table, "true")

    def type_in(self, table: str, rows: Iterable[Row]) -> None:
        """Replace the rows of an input by rows as a unit test has them. Raises: ValueError."""
        kinds = [(c.name, types.parse(c.type)) for c in self.inputs[table]]
        self._connection.execute(f"delete from {self._full_table(table)}")
        for number, row in enumerate(rows):
            values = ", ".join([*(literal(row.get(n), k) for n, k in kinds), str(number)])
            self._connection.execute(f"insert into {self._full_table(table)} values ({values})")

    def only(self, table: str, numbers: Iterable[int]) -> None:
        """Hide all rows of an input except these, given by their number."""
        chosen = ", ".join(map(str, numbers))
        self._show(table, f"{NUMBER} in ({chosen})" if chosen else "false")

    def rows(self) -> list[dict[str, Any]]:
        """Return the query's rows, sorted. Raises: EngineError."""
        with limited(self._connection.interrupt, LONGEST):
            try:
                found = list(self._connection.sql(self._text).to_arrow_table().to_pylist())
                return sorted(found, key=_order)
            except failures() as error:
                raise data_errors.as_engine_error(error) from None


def _order(row: Row) -> list[tuple[bool, Any]]:
    """Return a sort key of all comparable values, NULL last."""
    plain = (value for value in row.values() if not isinstance(value, list | dict))
    return [(value is None, value if value is not None else 0) for value in plain]


def inputs(project: Project, query: Query) -> dict[str, tuple[Column, ...]]:
    """Return the inputs of a query by their name in compiled SQL, with the columns of their contracts."""
    known = {model.name: model.columns for model in project.models} | {
        seed.name: seed.columns for seed in project.seeds
    }
    found = {name: known[name] for name in query.rendered.refs}
    return found | {s.table: s.columns for s in project.sources if s.table in query.rendered.sources}


def asks_for_time(query: Query) -> bool:
    """Return whether a query uses the tick's time."""
    from sqlglot import exp

    return query.tree.find(exp.CurrentTimestamp, exp.CurrentDate) is not None
