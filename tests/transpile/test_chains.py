"""Sums and products of thousands of operands, which are trees of that depth, are written for both engines."""

from __future__ import annotations

import sys

import pytest
from sqlglot import exp, parse_one

from sqlrun.transpile import casts, spark_types, writer

NUMBER = sys.getrecursionlimit() + 100


def chain(first: str, *others: str) -> exp.Expr:
    """Return a sum or product with more operands than Python has frames: the others are repeated."""
    return parse_one(f"{first} {' '.join(others * NUMBER)}", dialect="databricks")


@pytest.mark.parametrize(
    "operands",
    [
        ("a", "+ 1"),
        ("a", "- b"),
        ("a", "* b"),
        ("date '2026-11-21'", "+ 1"),
        ("interval 1 day", "+ interval 2 days"),
        ("cast(a as decimal(10, 2))", "+ 1"),
        ("cast(a as double)", "+ 1.5"),
        ("a", "|| b"),
    ],
    ids=" ".join,
)
def test_a_long_chain_is_written(operands: tuple[str, ...]) -> None:
    tree = exp.select(exp.func("round", chain(*operands), 2))

    spark, duckdb = writer.expression(tree, "spark"), writer.expression(tree, "duckdb")

    assert len(spark) > NUMBER
    assert len(duckdb) > NUMBER


def test_properties_of_a_chain_are_those_of_its_operands() -> None:
    assert casts.is_whole(chain("1", "+ 2", "* 3"))
    assert not casts.is_whole(chain("1.5", "+ 2"))
    assert casts.is_double(chain("cast(1 as double)", "+ 2", "- 3"))
    assert not casts.is_double(chain("1", "+ 2"))
    assert casts.is_date(chain("cast('2026-11-21' as date)", "+ 1", "- 2"))
    assert not casts.is_date(chain("a", "+ 1"))
    assert spark_types.span(chain("interval 1 day", "+ interval 2 days")) == spark_types.OF_DAYS
    assert spark_types.span(chain("interval 1 day", "- interval 2 hours")) == spark_types.OF_TIMES
    assert spark_types.span(chain("interval 1 month", "+ interval 2 days")) == ""
    assert spark_types.span(chain("a", "+ interval 2 days")) is None
