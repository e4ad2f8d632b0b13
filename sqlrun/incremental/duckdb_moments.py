"""Variances, covariances and regressions as Spark computes them, as DuckDB's SQL. Pure.

DuckDB's own lose digits far from zero, end in an error where a value is infinite, and say 0 or NULL where Spark says
NaN. Here the values of a group are collected, and their distances from the mean are summed up.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlrun.incremental.duckdb_pieces import call, piece

_SQUARES = "list_sum(list_transform(_c, lambda _v: _v * _v))"
_POWERS = "list_sum(list_transform(_c, lambda _v: _v ** {}))"
_NO_NUMBER = "case when isinf({0}) then error('the values are too large for their variance') else {0} end"
# Of the values `_c`, each less the mean.
_OF_ONE: Mapping[type[exp.Expr] | str, str] = {
    exp.Stddev: f"case when len(_c) > 1 then sqrt({_NO_NUMBER.format(_SQUARES)} / (len(_c) - 1)) end",
    exp.StddevPop: f"case when len(_c) > 0 then sqrt({_NO_NUMBER.format(_SQUARES)} / len(_c)) end",
    exp.Variance: f"case when len(_c) > 1 then {_NO_NUMBER.format(_SQUARES)} / (len(_c) - 1) end",
    exp.VariancePop: f"case when len(_c) > 0 then {_NO_NUMBER.format(_SQUARES)} / len(_c) end",
    "kurtosis": (
        f"case when len(_c) > 0 and {_SQUARES} <> 0 then "
        f"{_NO_NUMBER.format('len(_c) * ' + _POWERS.format(4))} / ({_SQUARES} * {_SQUARES}) - 3 end"
    ),
    "skewness": (
        f"case when len(_c) > 0 and {_SQUARES} <> 0 then "
        f"sqrt(len(_c)) * {_POWERS.format(3)} / sqrt({_SQUARES} * {_SQUARES} * {_NO_NUMBER.format(_SQUARES)}) end"
    ),
}
_XX, _YY, _XY = (f"list_sum(list_transform(_c, lambda _v: _v.{a} * _v.{b}))" for a, b in ("xx", "yy", "xy"))
# Of the pairs `_c`, each less the means; `_m` holds the means. In regressions `y` comes first.
_OF_TWO: Mapping[type[exp.Expr], str] = {
    exp.CovarPop: f"case when len(_c) > 0 then {_NO_NUMBER.format(_XY)} / len(_c) end",
    exp.CovarSamp: f"case when len(_c) > 1 then {_NO_NUMBER.format(_XY)} / (len(_c) - 1) end",
    exp.Corr: (
        f"case when len(_c) > 1 and sqrt({_XX}) * sqrt({_YY}) = 0 then error('corr: nothing varies') "
        f"when len(_c) > 1 then {_NO_NUMBER.format(_XY)} / (sqrt({_XX}) * sqrt({_YY})) end"
    ),
    exp.RegrSxx: f"case when len(_c) > 0 then {_NO_NUMBER.format(_XX)} end",
    exp.RegrSyy: f"case when len(_c) > 0 then {_NO_NUMBER.format(_YY)} end",
    exp.RegrSxy: f"case when len(_c) > 0 then {_NO_NUMBER.format(_XY)} end",
    exp.RegrSlope: f"case when len(_c) > 0 and {_XX} <> 0 then {_NO_NUMBER.format(_XY)} / {_NO_NUMBER.format(_XX)} end",
    exp.RegrIntercept: (
        f"case when len(_c) > 0 and {_XX} <> 0 then "
        f"_m.y - {_NO_NUMBER.format(_XY)} / {_NO_NUMBER.format(_XX)} * _m.x end"
    ),
    exp.RegrR2: (
        f"case when len(_c) = 0 or {_XX} = 0 then null when {_YY} = 0 then 1 "
        f"else {_XY} * {_XY} / ({_NO_NUMBER.format(_XX)} * {_NO_NUMBER.format(_YY)}) end"
    ),
}
# A mean far from zero has lost digits: the mean of the distances from it gives them back.
_ALONE = (
    "list_transform([list_transform([list_avg(arg_l)], lambda _m: list_transform(arg_l, lambda _w: _w - _m))[1]], "
    "lambda _d: list_transform([list_transform([list_avg(_d)], lambda _e: list_transform(_d, lambda _w: _w - _e))[1]], "
    "lambda _c: {})[1])[1]"
)
_MEANS = (
    "[{{{{'x': list_avg(list_transform({0}, lambda _w: _w.x)), 'y': list_avg(list_transform({0}, lambda _w: _w.y))}}}}]"
)
_LESS = "[list_transform({0}, lambda _w: {{{{'x': _w.x - {1}.x, 'y': _w.y - {1}.y}}}})]"
_PAIRED = (
    f"list_transform({_MEANS.format('arg_l')}, lambda _m: list_transform({_LESS.format('arg_l', '_m')}, "
    f"lambda _d: list_transform({_MEANS.format('_d')}, lambda _e: list_transform({_LESS.format('_d', '_e')}, "
    "lambda _c: {})[1])[1])[1])[1]"
)


def _kind(node: exp.Expr) -> type[exp.Expr] | str:
    if isinstance(node, exp.AnonymousAggFunc):
        return node.name.lower()
    return exp.Stddev if isinstance(node, exp.StddevSamp) else type(node)


def is_moment(node: exp.Expr) -> bool:
    """Tell whether an aggregate is one of these."""
    return _kind(node) in _OF_ONE or type(node) in _OF_TWO


def collected(node: exp.Expr, conditions: list[exp.Expr]) -> exp.Expr:
    """Write the list of a group's values, of rows in which all are known and that meet all conditions."""
    first = node.expressions[0] if isinstance(node, exp.AnonymousAggFunc) else node.this
    if type(node) in _OF_TWO:
        held = {"y": first, "x": node.expression}
        item = piece("{'x': cast(arg_x as double), 'y': cast(arg_y as double)}", **held)
    elif isinstance(first, exp.Distinct):
        held = {"x": first.expressions[0]}
        item = exp.Distinct(expressions=[piece("cast(arg_x as double)", **held)])
    else:
        held = {"x": first}
        item = piece("cast(arg_x as double)", **held)
    known = [piece("arg_v is not null", v=value) for value in held.values()]
    kept = exp.and_(*(exp.paren(condition.copy()) for condition in [*known, *conditions]))
    return exp.Filter(this=call("list", item), expression=exp.Where(this=kept))


def computed(node: exp.Expr, values: exp.Expr) -> exp.Expr:
    """Write an aggregate over the list of its group's values."""
    if type(node) in _OF_TWO:
        return piece(_PAIRED.format(_OF_TWO[type(node)]), l=values)
    return piece(_ALONE.format(_OF_ONE[_kind(node)]), l=values)
