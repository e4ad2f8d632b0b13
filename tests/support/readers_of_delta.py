"""Rows and change feeds of a Delta table as read by delta-rs, DuckDB and Polars; by Spark in tests/spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from sqlrun.engine_api import Relation
from sqlrun.engines.delta import table as delta_table
from tests.support.projects import READER

Rows = Counter[str]
KIND = "_change_type"


def rows(found: Iterable[Mapping[str, Any]]) -> Rows:
    """Return rows in one form for all readers: without commits and zones, each column as a value."""
    return Counter(repr(sorted((n, plain(v)) for n, v in row.items() if not n.startswith("_commit"))) for row in found)


def plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.replace(tzinfo=None).isoformat()
        case Decimal():
            return str(value)
        case _:
            return value


def by_delta_rs(path: str, version: int) -> Rows:
    return rows(pa.table(DeltaTable(path, version=version).scan().read_all()).to_pylist())


def by_query_builder(path: str, version: int) -> Rows:
    asked = QueryBuilder().register("t", DeltaTable(path, version=version)).execute("select * from t")
    return rows(pa.table(asked.read_all()).to_pylist())


def by_duckdb(path: str, version: int) -> Rows:
    table = Relation("t", path, delta_table.columns_at(path, version), "new", version=version)
    return rows(READER.query("select * from t", (table,)).to_pylist())


def by_polars(path: str, version: int) -> Rows:
    return rows(pl.scan_delta(path, version=version).collect().to_dicts())


READERS: dict[str, Callable[[str, int], Rows]] = {
    "delta-rs": by_delta_rs,
    "QueryBuilder": by_query_builder,
    "DuckDB": by_duckdb,
    "Polars": by_polars,
}


def feed_by_delta_rs(path: str, version: int) -> Rows:
    found = DeltaTable(path).load_cdf(starting_version=version, ending_version=version).read_all()
    return rows(pa.table(found).to_pylist())


def feed_by_polars(path: str, version: int) -> Rows:
    found = pl.from_arrow(pa.table(DeltaTable(path).load_cdf(version, version).read_all()))
    return rows(found.to_dicts())  # type: ignore[union-attr]


def weighed(feed: Rows) -> Rows:
    """Return a feed as numbers of added and removed rows: an update is both."""
    found: dict[str, int] = {}
    for text, times in feed.items():
        row = dict(eval(text))  # written by `rows`
        sign = 1 if row.pop(KIND) in ("insert", "update_postimage") else -1
        key = repr(sorted(row.items()))
        found[key] = found.get(key, 0) + sign * times
    return Counter({key: count for key, count in found.items() if count})


def feed_by_duckdb(path: str, version: int) -> Rows:
    """Return added and removed rows, as the engine's own statements read them."""
    columns = delta_table.columns_at(path, version)
    table = Relation("t", path, columns, "changes", commits=(version,))
    found: dict[str, int] = {}
    for row in READER.query("select * from t", (table,)).to_pylist():
        weight = row.pop("_weight")
        (key,) = rows([row])
        found[key] = found.get(key, 0) + weight
    return Counter({key: count for key, count in found.items() if count})
