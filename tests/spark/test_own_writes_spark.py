"""Tables whose MERGEs DuckDB wrote and sqlrun committed, as Spark reads them, merges into them and restores them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engine_api import Append, Engine, Merge, Relation, RowSet, StoredColumn, TableSpec
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.transpile.writer import type_name
from tests.engines.test_own_writes import VALUES, marked, ours, write

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TYPES = {f"c{number}": kind for number, kind in enumerate(VALUES)}
COLUMNS = (
    StoredColumn("k", "int"),
    *(StoredColumn(name, kind) for name, kind in TYPES.items()),
    StoredColumn("day", "string"),
    StoredColumn("hour", "timestamp"),
)
PLACES = (("'a b/c%:ü='", "'2026-03-01 12:00:00+00'"), ("null", "null"), ("'é\"\\\\#?'", "'1901-02-03 04:05:06.5+00'"))


def row(key: int, which: int | None, place: int) -> str:
    """Write a row: of ordinary values (0), of those at the edge (1), of NULLs (None)."""
    values = ["null" if which is None else pair[which] for pair in VALUES.values()]
    pairs = zip(TYPES.items(), values, strict=True)
    typed = [f"cast({text} as {type_name(kind, 'duckdb')}) as {name}" for (name, kind), text in pairs]
    day, hour = PLACES[place]
    return f"select {key}::int as k, {', '.join(typed)}, {day}::varchar as day, {hour}::timestamptz as hour"


def merging(*rows: str, gone: int = -1) -> Merge:
    every = tuple((c.name, f's."{c.name}"') for c in COLUMNS)
    delta = f"select *, k <> {gone} as stays from ({' union all '.join(rows)})"
    return Merge(delta, ("k",), (), every, every, "not s.stays", "", "s.stays")


def read(engine: Engine, spec: TableSpec, row_set: RowSet, version: int) -> list[str]:
    relation = Relation("r", spec.path, spec.columns, row_set, version=version, commits=(version,))
    found = engine.query("select * from r", (relation,))
    return sorted(repr({name: plain(item[name]) for name in found.column_names}) for item in found.to_pylist())


def plain(value: Any) -> Any:
    """Write a value as both engines' Arrow types give it: Spark's times come without their zone, its texts whole."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, str) and len(value) > 99:
        return f"{value[:9]}, {len(value)} letters, {hash(value)}"
    return value


def keys(spark: Any, path: str, condition: str, version: int = 2) -> list[int]:
    text = f"select k from delta.`{path}` version as of {version} where {condition} order by k"
    return [found["k"] for found in spark.sql(text).collect()]


@pytest.mark.long
def test_spark_reads_merges_and_restores_what_sqlrun_committed(engine: SparkEngine, tmp_path: Path, way: str) -> None:
    """Where rows are marked, too: their files hold more than what counts, and other bounds."""
    duckdb = DuckDBEngine()
    spec = TableSpec("t", str(tmp_path / "t"), COLUMNS, ("day", "hour"))
    duckdb.create(spec)
    stand = [row(1, 0, 0), row(2, 1, 0), row(3, None, 1), row(4, 0, 2), row(5, 1, 2)]
    write(duckdb, spec, 1, Append(" union all ".join(stand)))
    write(duckdb, spec, 2, merging(row(1, 1, 0), row(3, 0, 1), row(4, 0, 0), row(5, 1, 2), row(6, None, 2), gone=5))
    assert ours(spec.path, 2) and bool(marked(spec.path, 2)) == (way == "marked")
    spark = engine._spark

    for row_set in ("new", "changes"):
        assert read(engine, spec, row_set, 2) == read(duckdb, spec, row_set, 2)
    assert keys(spark, spec.path, "true", 1) == [1, 2, 3, 4, 5]
    # Statistics and partition values lead to every row, and to the edges of the values.
    # The file that keeps its rows is delta-rs', which leaves NaN out of its bounds.
    assert keys(spark, spec.path, "c5 > 1e300") == ([1, 2] if way == "copied" else [1])
    assert keys(spark, spec.path, "c9 = 9999999999999999999999999999.9999999999") == [1, 2]
    assert keys(spark, spec.path, "c11 = timestamp '2026-01-02 03:04:05.678901Z'") == [3, 4]
    assert keys(spark, spec.path, "c10 < date '1950-01-01' and length(c0) = 70000") == [1, 2]
    assert keys(spark, spec.path, "day = 'a b/c%:ü=' and hour = timestamp '2026-03-01 12:00:00Z'") == [1, 2, 4]
    assert keys(spark, spec.path, "day is null and hour is null") == [3]

    merge = f"merge into delta.`{spec.path}` t using (select 2 as k) s on t.k = s.k when matched then update set c1 = 7"
    spark.sql(merge)
    write(duckdb, spec, 4, merging(row(2, 0, 1), row(7, 0, 0)))
    assert ours(spec.path, 4)
    assert read(engine, spec, "new", 4) == read(duckdb, spec, "new", 4)
    spark.sql(f"restore table delta.`{spec.path}` to version as of 2")
    assert read(engine, spec, "new", 5) == read(duckdb, spec, "new", 2)
