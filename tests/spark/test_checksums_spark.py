"""Spark numbers rows as DuckDB does, so that either may add up what the other has written."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sqlrun.engine_api import Load, Relation, StoredColumn, TableSpec, Write
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.maintain import changed_rows, checksums, row_hash
from tests.maintain.test_checksums import numbers
from tests.support import row_texts
from tests.support.script import FIVE, START, order, site_of_orders

pytestmark = pytest.mark.spark


def test_rows_have_the_same_numbers_on_both_engines(engine: SparkEngine, small_session: Any) -> None:
    """Awkward values of every type a table can have."""

    def cast(text: str, kind: str) -> str:
        return f"cast({text} as {kind})"

    small_session.conf.set("spark.sql.session.timeZone", "UTC")
    number = row_hash.number(row_texts.COLUMNS, "spark")
    rows = row_texts.rows(row_texts.SPARK, cast)
    found = [int(small_session.sql(f"select {number} as n from ({row})").collect()[0]["n"]) for row in rows]

    assert found == numbers()


def test_a_table_and_its_changes_add_up_the_same_on_both_engines(engine: SparkEngine, tmp_path: Path) -> None:
    """Above a million rows Spark adds up what it has written."""
    path = str(tmp_path / "t")
    columns = (StoredColumn("id", "bigint"), StoredColumn("name", "string"))
    table = TableSpec("t", path, columns)
    writer = DuckDBEngine()
    writer.create(table)
    writer.write(Write(table, 0, 1, "t", (), Load(((1, "a"), (2, None), (3, "é")))))
    writer.write(Write(table, 1, 2, "t", (), Load(((1, "b"), (3, "é")))))
    for rows in (
        Relation("summed", path, columns, "new", version=2),
        Relation("summed", path, columns, "changes", commits=(1, 2)),
    ):
        portable = [(each, checksums.sql(rows, each.dialect, checksums.PORTABLE)) for each in (engine, writer)]
        found = [each.query(sql, (rows,)).to_pylist() for each, sql in portable]
        assert found[0] == found[1] and found[0][0]["n"] == "2"


def test_spark_sums_up_all_rows_of_a_table_that_duckdb_has_hashed(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark lacks DuckDB's hash function, and sums up large changes. DuckDB then continues what Spark has begun."""
    made = site_of_orders(tmp_path, 8)
    on_duckdb, functions = made.engine, []
    for number, on in enumerate((on_duckdb, engine, on_duckdb)):
        made.write(f"{number + 1}.jsonl", [order(f"{number}{each}", START) for each in range(3)])
        at = START + number * FIVE
        made.engine = on_duckdb
        assert made.tick(at, select=("stg_order_events",)).published
        made.engine = on
        with monkeypatch.context() as patched:
            if on is engine:
                patched.setattr(checksums, "FEW", 0)
                patched.setattr(changed_rows, "LARGE", 1)
            assert made.tick(at, select=("stg_orders",)).published
        now = made.ledger.read().published
        assert now is not None
        (found,) = checksums.compare(made.warehouse, now, ("stg_orders",))
        assert found.ok and found.recorded.rows == 8 + 3 * (number + 1)
        functions.append(found.recorded.function)

    assert functions == [checksums.duckdb_function(), checksums.PORTABLE, checksums.PORTABLE]


def test_rows_that_are_given_are_the_same_on_both_engines(engine: SparkEngine) -> None:
    """Keys of changed rows, whose namesakes are looked for: NULL, times before 1970, decimals, texts, days."""
    given = pa.table(
        {
            "id": pa.array([2, None, -(2**62)], pa.int64()),
            "at": pa.array([-1, None, 1_700_000_000_000_001], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal("-0.10"), None, Decimal("7.00")], pa.decimal128(18, 2)),
            "name": ["é", None, ""],
            "day": [date(1583, 1, 2), None, date(2026, 3, 10)],
        }
    )
    engines = (engine, DuckDBEngine())
    others = [each.query("select * from given where id is null or id <> 2", (), {"given": given}) for each in engines]
    kept = [each.query("select * from given where day < date '1600-01-01'", (), {"given": given}) for each in engines]

    assert [sorted(rows.to_pylist(), key=repr) for rows in others] == [sorted(given.slice(1).to_pylist(), key=repr)] * 2
    assert [rows.to_pylist() for rows in kept] == [given.slice(0, 1).to_pylist()] * 2
