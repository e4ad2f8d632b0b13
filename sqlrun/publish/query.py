"""Rows of a query over the tables of one published tick, as Arrow, pandas or Polars. Shell: Delta files, DuckDB."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlrun.errors import EngineError, UsageError
from sqlrun.publish import query_text, reader
from sqlrun.publish.ledger import Ledger
from sqlrun.runtime import packages
from sqlrun.storage.urls import is_url
from sqlrun.transpile.spark_types import Kind

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Result:
    """Rows of a query, and the published tick that they are of."""

    table: pa.Table
    tick: int
    as_of: datetime

    def arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self.table

    def pandas(self) -> pd.DataFrame:
        """Return the rows as a DataFrame of pandas. Raises: UsageError (SR133) if pandas isn't installed."""
        try:
            return self.table.to_pandas()
        except ImportError:
            why = "SR133 .pandas() needs the package pandas, which isn't installed"
            raise UsageError(f"{why}. {packages.install('gx')}, or use .arrow()") from None

    def polars(self) -> pl.DataFrame:
        """Return the rows as a DataFrame of Polars. Raises: UsageError if Polars isn't installed."""
        try:
            import polars as pl
        except ImportError:
            raise UsageError(
                "Polars isn't installed. Run `pip install polars`, or use .arrow() or .pandas()."
            ) from None
        return pl.DataFrame(self.table)


def run(text: str, warehouse: str, tick: int | None, env: str) -> Result:
    """Return the rows of a query in Spark SQL at a published tick, the latest by default.

    DuckDB may open the warehouse's files alone. On an object store it has no such limit: only the check of the query's
    text keeps it from other files.

    Raises: ProjectError with the query's mistakes; UsageError if there is no such tick; EngineError if DuckDB fails.
    """
    where = warehouse if is_url(warehouse) else str(Path(warehouse).resolve())
    published = reader.tick_of(Ledger(where, "", env), tick)
    known = {name: reader.find(published, where, name) for name in reader.names(published)}
    tables = {name: {column.name: column.type for column in each.columns} for name, each in known.items()}
    query = query_text.read(text, tables, published.as_of)
    relations = [replace(known[name], name=f"{name}{query_text.ENDING}") for name in query.tables]
    found = reader.query(query.sql, relations, folder="" if is_url(where) else where)
    return Result(_typed(found, query.columns), published.tick, published.as_of)


def _typed(table: pa.Table, columns: Iterable[tuple[str, Kind | None]]) -> pa.Table:
    """Return a table with these names, and numbers of Spark's types: DuckDB's sums of whole numbers are wider."""
    import pyarrow as pa

    made, names = [], []
    for (name, kind), values in zip(columns, table.columns, strict=True):
        wanted = None if kind is None else _number(kind)
        try:
            made.append(values if wanted is None or values.type == wanted else values.cast(wanted))
        except pa.ArrowInvalid as error:
            raise EngineError(f"a value of `{name}` doesn't fit its type {kind}: {error}") from error
        names.append(name)
    return pa.table(made, names=names)


def _number(kind: Kind) -> Any:
    """Return the Arrow type of a number; None for another type."""
    import pyarrow as pa

    plain = {"tinyint": pa.int8, "smallint": pa.int16, "int": pa.int32, "bigint": pa.int64, "float": pa.float32,
             "double": pa.float64}  # fmt: skip
    if kind.name == "decimal":
        return pa.decimal128(*kind.size)
    return plain[kind.name]() if kind.name in plain else None
