"""Cast operands of decimal arithmetic to their Spark types, so that both engines compute alike. Pure.

DuckDB divides decimals as doubles and rounds sums and products to other scales. Spark's result depends on the types of
the operands alone. So each operand is cast to its Spark type: on Spark that changes nothing, and the query's text is
enough to write DuckDB's SQL (`transpile/decimals.py`). An operand of unknown type stays as it is; `unsettled` reports
it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrun.parse.type_check import Walk
from sqlrun.transpile import spark_types as spark
from sqlrun.transpile.spark_types import Kind, literal_beside
from sqlrun.transpile.trees import every

# Calls of two numbers that sqlglot has no class for, and whose digits depend on their types.
_CALLS = ("try_divide", "pmod")
_QUOTIENTS = (exp.Div, exp.Mod, exp.IntDiv, exp.Mul, exp.Add, exp.Sub)
_SINGLE = (exp.Avg, exp.Round, exp.Ceil, exp.Floor)
# Maximum precision of decimals that DuckDB stores, and multiplies, in 64 bits.
_NARROW = 18
# On Spark, ceil(x, n) and floor(x, n) of a double have the type of this decimal.
_OF_DOUBLE = spark.decimal(30, 15)


def typed(walk: Walk) -> exp.Query:
    """Return the tree with the operands of decimal arithmetic cast to their types; the walk is invalid afterwards."""
    tree = walk.tree
    found = [node for node in every(tree, exp.Binary, exp.Anonymous, exp.Sum, *_SINGLE)
             if isinstance(node, (*_QUOTIENTS, *_SINGLE)) or _is_call(node) or _is_window_sum(node)]  # fmt: skip
    if not found:
        return tree
    try:
        kinds = [[walk.anywhere(operand) for operand in _operands(node)] for node in found]
    except (RecursionError, SqlglotError):  # nested too deeply for type inference
        return tree
    for node, known in zip(found, kinds, strict=True):
        _settle(node, known)
    return tree


def unsettled(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """Yield divisions and averages of values of unknown type, for which DuckDB may return other digits."""
    for node in every(tree, exp.Div, exp.Avg, exp.Anonymous):
        divides = isinstance(node, exp.Div | exp.Avg) or node.name.lower() == "try_divide"
        if divides and not all(isinstance(operand, exp.Cast) for operand in _operands(node)):
            yield node, "avg()" if isinstance(node, exp.Avg) else "a division"


def _is_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in _CALLS and len(node.expressions) == 2


def _is_window_sum(node: exp.Expr) -> bool:
    return isinstance(node, exp.Sum) and isinstance(node.parent, exp.Window) and not node.parent.args.get("order")


def _operands(node: exp.Expr) -> list[exp.Expr]:
    match node:
        case exp.Anonymous():
            return list(node.expressions)
        case exp.Binary():
            return [node.this, node.expression]
        case exp.Avg() if isinstance(node.this, exp.Distinct):
            return list(node.this.expressions)
        case _:
            return [node.this]


def _settle(node: exp.Expr, kinds: list[Kind | None]) -> None:
    operands = _operands(node)
    known = [kind for kind in kinds if spark.is_number(kind) and kind is not None]
    if len(known) < len(operands):
        return
    if len(known) == 2:
        one, other = known
        known = [literal_beside(operands[0], one, other), literal_beside(operands[1], other, one)]
    wanted = _wanted(node, known)
    for operand, kind in zip(operands, wanted, strict=True):
        if kind is not None:
            _cast(operand, kind)


def _wanted(node: exp.Expr, kinds: list[Kind]) -> list[Kind | None]:
    """Return the types to cast the operands to; None for an operand that stays as it is."""
    as_is: list[Kind | None] = [None for _ in kinds]
    decimals = any(kind.name == "decimal" for kind in kinds)
    doubles = any(kind.name in ("float", "double") for kind in kinds)
    match node:
        case exp.Avg():
            return [kinds[0]]
        case exp.Round():
            return [spark.DOUBLE] if kinds[0] == spark.DOUBLE else as_is
        case exp.Ceil() | exp.Floor() if node.args.get("decimals") is not None:
            return [_scaled(kinds[0])]
        case exp.Ceil() | exp.Floor() | exp.Sum():
            return [kinds[0]] if decimals else as_is
        case exp.Div() | exp.Anonymous(this="try_divide") if doubles or not decimals:
            return [spark.DOUBLE for _ in kinds]
        case _ if doubles or not decimals:
            return as_is
        case exp.Mul() | exp.Add() | exp.Sub() if not _is_cut(node, kinds):
            return as_is
        case _:
            return [_exact(kind) for kind in kinds]


def _is_cut(node: exp.Expr, kinds: list[Kind]) -> bool:
    """Return whether Spark cuts digits off a product or a sum, or DuckDB has no room for them."""
    (digits, one), (more, other) = _exact(kinds[0]).size, _exact(kinds[1]).size
    if isinstance(node, exp.Mul) and digits + more > _NARROW >= max(digits, more):
        return True
    result = spark.multiply(*kinds) if isinstance(node, exp.Mul) else spark.add(*kinds)
    return result is not None and result.size[1] < (one + other if isinstance(node, exp.Mul) else max(one, other))


def _exact(kind: Kind) -> Kind:
    size = spark.as_decimal(kind)
    assert size is not None, kind
    return spark.decimal(*size)


def _scaled(kind: Kind) -> Kind:
    return _OF_DOUBLE if kind.name in ("float", "double") else _exact(kind)


def _cast(operand: exp.Expr, kind: Kind) -> None:
    made = exp.Cast(to=exp.DataType.build(str(kind), dialect="databricks"))
    operand.replace(made)
    made.set("this", operand)
