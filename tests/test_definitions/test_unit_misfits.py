"""Types of written values: a value of the right type reaches DuckDB as it was written."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import pytest

from sqlrun.incremental import types
from sqlrun.parse.type_check import declared_type
from sqlrun.test_definitions.misfits import misfit
from sqlrun.test_definitions.queries import given_sql
from sqlrun.test_definitions.spark_rows import literal as spark_literal
from sqlrun.test_definitions.values import literal, shown

NESTED = "array<struct<a:int,b:decimal(4,2)>>"
FITS = [
    ("tinyint", -128, "-128"),
    ("smallint", "32767", "32767"),
    ("int", -2147483648, "-2147483648"),
    ("bigint", 9223372036854775807, "9223372036854775807"),
    ("decimal(4,2)", Decimal("99.99"), "99.99"),
    ("decimal(4,2)", "-.5", "-0.50"),
    ("decimal(10,0)", Decimal("1E+3"), "1000"),
    ("decimal(38,2)", Decimal("123456789012345678901234567890123456.78"), "123456789012345678901234567890123456.78"),
    ("double", Decimal("1e300"), "1e+300"),
    ("double", float("inf"), "inf"),
    ("double", "NaN", "nan"),
    ("boolean", True, "true"),
    ("boolean", "FALSE", "false"),
    ("date", "2024-02-29", "2024-02-29"),
    ("timestamp", "2026-01-01", "2026-01-01 00:00:00"),
    ("timestamp", "2079-10-27T23:59:59.9999", "2079-10-27 23:59:59.999900"),
    ("timestamp", "2026-01-01T12:00:00.123456+02:00", "2026-01-01 10:00:00.123456"),
    ("string", 'it\'s \\ "ü" 𝄞 {{ x }}\nnew', 'it\'s \\ "ü" 𝄞 {{ x }}\nnew'),
    ("string", 7, "7"),
    ("string", "", ""),
    ("int", None, "NULL"),
    (NESTED, [{"a": 1, "b": Decimal("1.5")}, {"a": None}, None], "[{a: 1, b: 1.50}, {a: NULL, b: NULL}, NULL]"),
    ("array<string>", [], "[]"),
    ("map<string,int>", {"a": 1, "b": None}, "{a: 1, b: NULL}"),
    ("map<int,array<int>>", {"1": [2]}, "{1: [2]}"),
]


@pytest.mark.parametrize(("kind", "value", "text"), FITS)
def test_a_value_of_the_right_type_is_accepted_as_written(kind: str, value: object, text: str) -> None:
    assert misfit(value, kind) is None
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        written = literal(value, types.parse(kind))
        by_spark = given_sql(f"select {spark_literal(value, declared_type(kind))} as x")

        assert shown(connection.execute(f"select {written}").fetchall()[0][0]) == text
        assert shown(connection.execute(by_spark).fetchall()[0][0]) == text


@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [
        ("tinyint", 128, ()),
        ("int", 2147483648, ()),
        ("int", "1.0", ()),
        ("int", Decimal("1.5"), ()),
        ("int", True, ()),
        ("int", "", ()),
        ("int", "٣", ()),
        ("bigint", "9" * 5000, ()),
        ("decimal(4,2)", Decimal("100"), ()),
        ("decimal(4,2)", Decimal("1.005"), ()),
        ("decimal(10,2)", "12,5", ()),
        ("decimal(10,2)", float("nan"), ()),
        ("double", "1_0", ()),
        ("boolean", 1, ()),
        ("boolean", "yes", ()),
        ("date", "2026-02-29", ()),
        ("date", "2026-01-01 00:00:00", ()),
        ("timestamp", "2026-01-01 25:00:00", ()),
        ("timestamp", "noon", ()),
        ("timestamp", [], ()),
        ("string", {"a": 1}, ()),
        (NESTED, "[]", ()),
        (NESTED, [{"a": 1}, {"a": "x"}], (1, "a")),
        (NESTED, [{"c": 1}], (0, "c")),
        ("map<string,int>", {"a": "x"}, ("a",)),
        ("map<int,int>", {"x": 1}, ("x",)),
    ],
)
def test_a_value_of_another_type_is_rejected(kind: str, value: object, path: tuple[object, ...]) -> None:
    found = misfit(value, kind)

    assert found is not None
    assert found.path == path
    assert "\n" not in found.message
    assert len(found.message) < 200


def test_types_without_rules_accept_any_value() -> None:
    assert misfit("x", "interval day") is None
    assert misfit("x", "") is None
