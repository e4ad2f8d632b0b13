"""Single calls over one table of typed rows, run on DuckDB as sqlrun compiles them, to compare with Spark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import duckdb

from sqlrun.errors import Place, ProjectError
from sqlrun.incremental import determinism
from sqlrun.parse import parse
from sqlrun.parse.parse import Query
from sqlrun.parse.spark_only import mixed_problems, problems
from sqlrun.project import Column, Config, Model, Rendered
from sqlrun.transpile.refusals import Refusal
from sqlrun.transpile.templates import UnlikeSparkError
from sqlrun.transpile.writer import type_name
from tests.support.function_cases import text
from tests.support.memory import connect

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Rows:
    """A table: its name, its columns with types, and its rows, each value a Spark literal or None."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]

    @property
    def schema(self) -> dict[str, dict[str, dict[str, str]]]:
        return {"ref": {self.name: dict(self.columns)}}

    def on_spark(self) -> str:
        """Return the rows as a query for Spark."""
        lines = [
            ", ".join(
                f"cast({'null' if value is None else value} as {kind}) as {name}"
                for value, (name, kind) in zip(row, self.columns, strict=True)
            )
            for row in self.rows
        ]
        return " union all ".join(f"select {line}" for line in lines)

    def on_duckdb(self, values: Iterable[Row]) -> duckdb.DuckDBPyConnection:
        """Return a connection with the rows, under the table name that compiled queries use."""
        connection = connect()
        kinds = ", ".join(f'"{name}" {type_name(kind, "duckdb")}' for name, kind in self.columns)
        connection.execute(f'create table "{self.name}__new" ({kinds})')
        marks = ", ".join("?" for _ in self.columns)
        connection.executemany(f'insert into "{self.name}__new" values ({marks})', [list(row) for row in values])
        return connection


def query(sql: str, names: Sequence[str], table: Rows) -> Query | str:
    """Return a query over the table, parsed by sqlrun; a text is the reason for its rejection."""
    columns = tuple(Column(name, "string", "", Place("x")) for name in names)
    model = Model("asked", "asked.sql", sql, "asked.yml", "", (), False, columns, Config(), ())
    lines = tuple(range(1, sql.count("\n") + 2))
    try:
        made = parse.query(Rendered(model, sql, (table.name,), (), lines, Config()), table.schema)
        determinism.check(made.tree)
    except ProjectError as error:
        return f"refused {error.problems[0].code}"
    except Refusal as refusal:
        return f"refused {refusal.reason.code}"
    if problems([made]) or mixed_problems(made, table.schema):
        return "refused SR310"
    return made


def on_duckdb(connection: duckdb.DuckDBPyConnection, sql: str, names: Sequence[str], table: Rows) -> list[Row] | str:
    """Return DuckDB's rows; a text says that sqlrun rejects the query, or which error it raises."""
    made = query(sql, names, table)
    if isinstance(made, str):
        return made
    try:
        return connection.sql(text(made, "duckdb")).fetchall()
    except UnlikeSparkError:
        return "refused SR310"
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException):
        return "refused SR310"  # by binding.py, before a tick
    except duckdb.Error as error:
        return f"error {str(error).splitlines()[0][:100]}"


def plain(value: Any) -> Any:
    """Return a value in a form that is equal for both engines: doubles to nine digits, a struct as a row."""
    match value:
        case Mapping():
            return tuple(plain(part) for part in value.values())
        case list() | tuple():
            return tuple(plain(part) for part in value)
        case float():
            return "NaN" if math.isnan(value) else f"{value + 0.0:.9g}d"
        case Decimal():
            return int(value) if value.as_tuple().exponent == 0 else f"{value}m"
        case bytearray() | bytes():
            return f"x{bytes(value).hex()}"
        case datetime():
            return value.replace(tzinfo=None)
        case bool():
            return str(value)
        case _:
            return value
