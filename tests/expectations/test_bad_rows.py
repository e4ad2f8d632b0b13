"""The SQL in a report finds a check's failing rows, on DuckDB; Spark's is the same tree."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot

from sqlrun.expectations import failing_rows
from sqlrun.expectations.catalogue import VOLUME
from sqlrun.pipeline import prepare
from sqlrun.report.evidence import declared
from tests.check.test_quality import (  # fmt: skip
    AS_OF,
    BETWEEN,
    COMPOUND,
    IN_SET,
    NOT_NULL,
    PAIR_GREATER,
    QUERY,
    UNIQUE,
    check,
    expect,
    model,
    table,
)

# Great Expectations takes seconds to import.
pytestmark = pytest.mark.slow

COLUMNS = model().columns
ROWS = table(
    id=[1, 2, 2, None],
    big=[5, 6, 6, 7],
    qty=[1, None, -3, 400],
    amount=[Decimal("0.10"), Decimal("-2.00"), None, Decimal("9.00")],
    fee=[Decimal("0.1")] * 4,
    status=["paid", "it's", "open", None],
    at=[AS_OF, AS_OF + timedelta(days=1), None, AS_OF],
)
NOW = {"$PARAMETER": "as_of"}


def written(expectation: Any, source: str = "held", where: str = "", as_of: datetime = AS_OF) -> str:
    return failing_rows.query(expectation, COLUMNS, source, where, as_of, "duckdb")


def rows(text: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        connection.register("held", ROWS)
        return connection.sql(text).fetchall()


@pytest.mark.parametrize(
    "expectation",
    [
        expect(BETWEEN, column="qty", min_value=0, max_value=100),
        expect(BETWEEN, column="amount", min_value=0),
        expect(BETWEEN, column="at", max_value=NOW),
        expect(BETWEEN, column="qty", min_value=0, row_condition="status = 'open'"),
        expect(NOT_NULL, column="status"),
        expect(IN_SET, column="status", value_set=["paid", "open"]),
        expect(PAIR_GREATER, column_A="big", column_B="id"),
        expect(QUERY, unexpected_rows_query="select id, status from {batch} where qty > 5 or status = 'it''s'"),
        expect(QUERY, unexpected_rows_query="select big, count(*) as n from {batch} group by big having count(*) > 1"),
    ],
    ids=lambda expectation: f"{expectation.type}{len(str(expectation.kwargs))}",
)
def test_the_query_finds_as_many_rows_as_the_check(expectation: Any) -> None:
    found = check(expectation, ROWS)

    assert found.status == "fail" and found.unexpected
    assert len(rows(written(expectation))) == found.unexpected


@pytest.mark.parametrize(
    ("expectation", "expected"),
    [
        (expect(UNIQUE, column="id"), [(2, 2)]),
        (expect(UNIQUE, column="id", row_condition="status = 'open'"), []),
        (expect(COMPOUND, column_list=["id", "big"]), [(2, 6, 2)]),
        (expect("expect_table_row_count_to_be_between", min_value=9), [(4,)]),
        (expect("expect_column_max_to_be_between", column="qty", max_value=9), [(400,)]),
        (expect("expect_column_unique_value_count_to_be_between", column="big", min_value=9), [(3,)]),
        (expect("expect_column_sum_to_be_between", column="big", min_value=90), [(24,)]),
    ],
)  # fmt: skip
def test_the_query_finds_repeated_keys_and_statistics(expectation: Any, expected: list[tuple[Any, ...]]) -> None:
    assert rows(written(expectation)) == expected


def test_the_query_reads_only_public_rows() -> None:
    text = written(expect(NOT_NULL, column="id"), where="status is not null")

    assert rows(text) == []
    assert text.startswith("with batch as (select * from held where status is not null)\n")


def test_a_table_is_named_at_its_version_where_the_engine_can() -> None:
    assert failing_rows.table("spark", "warehouse/a`b", 3) == "delta.`warehouse/a``b@v3`"
    assert failing_rows.table("duckdb", "it's/here", 3) == "delta_scan('it''s/here')"
    text = failing_rows.query(expect(NOT_NULL, column="id"), COLUMNS, "delta.`w@v3`", "", AS_OF, "spark")
    assert sqlglot.parse_one(text, read="spark").find(sqlglot.exp.Where)


def test_checks_without_sql_have_no_query() -> None:
    assert written(expect("expect_column_kl_divergence_to_be_less_than", column="id")) == ""
    assert written(expect("no_such_type", column="id")) == ""
    assert written(expect(QUERY, unexpected_rows_query="select * from elsewhere")) == ""


def test_each_check_of_the_project_has_sql_or_is_a_known_exception() -> None:
    root = Path(__file__).parents[2]
    found = declared(prepare(root))
    without = {
        expectation.type
        for holder, expectation in found.values()
        if not failing_rows.query(expectation, holder.columns, "t", "", AS_OF, "spark")
    }

    assert len(found) > 50
    # Lines that didn't land have no rows to show.
    assert without == {VOLUME}
    assert {holder.name for holder, _ in declared(prepare(root), ["restaurant_windows"]).values()} == {
        "restaurant_windows"
    }
