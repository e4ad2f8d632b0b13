"""Aggregates over odd groups and windows: DuckDB's answers, as sqlrun writes its SQL, are Spark's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.both_engines import Row, on_duckdb, plain
from tests.support.odd_groups import GROUPS, ROUGH, calls, names, statement, table, values, windows

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]
TOGETHER = 25


def asked(session: Any, items: list[str], source: str) -> dict[str, list[Row] | str]:
    """Ask Spark for many calls in one query; where that fails, in two halves, down to the one that fails."""
    try:
        rows = [tuple(row) for row in session.sql(statement(items, source)).collect()]
    except Exception as error:
        if len(items) == 1:
            return {items[0]: str(error)[:100]}
        half = len(items) // 2
        return {**asked(session, items[:half], source), **asked(session, items[half:], source)}
    return {call: [(row[0], row[number]) for row in rows] for number, call in enumerate(items, 1)}


@pytest.mark.parametrize("listed", [calls, windows], ids=["groups", "windows"])
def test_duckdb_says_what_spark_says(small_session: Any, listed: Callable[[], list[str]]) -> None:
    """Of every group, or it refuses the call before a tick."""
    made = table()
    small_session.sql(made.on_spark()).cache().createOrReplaceTempView("odd")
    connection = made.on_duckdb(values())
    all_calls, wrong, compared = listed(), [], 0
    spark: dict[str, list[Row] | str] = {}
    for start in range(0, len(all_calls), TOGETHER):
        spark |= asked(small_session, all_calls[start : start + TOGETHER], "odd")
    for call in all_calls:
        found = on_duckdb(connection, statement([call], "ref.odd"), names([call]), made)
        if isinstance(found, str) and found.startswith("refused"):
            continue
        compared += 1
        wrong += [f"{call}: {difference}" for difference in differences(found, spark[call])]

    assert wrong == []
    assert compared > len(all_calls) // 2


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_corr_is_an_error_where_it_is_one_on_spark(small_session: Any, group: str) -> None:
    """One group's error hides the other groups' values, so that each is asked by itself."""
    made = table()
    small_session.sql(made.on_spark()).createOrReplaceTempView("odd_rows")
    calls_of = ["corr(x, y)", "corr(d, x)", "corr(i, j)"]
    spark = asked(small_session, calls_of, f"odd_rows where g = '{group}'")
    connection = made.on_duckdb(row for row in values() if row[0] == group)
    for call in calls_of:
        found = on_duckdb(connection, statement([call], "ref.odd"), names([call]), made)

        assert differences(found, spark[call]) == [], call


def differences(found: list[Row] | str, spark: list[Row] | str) -> list[str]:
    if isinstance(found, str) or isinstance(spark, str):
        return [] if isinstance(found, str) and isinstance(spark, str) else [f"{found}, Spark {spark}"[:300]]
    theirs = {group: plain(value) for group, value in spark}
    return [
        f"{group}: {plain(value)}, Spark {theirs[group]}"
        for group, value in found
        if not same(group, plain(value), theirs[group])
    ]


def same(group: str, one: Any, other: Any) -> bool:
    if one == other:
        return True
    doubles = isinstance(one, str) and isinstance(other, str) and one.endswith("d") and other.endswith("d")
    rough = doubles and any(group.startswith(name) for name in ROUGH)
    return rough and float(one[:-1]) == pytest.approx(float(other[:-1]), rel=1e-4)
