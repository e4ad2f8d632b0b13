"""Queries for the failing rows of a check, to run by hand. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import sqlglot
from sqlglot import exp

from sqlrun.engine_api import Dialect
from sqlrun.expectations.catalogue import QUERY
from sqlrun.expectations.sql import BATCH, batch_query, condition_tree, literal, passes
from sqlrun.project import Column, Expectation, Value
from sqlrun.transpile import writer as sql
from sqlrun.transpile.dialect import DIALECT

# Statistics that one SQL function computes.
STATISTICS: Mapping[str, Callable[[exp.Expr], exp.Expr]] = {
    "expect_column_sum_to_be_between": lambda column: exp.Sum(this=column),
    "expect_column_min_to_be_between": lambda column: exp.Min(this=column),
    "expect_column_max_to_be_between": lambda column: exp.Max(this=column),
    "expect_column_mean_to_be_between": lambda column: exp.Avg(this=column),
    "expect_column_median_to_be_between": lambda column: exp.Median(this=column),
    "expect_column_stdev_to_be_between": lambda column: exp.StddevSamp(this=column),
    "expect_column_unique_value_count_to_be_between": lambda column: exp.Count(this=exp.Distinct(expressions=[column])),
}
UNIQUE = ("expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique")
COUNT = "expect_table_row_count_"


def table(engine: Dialect, path: str, version: int) -> str:
    """Return the name of a Delta table at a path in an engine's SQL; DuckDB reads only its newest version.

    >>> table("spark", "warehouse/local/orders/ab12", 3)
    'delta.`warehouse/local/orders/ab12@v3`'
    """
    if engine == "spark":
        return "delta." + sql.identifier(f"{path}@v{version}", "spark")
    return f"delta_scan({sql.string(path, 'duckdb')})"


def query(
    expectation: Expectation, columns: tuple[Column, ...], source: str, where: str, as_of: datetime, engine: Dialect
) -> str:
    """Return a query over a whole table for the bad rows, the repeated keys or the statistic; "" for other checks.

    `source`: the table in the engine's SQL; `where`: the condition of its public rows. The tick's time replaces the
    rule's clock.
    """
    try:
        tree = _tree(expectation, columns)
    except ValueError:
        return ""
    if tree is None:
        return ""
    text = sql.expression(tree.transform(lambda node: _clock(node, as_of)), engine)
    public = f" where {where}" if where else ""
    return f"with {BATCH} as (select * from {source}{public})\n{text}"


def _tree(expectation: Expectation, columns: tuple[Column, ...]) -> exp.Expr | None:
    kwargs = expectation.kwargs
    if expectation.type == QUERY:
        return batch_query(str(kwargs["unexpected_rows_query"]))
    predicate = passes(expectation, columns)
    if predicate is not None:
        good = sqlglot.parse_one(predicate, read=DIALECT)
        return exp.select("*").from_(BATCH).where(exp.not_(exp.paren(good)))
    found = _keys(kwargs) if expectation.type in UNIQUE else _statistic(expectation)
    condition = kwargs.get("row_condition")
    if found is not None and condition is not None:
        found = found.where(condition_tree(str(condition)))
    return found


def _keys(kwargs: Mapping[str, Value]) -> exp.Select:
    """Return the query of repeated keys; NULLs are no keys."""
    columns = kwargs.get("column_list", [kwargs.get("column")])
    names = [_column(name) for name in (columns if isinstance(columns, list) else [columns])]
    not_null = exp.and_(*(exp.not_(name.copy().is_(exp.null())) for name in names))
    count = exp.Count(this=exp.Star())
    select = (
        exp.select(*names, exp.alias_(count, "n")).from_(BATCH).where(not_null).group_by(*(n.copy() for n in names))
    )
    return select.having(exp.GT(this=count.copy(), expression=exp.Literal.number(1)))


def _statistic(expectation: Expectation) -> exp.Select | None:
    if expectation.type.startswith(COUNT):
        return exp.select(exp.Count(this=exp.Star())).from_(BATCH)
    statistic = STATISTICS.get(expectation.type)
    if statistic is None:
        return None
    return exp.select(statistic(_column(expectation.kwargs["column"]))).from_(BATCH)


def _column(name: Value) -> exp.Column:
    return exp.column(exp.to_identifier(str(name), quoted=True))


def _clock(node: exp.Expr, as_of: datetime) -> exp.Expr:
    """Replace a clock by the tick's time."""
    if isinstance(node, exp.CurrentDate):
        return literal(as_of.date(), "date")
    if isinstance(node, exp.CurrentTimestamp) or (isinstance(node, exp.Anonymous) and node.name.lower() == "now"):
        return literal(as_of, "timestamp")
    return node
