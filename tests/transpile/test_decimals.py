"""Arithmetic of decimals on DuckDB: Spark's digits, computed by Python's decimals; maintained tables included."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext

import duckdb
import pytest
import sqlglot

from sqlrun.parse.spark_only import problems
from sqlrun.transpile import calls as duckdb_calls
from sqlrun.transpile import spark_types as spark
from sqlrun.transpile.dialect import DIALECT
from sqlrun.transpile.spark_types import Kind
from tests.support import memory
from tests.support.memory import Memory, Table, View

pytestmark = pytest.mark.slow

Rule = Callable[[Decimal, Decimal], Decimal]
EXAMPLES = 150


def left_over(a: Decimal, b: Decimal) -> Decimal:
    return a - b * (a / b).to_integral_value(ROUND_DOWN)


def positive(a: Decimal, b: Decimal) -> Decimal:
    rest = left_over(a, b)
    return left_over(rest + b, b) if rest < 0 else rest


RULES: dict[str, tuple[Rule, Callable[[Kind, Kind], Kind | None]]] = {
    "/": (lambda a, b: (a / b).quantize(Decimal(1).scaleb(-39), ROUND_HALF_UP), spark.divide),
    "%": (left_over, spark.remainder),
    "pmod": (positive, spark.remainder),
    "div": (lambda a, b: (a / b).to_integral_value(ROUND_DOWN), lambda a, b: spark.decimal(19, 0)),
    "*": (lambda a, b: a * b, spark.multiply),
    "+": (lambda a, b: a + b, spark.add),
    "-": (lambda a, b: a - b, spark.add),
}


def drawn(rng: random.Random) -> tuple[Decimal, Kind]:
    """Return a random decimal and its type, many with two digits as for money."""
    precision = rng.choice((10, 18, 20, 28, rng.randint(1, 30)))
    scale = min(rng.choice((0, 2, 4, 6, rng.randint(0, precision))), precision)
    digits = rng.choice((rng.randint(0, 10 ** min(precision, 18) - 1), rng.randint(0, 9), 10 ** min(precision, 9) - 1))
    kind = spark.decimal(precision, scale)
    return Decimal(min(digits, 10**precision - 1) * rng.choice((1, 1, -1))).scaleb(-scale), kind


def wanted(a: Decimal, b: Decimal, one: Kind, other: Kind, operator: str) -> Decimal | None:
    """Return Spark's result: exact, rounded once to the type of the result; None for an error."""
    rule, typed = RULES[operator]
    kind = typed(one, other)
    assert kind is not None
    if b == 0 and operator not in ("*", "+", "-"):
        return None
    found = rule(a, b).quantize(Decimal(1).scaleb(-kind.size[1]), ROUND_HALF_UP)
    found += 0  # Python has a negative zero
    return found if abs(found) < Decimal(10) ** (kind.size[0] - kind.size[1]) else None


@pytest.mark.parametrize("operator", RULES)
def test_duckdb_computes_decimals_as_spark(operator: str) -> None:
    """Random types, values and signs; an overflow is an error, and a call that DuckDB can't run is refused."""
    rng, connection, refused, compared = random.Random(operator), memory.connect(), 0, 0
    for _ in range(EXAMPLES):
        (a, one), (b, other) = drawn(rng), drawn(rng)
        x, y = f"cast('{a:f}' as {one})", f"cast('{b:f}' as {other})"
        text = f"pmod({x}, {y})" if operator == "pmod" else f"{x} {operator} {y}"
        with localcontext() as context:
            context.prec = 200
            expected = wanted(a, b, one, other, operator)
        try:
            tree = sqlglot.parse_one(text, read=DIALECT)
            sql = duckdb_calls.translated(tree.copy(), tree).sql("duckdb")
            (got,) = connection.execute(f"select {sql}").fetchone() or ()
        except duckdb_calls.UnlikeSparkError:
            refused += 1
        except duckdb.Error:
            # An error stops the tick and never gives a wrong number: intermediate results may need more than 128 bits.
            assert expected is None or one.size[0] + other.size[0] > 38, text
        else:
            assert got == expected, text
            assert operator == "div" or str(got) == str(expected), text
            compared += 1
    assert compared > EXAMPLES // 2
    assert refused < EXAMPLES // 5


T = Table(
    "t0",
    (("k", "int"), ("g", "string"), ("a", "decimal(10,2)"), ("b", "decimal(18,4)"), ("n", "bigint"),
     ("h", "decimal(38,10)"),
     ("xs", "array<decimal(10,2)>")),
    ("k",),
)  # fmt: skip
START = [
    (1, ("1", "x", "1.00", "3.0000", "7", "1.0000000001", "[1.00, 2.00]")),
    (1, ("2", "x", "0.01", "0.3333", "3", "2.0000000002", "[]")),
    (1, ("3", "y", "-2.00", "3.0000", "-3", None, None)),
]
THEN = [(-1, START[1][1]), (1, ("4", "x", "0.05", "7.0000", "6", "-5.5", "[7.00]")),
        (1, ("5", "y", None, None, None, None, None))]  # fmt: skip
KEPT = {
    "select g, avg(a) as x, avg(b) as y, avg(h) as z from t0 group by g": [
        ("x", "0.525000", "5.00000000", "-2.24999999995000"), ("y", "-2.000000", "3.00000000", None)],
    "select g, sum(a) / count(*) as x, sum(a) / sum(b) as y, sum(b) * 1.123456 as z from t0 group by g": [
        ("x", "0.52500000000000000000", "0.1050000000000000", "11.2345600000"),
        ("y", "-1.00000000000000000000", "-0.6666666666666667", "3.3703680000")],
    "select k, a / b as x, a / 3 as y, a % b as z, a div b as w from t0 where k in (1, 3, 4)": [
        (1, "0.333333333333333333333", "0.333333", "1.0000", 0),
        (3, "-0.666666666666666666667", "-0.666667", "-2.0000", 0),
        (4, "0.007142857142857142857", "0.016667", "0.0500", 0)],
    "select k, transform(xs, v -> v / 3) as x from t0 where k = 1": [(1, "('0.333333', '0.666667')")],
    "select k, avg(a) over (partition by g) as x, avg(case when a > 0 then a end) over () as y from t0"
    " where k < 4": None,
    "select avg(a) filter (where k > 1) as x, avg(distinct a) as y from t0": [("-0.975000", "-0.316667")],
    "select k, ceil(a / 3, 1) / 3 as x, (a < b) = (k > 1) as y from t0 where k = 1": [(1, "0.133333", False)],
    "select g, round(avg(a), 1) as x from t0 group by g having avg(a) / 2 > 0": [("x", "0.5")],
    "select a / b as q, count(*) as n from t0 group by a / b": [
        ("0.333333333333333333333", 1), ("-0.666666666666666666667", 1), ("0.007142857142857142857", 1), (None, 1)],
    "select k, ceil(b / 7, 2) as c, floor(a, 1) as f, ceil(n, -1) as t from t0 where k < 5": [
        (1, "0.43", "1.0", "10"), (3, "0.43", "-2.0", "0"), (4, "1.00", "0.0", "10")],
}  # fmt: skip


def texts(value: object) -> object:
    return (
        str(tuple(map(texts, value)))
        if isinstance(value, tuple)
        else str(value)
        if isinstance(value, Decimal)
        else value
    )


@pytest.mark.parametrize("sql", KEPT)
def test_maintained_tables_have_sparks_digits(sql: str) -> None:
    """Every digit, after inserts and deletes."""
    kept = Memory([T], [View("v1", sql)])
    assert problems([one.query for one in kept.compiled]) == ()
    for minutes, changes in enumerate((START, THEN)):
        kept.change("t0", changes)
        as_of = memory.START.replace(minute=minutes)
        kept.step(as_of)
        assert kept.kept("v1") == kept.oracle("v1", as_of)
        shown, whole = kept.kept("v1"), kept.oracle("v1", as_of)
        assert {tuple(map(texts, row)) for row in shown} == {tuple(map(texts, row)) for row in whole}
    expected = KEPT.get(sql)
    if expected is not None:
        found = [tuple(map(texts, row)) for row in kept.kept("v1")]
        assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_a_division_of_an_unknown_type_runs_on_spark_alone() -> None:
    """No guess: SR310 says what to cast."""
    table = Table("t0", (("k", "int"),), ("k",))
    kept = Memory([table], [View("v1", "select k, decode(k, 1, k) / k as x from t0")])

    (problem,) = problems([one.query for one in kept.compiled])

    assert (problem.code, "division" in problem.message) == ("SR310", True)
    assert "Cast" in problem.hint
