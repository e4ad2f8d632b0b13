"""Replace every call in a Spark SQL tree by DuckDB's, or report the calls that DuckDB can't run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from sqlglot import exp

from sqlrun.transpile import (
    aggregates as duckdb_aggregates,
)
from sqlrun.transpile import (
    casts as duckdb_casts,
)
from sqlrun.transpile import (
    datetimes as duckdb_times,
)
from sqlrun.transpile import (
    decimals as duckdb_decimals,
)
from sqlrun.transpile import (
    letters,
)
from sqlrun.transpile import (
    nested as duckdb_nested,
)
from sqlrun.transpile import (
    numbers as duckdb_numbers,
)
from sqlrun.transpile import (
    ordering as duckdb_ordering,
)
from sqlrun.transpile import (
    text as duckdb_text,
)
from sqlrun.transpile.templates import UnlikeSparkError, call, failing, repeating
from sqlrun.transpile.trees import copied

CALLS: Mapping[str, Callable[[list[exp.Expr]], exp.Expr]] = {
    **duckdb_text.CALLS,
    **duckdb_numbers.CALLS,
    **duckdb_times.CALLS,
    **duckdb_nested.CALLS,
    "every": lambda arguments: call("bool_and", *arguments),
    "some": lambda arguments: call("bool_or", *arguments),
}
# Calls that sqlglot has a class for.
CLASSES: Mapping[type[exp.Expr], Callable[[Any], exp.Expr]] = {
    exp.ArrayAll: lambda node: duckdb_nested.quantified(node.this, node.expression, every=True),
    exp.ArrayContains: duckdb_nested.contains,
    exp.ArrayDistinct: lambda node: CALLS["array_distinct"]([node.this]),
    exp.ArrayFilter: duckdb_nested.indexed,
    exp.ArrayMax: lambda node: CALLS["array_max"]([node.this]),
    exp.ArrayMin: lambda node: CALLS["array_min"]([node.this]),
    exp.ArraySize: lambda node: CALLS["cardinality"]([node.this]),
    exp.ArraySlice: duckdb_nested.sliced,
    exp.Asinh: duckdb_numbers.asinh,
    exp.BitwiseCount: lambda node: CALLS["bit_count"]([node.this]),
    exp.BitwiseLeftShift: duckdb_numbers.shifted,
    exp.BitwiseRightShift: duckdb_numbers.shifted,
    exp.Ceil: duckdb_numbers.whole,
    exp.Chr: lambda node: CALLS["chr"](node.expressions),
    exp.Date: lambda node: CALLS["to_date"]([node.this]),
    exp.DateTrunc: duckdb_times.truncated_date,
    exp.Encode: duckdb_text.encode,
    exp.Extract: lambda node: duckdb_times.field(node.name, node.expression),
    exp.Floor: duckdb_numbers.whole,
    exp.FromBase64: duckdb_text.decoded,
    exp.GenerateSeries: duckdb_nested.sequence,
    exp.Initcap: letters.initcap,
    exp.IsNan: lambda node: CALLS["isnan"]([node.this]),
    exp.JSONExtractScalar: duckdb_nested.json_value,
    exp.Lower: letters.lower,
    exp.MakeInterval: duckdb_times.interval,
    exp.Ln: lambda node: CALLS["log"]([node.this]),
    exp.Reduce: duckdb_nested.reduced,
    exp.RegexpCount: duckdb_text.counted,
    exp.RegexpExtract: duckdb_text.extract,
    exp.RegexpExtractAll: duckdb_text.extract,
    exp.RegexpInstr: duckdb_text.found_at,
    exp.RegexpLike: duckdb_text.matched,
    exp.RegexpReplace: duckdb_text.replaced,
    exp.RegexpSplit: duckdb_text.split,
    exp.Round: duckdb_casts.rounded,
    exp.Space: duckdb_text.space,
    exp.StrPosition: duckdb_text.position,
    exp.Substring: duckdb_text.substring,
    exp.TimestampTrunc: duckdb_times.truncated,
    exp.ToBinary: duckdb_text.binary,
    exp.Transform: duckdb_nested.indexed,
    exp.TsOrDsToDate: lambda node: CALLS["to_date"]([node.this]),
    exp.Upper: letters.upper,
    exp.UnixSeconds: lambda node: duckdb_times.seconds(node.this),
}


def translated(tree: exp.Expr, original: exp.Expr) -> exp.Expr:
    """Return the tree with every call in DuckDB's SQL, inner calls first. It changes the tree.

    The tree is a copy of `original`, from which errors of compiled SQL take the text of their expression.

    Raises: UnlikeSparkError for a call that DuckDB can't run as Spark does.
    """
    duckdb_decimals.note(tree)
    duckdb_ordering.note(tree)
    for node, same in zip(_inner_first(tree), _inner_first(original), strict=True):
        above = node.find_ancestor(exp.Having, exp.Qualify, exp.Select)
        with repeating(isinstance(above, exp.Having | exp.Qualify)), failing(partial(_written, same)):
            made = _translated(node)
        if made is node:
            continue
        if node is tree:
            tree = made
        else:
            node.replace(made)
    return tree


def unlike(tree: exp.Expr) -> Iterator[tuple[exp.Expr, UnlikeSparkError]]:
    """Yield the calls that DuckDB can't run as Spark does; the tree isn't changed."""
    for node in copied(tree).walk():
        try:
            _translated(node)
        except UnlikeSparkError as error:
            yield node, error


def _written(node: exp.Expr) -> str:
    return node.sql("spark", comments=False)


def _inner_first(tree: exp.Expr) -> list[exp.Expr]:
    return list(tree.walk(bfs=True))[::-1]


def _translated(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.AnonymousAggFunc():
            return duckdb_aggregates.aggregate(node)
        case exp.Anonymous() if duckdb_decimals.operands(node):
            made = duckdb_decimals.computed(node, *node.expressions)
            return made if made is not None else duckdb_decimals.positive(node, CALLS["pmod"](node.expressions))
        case exp.BitwiseLeftShift() | exp.BitwiseRightShift():
            return CLASSES[type(node)](node)
        case exp.Div() | exp.Mod() | exp.IntDiv() | exp.Mul() | exp.Add() | exp.Sub():
            return duckdb_decimals.computed(node, node.this, node.expression) or _translated_operator(node)
        case exp.Anonymous():
            translate = CALLS.get(node.name.lower())
            return translate(node.expressions) if translate is not None else node
        case exp.Like() | exp.ILike():
            return duckdb_text.like(node)
        case exp.Cast():
            return duckdb_casts.cast(node)
        case exp.Func():
            return _translated_class(node)
        case exp.Bracket():
            return duckdb_casts.element(node)
        case exp.Window() | exp.Filter() | exp.WithinGroup():
            return duckdb_aggregates.aggregate(node)
        case _:
            return node


def _translated_operator(node: exp.Binary) -> exp.Expr:
    match node:
        case exp.Div():
            return duckdb_numbers.divided(node)
        case exp.Mod():
            return duckdb_numbers.remainder(node)
        case exp.IntDiv():
            return duckdb_casts.whole_part(node)
        case exp.Add() | exp.Sub():
            return duckdb_casts.moved(node)
        case _:
            return node


def _translated_class(node: exp.Func) -> exp.Expr:
    ordered = duckdb_ordering.ordered(node)
    if ordered is not None:
        return ordered
    known = CLASSES.get(type(node))
    if known is not None:
        return known(node)
    match node:
        case exp.ArrayAny() | exp.Exists() if node.args.get("expression") is not None:
            return duckdb_nested.quantified(node.this, node.expression, every=False)
        case exp.ArraySort() if node.args.get("expression") is not None:
            raise UnlikeSparkError("it can't sort by a custom comparison", "Sort structs by their first field.")
        case exp.Inline():
            raise UnlikeSparkError("it has no inline()", "Explode the array, and select the struct's fields.")
        case exp.Replace() if node.args.get("replacement") is None:
            return call("replace", node.this, node.expression, exp.Literal.string(""))
        case _:
            return duckdb_aggregates.aggregate(node)
