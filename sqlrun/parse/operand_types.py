"""Refuse conditions and operators over types that Spark doesn't accept, such as a date times two. Pure.

DuckDB accepts many of them, and Spark would fail in a tick. tests/cases/operands.txt has Spark's own answer for each
operator and pair of types.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrun.parse.scopes import written
from sqlrun.parse.type_check import Walk
from sqlrun.transpile import spark_types as spark
from sqlrun.transpile.spark_types import Kind
from sqlrun.transpile.trees import COMPARISONS, every

Found = tuple[exp.Expr, str, str]
COMPARED = (*COMPARISONS, exp.Nullif)
_EXTREME = (exp.Greatest, exp.Least)
_CALCULATED = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_OF_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
_OF_CONDITIONS = (exp.Not, exp.CountIf, exp.LogicalAnd, exp.LogicalOr)
_SUMMED = (
    exp.Sum, exp.Avg, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Median, exp.Abs,
)  # fmt: skip
_LAMBDAS = (exp.ArrayFilter, exp.ArrayAny, exp.ArrayAll, exp.Exists)
_LOOKED_AT = (
    *COMPARED, *_EXTREME, *_CALCULATED, *_OF_BITS, *_OF_CONDITIONS, *_SUMMED, *_LAMBDAS, exp.And, exp.Or, exp.IntDiv,
    exp.Neg, exp.BitwiseNot, exp.Where, exp.Having, exp.Qualify, exp.Join, exp.If, exp.Case, exp.In, exp.Between,
    exp.Coalesce, exp.Array, exp.Nvl2, exp.Is, exp.Max, exp.Min, exp.DPipe, exp.Like, exp.ILike, exp.Anonymous,
)  # fmt: skip
_TIMES = ("date", "timestamp", "timestamp_ntz")
NESTED = ("array", "map", "struct")
_SMALL = ("tinyint", "smallint", "int", "void")
CONDITION = "Write a comparison, for example k <> 0 or k is not null."
CAST = "Cast one of the values, so that both have the same type."
ONE = "Cast the value to a number. To count the rows where a condition holds, use count_if()."
LONGEST = 40


def found(walk: Walk) -> Iterator[Found]:
    """Yield what Spark has no operator for: (node, why, what to write instead)."""
    try:
        for node in every(walk.tree, *_LOOKED_AT):
            yield from _of(node, walk)
    except (RecursionError, SqlglotError):  # nested too deeply for type inference
        return


def _of(node: exp.Expr, walk: Walk) -> Iterator[Found]:
    for condition, strict in conditions(node):
        kind = walk.anywhere(condition)
        if kind is not None and kind != spark.BOOLEAN and (strict or kind not in (spark.VOID, spark.STRING)):
            yield (
                condition,
                f"the condition `{_shown(condition)}` is of type `{kind}`, not boolean",
                CONDITION,
            )
            return
    for number, group in enumerate(groups(node)):
        kinds = [kind for part in group if (kind := walk.anywhere(part)) is not None and kind != spark.VOID]
        compares = isinstance(node, (*COMPARED, *_EXTREME, exp.In, exp.Between)) or number == 1
        if not _fit(kinds, node, compares):
            yield node, f"Spark can't combine {_listed(kinds)} in `{_shown(node)}`", CAST
            return
    yield from _calculated(node, walk)


def conditions(node: exp.Expr) -> list[tuple[exp.Expr, bool]]:
    """Return the conditions of an expression, each with whether it must be a boolean: else a text will do."""
    match node:
        case exp.Where() | exp.Having() | exp.Qualify():
            return [(node.this, True)]
        case exp.Join() if node.args.get("on") is not None:
            return [(node.args["on"], True)]
        case exp.If() if not (isinstance(node.parent, exp.Case) and node.parent.this is not None):
            return [(node.this, True)]
        case exp.ArrayFilter() | exp.ArrayAny() | exp.ArrayAll() | exp.Exists():
            body = node.args.get("expression")
            return [(body.this, True)] if isinstance(body, exp.Lambda) else []
        case exp.And() | exp.Or():
            return [(node.this, False), (node.expression, False)]
        case exp.Is() if isinstance(node.expression, exp.Boolean):
            return [(node.this, False)]
        case exp.Anonymous() if node.name.lower() in ("every", "some") and node.expressions:
            return [(node.expressions[0], False)]
        case _ if isinstance(node, _OF_CONDITIONS):
            return [(node.this, False)]
        case _:
            return []


def groups(node: exp.Expr) -> list[list[exp.Expr]]:
    """Return the groups of operands that need a common type; in CASE the compared ones are the second group."""
    match node:
        case exp.Between():
            return [[node.this, node.args["low"], node.args["high"]]]
        case exp.In():
            return [[node.this, *node.expressions]]
        case exp.If() if not isinstance(node.parent, exp.Case):
            return [[part for part in (node.args["true"], node.args.get("false")) if part is not None]]
        case exp.Nvl2():
            return [[node.args["true"], node.args["false"]]]
        case exp.Case():
            default = node.args.get("default")
            values = [branch.args["true"] for branch in node.args["ifs"]] + ([default] if default is not None else [])
            tests = [node.this, *(branch.this for branch in node.args["ifs"])] if node.this is not None else []
            return [values, tests]
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            return [[node.this, *node.expressions]]
        case exp.Array():
            return [list(node.expressions)]
        case _ if isinstance(node, COMPARED):
            return [[node.this, node.args["expression"]]]
        case _:
            return []


def _fit(kinds: list[Kind], node: exp.Expr, compares: bool) -> bool:
    """Return whether Spark compares values of these types, or finds a common type for them."""
    families = {_family(kind) for kind in kinds}
    if "text" in families and len(families) > 1:
        return not families & {*NESTED} and not isinstance(node, _EXTREME)
    if len(families) > 1:
        return False
    if families & {"array", "struct"}:
        return all(_alike(kinds[0], kind, node) for kind in kinds)
    return not (compares and "map" in families)


def _alike(one: Kind, other: Kind, node: exp.Expr) -> bool:
    """Return whether two nested types are compatible; comparisons ignore the names of fields."""
    if {one.name, other.name} & {"void"}:
        return True
    if one.name not in NESTED:
        return _family(one) == _family(other)
    named = isinstance(node, (*COMPARED, exp.In)) or [f.lower() for f in one.fields] == [
        f.lower() for f in other.fields
    ]
    return (
        one.name == other.name
        and len(one.parts) == len(other.parts)
        and named
        and all(_alike(a, b, node) for a, b in zip(one.parts, other.parts, strict=True))
    )


def _calculated(node: exp.Expr, walk: Walk) -> Iterator[Found]:
    """Yield arithmetic over types that Spark doesn't compute with."""
    match node:
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod() | exp.IntDiv():
            values = [node.this, node.expression]
        case (
            exp.BitwiseAnd()
            | exp.BitwiseOr()
            | exp.BitwiseXor()
            | exp.DPipe()
            | exp.Like()
            | exp.ILike()
            | exp.And()
            | exp.Or()
        ):
            values = [node.this, node.expression]
        case exp.Max() | exp.Min():
            values = [node.this]
        case exp.Neg() | exp.BitwiseNot():
            values = [node.this]
        case _ if isinstance(node, _SUMMED):
            values = [node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this]
        case _:
            return
    kinds = [kind for value in values if (kind := walk.anywhere(value)) is not None]
    if len(kinds) < len(values) or _computes(node, kinds):
        return
    advice = CAST if len(kinds) > 1 else ONE
    if {kind.name for kind in kinds} & {*_TIMES}:
        advice = "Use date_add() and datediff() to compute with days."
    yield node, f"Spark can't compute with {_listed(kinds)} in `{_shown(node)}`", advice


def _computes(node: exp.Expr, kinds: list[Kind]) -> bool:
    names = [kind.name for kind in kinds]
    if isinstance(node, exp.Sub | exp.Add) and set(names) & {*_TIMES}:
        moved = names[0] == "date" and names[1] in _SMALL
        if isinstance(node, exp.Add):
            return moved or (names[1] == "date" and names[0] in _SMALL)
        return moved or set(names) <= {*_TIMES, "string", "void"}
    numbers = all(spark.is_number(kind) or kind in (spark.STRING, spark.VOID) for kind in kinds)
    numbers = numbers and (names != ["string", "string"])
    match node:
        case exp.BitwiseNot() if names == ["string"]:
            return False
        case exp.BitwiseAnd() | exp.BitwiseOr() | exp.BitwiseXor() | exp.BitwiseNot():
            return numbers and not {*names} & {"decimal", "double", "float"}
        case exp.IntDiv():
            return numbers and not {*names} & {"double", "float"} and {*names} != {"decimal", "string"}
        case exp.And() | exp.Or():
            return names != ["string", "string"]
        case exp.DPipe() | exp.Like() | exp.ILike():
            nested = {*names} & {*NESTED}
            return not nested or (isinstance(node, exp.DPipe) and {*names} <= {"array", "void"})
        case exp.Max() | exp.Min():
            return names != ["map"]
        case exp.Sum() | exp.Avg() if names == ["timestamp"]:  # as seconds
            return True
        case _:
            return numbers


def _family(kind: Kind) -> str:
    if spark.is_number(kind):
        return "number"
    if kind.name in _TIMES:
        return "time"
    return "text" if kind == spark.STRING else kind.name


def _listed(kinds: list[Kind]) -> str:
    return " and ".join(f"`{name}`" for name in dict.fromkeys(str(kind) for kind in kinds))


def _shown(node: exp.Expr) -> str:
    text = written(node)
    return text if len(text) <= LONGEST else "..."
