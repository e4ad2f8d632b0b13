"""The macros of dbt and its packages on Spark: the results that DuckDB has, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support import dbt_macros
from tests.support.both_engines import plain, query
from tests.support.dbt_macros import EXPRESSIONS, QUERIES, TABLE
from tests.support.function_cases import text

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def asked(small_session: Any) -> Any:
    """Return a function that runs a template on Spark."""
    small_session.sql(TABLE.on_spark()).createOrReplaceTempView("t__new")

    def rows(template: str, names: Sequence[str]) -> list[tuple[Any, ...]]:
        made = query(dbt_macros.rendered(template).sql, names, TABLE)
        assert not isinstance(made, str), made
        return [tuple(plain(value) for value in row) for row in small_session.sql(text(made, "spark")).collect()]

    return rows


def test_calls_have_the_documented_values(asked: Any) -> None:
    calls = [call for call, _ in EXPRESSIONS]
    (row,) = asked(dbt_macros.statement(calls), [f"c{number}" for number in range(len(calls))])
    expected = [pytest.approx(value) if isinstance(value, float) else plain(value) for _, value in EXPRESSIONS]
    found = [
        float(value.removesuffix("d")) if isinstance(wanted, float) else value
        for value, (_, wanted) in zip(row, EXPRESSIONS, strict=True)
    ]

    assert dict(zip(calls, found, strict=True)) == dict(zip(calls, expected, strict=True))


@pytest.mark.parametrize(("template", "names", "expected"), QUERIES, ids=lambda value: str(value)[:60])
def test_queries_have_the_documented_rows(asked: Any, template: str, names: Any, expected: list[Any]) -> None:
    assert sorted(asked(template, names)) == sorted(tuple(map(plain, row)) for row in expected)
