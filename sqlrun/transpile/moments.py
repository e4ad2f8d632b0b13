"""Variances, covariances and regressions as Spark computes them, in DuckDB's SQL. Pure.

For a small group the values are collected and their distances from the mean are summed, so no digit is lost however far
from zero they are. For a larger group DuckDB's functions are used, which update row by row like Spark's and need no
memory. Squares that exceed a double are an error. `kurtosis` and `skewness` always collect all values, because DuckDB's
own functions lose digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from sqlrun.transpile.templates import UnlikeSparkError, call, piece, repeated

Wrap = Callable[[exp.Expr], exp.Expr]
# Maximum number of values, and of pairs, in a group that is collected.
MOST_VALUES, MOST_PAIRS = 32, 16
_SQUARES = "list_sum(list_transform(_c, lambda _v: _v * _v))"
_POWERS = "list_sum(list_transform(_c, lambda _v: _v ** {}))"
_NO_NUMBER = "case when isinf({0}) then error('the values are too large for their variance') else {0} end"
# Expressions over the values `_c`, each minus the mean.
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
_XX, _YY, _XY = (
    f"list_sum(list_transform(_c, lambda _v: struct_extract(_v, '{a}') * struct_extract(_v, '{b}')))"
    for a, b in ("xx", "yy", "xy")
)
# Expressions over the pairs `_c`, each minus the means; `_m` has the means. In regressions `y` comes first.
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
        f"struct_extract(_m, 'y') - {_NO_NUMBER.format(_XY)} / {_NO_NUMBER.format(_XX)} * struct_extract(_m, 'x') end"
    ),
    exp.RegrR2: (
        f"case when len(_c) = 0 or {_XX} = 0 then null when {_YY} = 0 then 1 "
        f"else {_XY} * {_XY} / ({_NO_NUMBER.format(_XX)} * {_NO_NUMBER.format(_YY)}) end"
    ),
}
# A mean far from zero has lost digits: subtracting the mean of the distances restores them.
_ALONE = (
    "list_transform([list_transform([list_avg(arg_l)], lambda _m: list_transform(arg_l, lambda _w: _w - _m))[1]], "
    "lambda _d: list_transform([list_transform([list_avg(_d)], lambda _e: list_transform(_d, lambda _w: _w - _e))[1]], "
    "lambda _c: {})[1])[1]"
)
_MEANS = (
    "[{{{{'x': list_avg(list_transform({0}, lambda _w: struct_extract(_w, 'x'))), "
    "'y': list_avg(list_transform({0}, lambda _w: struct_extract(_w, 'y')))}}}}]"
)
_LESS = (
    "[list_transform({0}, lambda _w: {{{{'x': struct_extract(_w, 'x') - struct_extract({1}, 'x'), "
    "'y': struct_extract(_w, 'y') - struct_extract({1}, 'y')}}}})]"
)
_PAIRED = (
    f"list_transform({_MEANS.format('arg_l')}, lambda _m: list_transform({_LESS.format('arg_l', '_m')}, "
    f"lambda _d: list_transform({_MEANS.format('_d')}, lambda _e: list_transform({_LESS.format('_d', '_e')}, "
    "lambda _c: {})[1])[1])[1])[1]"
)
# Functions for larger groups, which never consist of a single NaN: its variance is 0 in DuckDB.
_LARGE_ONE: Mapping[type[exp.Expr], str] = {
    exp.Stddev: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
}
_LXX, _LYY, _LXY = (f"(({_NO_NUMBER.format(f'arg_{name}')}) * arg_n)" for name in ("xx", "yy", "xy"))
_SPREAD = f"(sqrt({_LXX}) * sqrt({_LYY}))"
_LARGE_TWO: Mapping[type[exp.Expr], str] = {
    exp.CovarPop: _NO_NUMBER.format("arg_xy"),
    exp.CovarSamp: _NO_NUMBER.format("arg_sample"),
    exp.Corr: f"case when {_SPREAD} = 0 then error('corr: nothing varies') else {_LXY} / {_SPREAD} end",
    exp.RegrSxx: _LXX,
    exp.RegrSyy: _LYY,
    exp.RegrSxy: _LXY,
    exp.RegrSlope: f"case when {_LXX} <> 0 then {_LXY} / {_LXX} end",
    exp.RegrIntercept: f"case when {_LXX} <> 0 then arg_mean_y - {_LXY} / {_LXX} * arg_mean_x end",
    exp.RegrR2: f"case when {_LXX} = 0 then null when {_LYY} = 0 then 1 else {_LXY} * {_LXY} / ({_LXX} * {_LYY}) end",
}


def _kind(node: exp.Expr) -> type[exp.Expr] | str:
    if isinstance(node, exp.AnonymousAggFunc):
        return node.name.lower()
    return exp.Stddev if isinstance(node, exp.StddevSamp) else type(node)


def is_moment(node: exp.Expr) -> bool:
    """Return whether an aggregate is one of these."""
    return _kind(node) in _OF_ONE or type(node) in _OF_TWO


def computed(node: exp.Expr, conditions: list[exp.Expr], wrap: Wrap) -> exp.Expr:
    """Return an aggregate over the rows that meet all conditions; `wrap` puts each call into the node's window."""
    if type(node) in _OF_TWO:
        return _of_two(node, conditions, wrap)
    value, distinct = _argument(node.expressions[0] if isinstance(node, exp.AnonymousAggFunc) else node.this)

    def over(name: str, *more: exp.Expr) -> exp.Expr:
        made = call(name, exp.Distinct(expressions=[value]) if distinct else value, *more)
        return wrap(_where(made, [piece("arg_v is not null", v=value), *conditions]))

    kind = _kind(node)
    if isinstance(kind, str):
        return piece(_ALONE.format(_OF_ONE[kind]), l=over("list"))
    small = piece(_ALONE.format(_OF_ONE[kind]), l=over("max", exp.Literal.number(MOST_VALUES)))
    large = repeated(_NO_NUMBER.format("arg_v"), v=over(_LARGE_ONE[kind]))
    return _by_size(over("count"), MOST_VALUES, small, large)


def _of_two(node: exp.Expr, conditions: list[exp.Expr], wrap: Wrap) -> exp.Expr:
    if isinstance(node.this, exp.Distinct):
        raise UnlikeSparkError("it doesn't support this form")
    (y, _), (x, _) = _argument(node.this), _argument(node.expression)
    known = [piece("arg_x is not null and arg_y is not null", x=x, y=y), *conditions]

    def over(name: str, *arguments: exp.Expr) -> exp.Expr:
        return wrap(_where(call(name, *arguments), known))

    count = wrap(_where(exp.Count(this=exp.Star()), known))
    pairs = over("max", piece("{'x': arg_x, 'y': arg_y}", x=x, y=y), exp.Literal.number(MOST_PAIRS))
    small = piece(_PAIRED.format(_OF_TWO[type(node)]), l=pairs)
    large = repeated(
        _LARGE_TWO[type(node)],
        n=count,
        xx=over("var_pop", x),
        yy=over("var_pop", y),
        xy=over("covar_pop", y, x),
        sample=over("covar_samp", y, x),
        mean_x=over("favg", x),
        mean_y=over("favg", y),
    )
    return _by_size(count, MOST_PAIRS, small, large)


def _by_size(count: exp.Expr, most: int, small: exp.Expr, large: exp.Expr) -> exp.Expr:
    return repeated(f"case when arg_n > {most} then arg_l else arg_s end", n=count, l=large, s=small)


def _argument(node: exp.Expr) -> tuple[exp.Expr, bool]:
    distinct = isinstance(node, exp.Distinct)
    return piece("cast(arg_x as double)", x=node.expressions[0] if distinct else node), distinct


def _where(node: exp.Expr, conditions: list[exp.Expr]) -> exp.Expr:
    conjunction = exp.and_(*(exp.paren(condition.copy()) for condition in conditions))
    return exp.Filter(this=node, expression=exp.Where(this=conjunction))
