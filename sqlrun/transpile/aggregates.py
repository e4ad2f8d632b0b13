"""Spark's aggregate functions in DuckDB's SQL. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from sqlglot import exp

from sqlrun.transpile import decimals as duckdb_decimals
from sqlrun.transpile import moments as duckdb_moments
from sqlrun.transpile.templates import UnlikeSparkError, call, piece

_LISTS = (exp.ArrayAgg, exp.ArrayUniqueAgg)


def aggregate(node: exp.Expr) -> exp.Expr:
    """Return an aggregate, with its WITHIN GROUP, FILTER or OVER, in DuckDB's SQL; other nodes unchanged."""
    match node:
        case exp.Window() | exp.Filter() | exp.Avg() if not _is_wrapped(node) and _is_mean(_inner(node)):
            return duckdb_decimals.mean(node, cast(exp.Avg, _inner(node)))
        case exp.Window(this=exp.Sum() as inner) if duckdb_decimals.operands(inner):
            return duckdb_decimals.window_sum(node, duckdb_decimals.operands(inner)[0])
        case exp.Window() if isinstance(_inner(node), _LISTS):
            return _window_of_list(node)
        case exp.Window() if duckdb_moments.is_moment(_inner(node)):
            return _window_of_moment(node)
        case exp.Window() if isinstance(_inner(node), exp.CountIf):
            return _window_of_count(node)
        case exp.Window() if isinstance(_inner(node), exp.AnonymousAggFunc):
            raise UnlikeSparkError("it has no such window function", "Group in a CTE, and join the CTE.")
        case _ if duckdb_moments.is_moment(node) and not _is_wrapped(node):
            return _filtered(node, node, [])
        case exp.Filter() if not isinstance(node.parent, exp.Window):
            return _filtered(node, _inner(node), [node.expression.this])
        case exp.WithinGroup() if not isinstance(node.parent, exp.Filter | exp.Window):
            return _filtered(node, _inner(node), [])
        case exp.ArrayAgg() | exp.ArrayUniqueAgg() | exp.CountIf() | exp.Count() if not _is_wrapped(node):
            return _filtered(node, node, [])
        case exp.AnonymousAggFunc() | exp.FirstValue() | exp.LastValue() if not _is_wrapped(node):
            return _filtered(node, node, [])
        case exp.Median():
            # Spark's median is a double; DuckDB's has the digits of its argument.
            return call("median", piece("cast(arg_x as double)", x=node.this))
        case exp.ArgMax() | exp.ArgMin():
            # DuckDB's functions ignore rows with a NULL value, Spark's those with a NULL sort key.
            name = "arg_max_null" if isinstance(node, exp.ArgMax) else "arg_min_null"
            return call(name, node.this, node.expression)
        case _:
            return node


def _is_mean(node: exp.Expr) -> bool:
    return isinstance(node, exp.Avg) and bool(duckdb_decimals.operands(node))


def _inner(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Window | exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    return node


def _is_wrapped(node: exp.Expr) -> bool:
    return isinstance(node.parent, exp.Filter | exp.WithinGroup | exp.Window | exp.IgnoreNulls | exp.RespectNulls)


def _filtered(node: exp.Expr, inner: exp.Expr, conditions: list[exp.Expr]) -> exp.Expr:
    """Return an aggregate over the rows that meet all conditions."""
    if duckdb_moments.is_moment(inner):
        return duckdb_moments.computed(inner, conditions, lambda call: call)
    match inner:
        case exp.ArrayAgg() | exp.ArrayUniqueAgg():
            return _empty_for_none(_list(inner, conditions))
        case exp.CountIf():
            return _where(exp.Count(this=exp.Star()), [inner.this, *conditions])
        case exp.Count() if inner.expressions and not isinstance(inner.this, exp.Distinct):
            known = [_is_known(item) for item in (inner.this, *inner.expressions)]
            return _where(exp.Count(this=exp.Star()), [*known, *conditions])
        case exp.FirstValue() | exp.LastValue():
            name = "first" if isinstance(inner, exp.FirstValue) else "last"
            return _where(call(name, inner.this), conditions)
        case exp.AnonymousAggFunc():
            return _percentile(node, inner, conditions)
        case _:
            return node


def _is_known(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=exp.paren(value), expression=exp.null()))


def _list(node: exp.Expr, conditions: list[exp.Expr]) -> exp.Expr:
    item = node.this.unnest() if isinstance(node.this, exp.Paren) else node.this
    plain = item.this if isinstance(item, exp.Order) else item
    if isinstance(plain, exp.Distinct):
        plain = plain.expressions[0]
    if isinstance(node, exp.ArrayUniqueAgg):
        item = exp.Distinct(expressions=[plain.copy()])
    return _where(call("list", item), [_is_known(plain), *conditions])


def _window_of_list(node: exp.Window) -> exp.Expr:
    conditions = [node.this.expression.this] if isinstance(node.this, exp.Filter) else []
    window = node.copy()
    window.set("this", _list(_inner(node), conditions))
    return _empty_for_none(window)


def _window_of_count(node: exp.Window) -> exp.Expr:
    """Return count_if over a window as a count of rows: DuckDB's count_if over NULLs alone is NULL there."""
    window = node.copy()
    window.set("this", _filtered(window.this, _inner(window), []))
    return window


def _window_of_moment(node: exp.Window) -> exp.Expr:
    inner = _inner(node)
    conditions = [node.this.expression.this] if isinstance(node.this, exp.Filter) else []

    def over(call: exp.Expr) -> exp.Expr:
        window = node.copy()
        window.set("this", call)
        return window

    return duckdb_moments.computed(inner, conditions, over)


def _percentile(node: exp.Expr, inner: exp.AnonymousAggFunc, conditions: list[exp.Expr]) -> exp.Expr:
    name, arguments = inner.name.lower(), inner.expressions
    group = node if isinstance(node, exp.WithinGroup) else node.find(exp.WithinGroup)
    if name == "percentile" and len(arguments) == 2:
        return _where(call("quantile_cont", piece("cast(arg_x as double)", x=arguments[0]), arguments[1]), conditions)
    if name in ("percentile_cont", "percentile_disc") and group is not None:
        ordered = group.expression.expressions[0]
        part = arguments[0]
        if ordered.args.get("desc"):
            if name == "percentile_disc":
                raise UnlikeSparkError(
                    "it has no percentile_disc in descending order", "Sort in ascending order, and use 1 - p."
                )
            part = piece("1 - arg_p", p=part)
        value = piece("cast(arg_x as double)", x=ordered.this)
        return _where(call(f"quantile_{name[-4:]}", value, part), conditions)
    raise UnlikeSparkError("it doesn't support this form")


def _where(node: exp.Expr, conditions: Iterable[exp.Expr]) -> exp.Expr:
    parts = [exp.paren(condition.copy()) for condition in conditions]
    return exp.Filter(this=node, expression=exp.Where(this=exp.and_(*parts))) if parts else node


def _empty_for_none(node: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=node, expressions=[exp.Array(expressions=[])])
