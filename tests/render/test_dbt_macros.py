"""The macros of dbt and its packages, as Spark SQL: each returns what its package documents, on DuckDB."""

from __future__ import annotations

import re

import duckdb
import pytest

from sqlrun.load import built_in_macros
from tests.support import dbt_macros
from tests.support.both_engines import Row, on_duckdb, plain
from tests.support.dbt_macros import AT_THE_TICK, EXPRESSIONS, QUERIES, TABLE, VALUES


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return TABLE.on_duckdb([VALUES])


def asked(connection: duckdb.DuckDBPyConnection, template: str, names: tuple[str, ...]) -> list[Row] | str:
    return on_duckdb(connection, dbt_macros.rendered(template).sql, names, TABLE)


@pytest.mark.slow
def test_a_call_is_the_value_that_is_documented(connection: duckdb.DuckDBPyConnection) -> None:
    """Of each macro, in one query."""
    calls = dict([*EXPRESSIONS, *AT_THE_TICK])
    names = tuple(f"c{number}" for number in range(len(calls)))

    found = asked(connection, dbt_macros.statement(list(calls)), names)

    assert not isinstance(found, str), found
    values = [plain(value) if not isinstance(value, float) else value for value in found[0]]
    expected = [pytest.approx(value) if isinstance(value, float) else plain(value) for value in calls.values()]
    assert dict(zip(calls, values, strict=True)) == dict(zip(calls, expected, strict=True))


@pytest.mark.slow
def test_a_query_has_the_rows_that_are_documented(connection: duckdb.DuckDBPyConnection) -> None:
    texts = dbt_macros.rendered("\n;\n".join(template for template, _, _ in QUERIES)).sql.split("\n;\n")

    for sql, (template, names, expected) in zip(texts, QUERIES, strict=True):
        found = on_duckdb(connection, sql, names, TABLE)
        assert not isinstance(found, str), (template, found)
        assert sorted(tuple(map(plain, row)) for row in found) == sorted(tuple(map(plain, row)) for row in expected), (
            template
        )


def test_every_macro_is_called_here_or_is_a_test() -> None:
    """A macro that is added needs a result."""
    called = " ".join([*(call for call, _ in (*EXPRESSIONS, *AT_THE_TICK)), *(query for query, _, _ in QUERIES)])
    # These return no SQL, call another one, or raise an error.
    others = {
        "any_value",
        "log_info",
        "surrogate_key",
        "escape_single_quotes",
        "also",
        "only",
        "outside",
        "values_list",
    }
    library = [macro for macro in built_in_macros.beside(()) if macro.package]

    assert {
        f"{macro.package}.{macro.name}"
        for macro in library
        if not macro.name.startswith("test_") and macro.name not in others
    } <= {f"{package}.{name}" for package in ("dbt", "dbt_utils", "dbt_date") for name in _names(called, package)}


def _names(text: str, package: str) -> set[str]:
    return set(re.findall(rf"\b{package}\.(\w+)", text))
