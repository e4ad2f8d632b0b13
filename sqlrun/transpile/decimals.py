"""Spark's arithmetic of decimals, as DuckDB's: exact, in whole numbers of 128 bits. Pure.

`decimal_casts.py` casts each operand to its type on Spark. A quotient is that of the operands as whole numbers, with as
many digits behind the point as Spark gives it, a half rounded up. What has no 128 bits is an error, never another
number.
"""

from __future__ import annotations

from sqlglot import exp

from sqlrun.transpile import spark_types as spark
from sqlrun.transpile.spark_types import MOST_DIGITS, Kind
from sqlrun.transpile.templates import UnlikeSparkError, piece, repeated

_OPERANDS = "decimals"
# Set by who divides a sum by a count: the type of the average.
AVERAGE = "average"
# DuckDB keeps decimals of so many digits in 64 bits.
_NARROW = 18
_COUNT = spark.decimal(20, 0)
_BINARY = (exp.Div, exp.Mod, exp.IntDiv, exp.Mul, exp.Add, exp.Sub)
_CALLS = ("try_divide", "pmod")


def note(tree: exp.Expr) -> None:
    """Note the types of decimal operands before their casts are written for DuckDB; the tree's meta is changed."""
    for node in tree.find_all(*_BINARY, exp.Avg, exp.Sum, exp.Anonymous, exp.Ceil, exp.Floor):
        kinds = operands(node)
        if kinds:
            node.meta[_OPERANDS] = kinds


def operands(node: exp.Expr) -> tuple[Kind, ...]:
    """Return the types of a node's operands where all are cast to decimals; none otherwise."""
    if _OPERANDS in node.meta:
        noted: tuple[Kind, ...] = node.meta[_OPERANDS]
        return noted
    values: list[exp.Expr] = []
    match node:
        case exp.Anonymous() if node.name.lower() in _CALLS and len(node.expressions) == 2:
            values = node.expressions
        case exp.Binary() if isinstance(node, _BINARY):
            values = [node.this, node.expression]
        case exp.Avg() | exp.Sum() | exp.Ceil() | exp.Floor():
            values = list(node.this.expressions) if isinstance(node.this, exp.Distinct) else [node.this]
        case _:
            return ()
    kinds = [spark.of_tree(value.to) if type(value) is exp.Cast else None for value in values]
    found = tuple(kind for kind in kinds if kind is not None and kind.name == "decimal")
    return found if values and len(found) == len(values) else ()


def computed(node: exp.Expr, left: exp.Expr, right: exp.Expr) -> exp.Expr | None:
    """Write decimal arithmetic; None where DuckDB's own does the same."""
    if AVERAGE in node.meta:
        result, _, size = node.meta[AVERAGE]
        return quotient(left, right, _summed(*size), _COUNT, spark.read(result), by_zero_is_null=True)
    kinds = operands(node)
    if len(kinds) != 2:
        return None
    one, other = kinds
    left, right = left.unnest(), right.unnest()
    match node:
        case exp.Div():
            return quotient(left, right, one, other, spark.divide(one, other))
        case exp.Anonymous(this=name) if name.lower() == "try_divide":
            return quotient(left, right, one, other, spark.divide(one, other), by_zero_is_null=True)
        case exp.IntDiv():
            return _whole_quotient(left, right, one, other)
        case exp.Mul() | exp.Add() | exp.Sub():
            return _cut(node, left, right, one, other)
        case _:
            _same_scale(one, other)
            return None


def positive(node: exp.Expr, value: exp.Expr) -> exp.Expr:
    """Cast pmod of decimals to its type on Spark."""
    return piece(f"cast(arg_x as {spark.remainder(*operands(node))})", x=value)


def _cut(node: exp.Expr, left: exp.Expr, right: exp.Expr, one: Kind, other: Kind) -> exp.Expr | None:
    """Round a product or a sum that has more digits behind the point than Spark keeps."""
    if isinstance(node, exp.Mul):
        result, scale = spark.multiply(one, other), one.size[1] + other.size[1]
    else:
        result, scale = spark.add(one, other), max(one.size[1], other.size[1])
    if result is None or (result.size[1] == scale and not is_wide(node, one, other)):
        return None
    if scale > MOST_DIGITS:
        raise UnlikeSparkError(
            "it has no decimals with this number of digits", "Cast the operands to decimals with fewer digits."
        )
    sign = "*" if isinstance(node, exp.Mul) else "+" if isinstance(node, exp.Add) else "-"
    return repeated(f"cast(cast(arg_a as decimal(38, {one.size[1]})) {sign} arg_b as {result})", a=left, b=right)


def is_wide(node: exp.Expr, one: Kind, other: Kind) -> bool:
    """Return whether DuckDB would multiply in 64 bits what needs more."""
    return isinstance(node, exp.Mul) and one.size[0] + other.size[0] > _NARROW >= max(one.size[0], other.size[0])


def _same_scale(one: Kind, other: Kind) -> int:
    """Return the larger scale of two; DuckDB makes doubles of what doesn't fit then."""
    scale = max(one.size[1], other.size[1])
    if max(one.size[0] - one.size[1], other.size[0] - other.size[1]) + scale > MOST_DIGITS:
        raise UnlikeSparkError(
            "it has no decimals with this number of digits", "Cast the operands to decimals with fewer digits."
        )
    return scale


def _summed(precision: int, scale: int) -> Kind:
    return spark.decimal(precision + 10, scale)


def _unscaled(value: exp.Expr, kind: Kind) -> exp.Expr:
    """Write a decimal as the whole number of its digits."""
    precision, scale = kind.size
    if scale == 0:
        return piece("cast(arg_x as hugeint)", x=value)
    if precision + scale + 1 <= MOST_DIGITS:
        return piece(f"cast(cast(arg_x as decimal(38, {scale})) * {10**scale} as hugeint)", x=value)
    return piece(f"cast(replace(cast(cast(arg_x as {kind}) as varchar), '.', '') as hugeint)", x=value)


def _power(digits: int, times: int = 1) -> str:
    return f"cast('{times * 10**digits}' as hugeint)"


def quotient(
    left: exp.Expr, right: exp.Expr, one: Kind, other: Kind, result: Kind | None, *, by_zero_is_null: bool = False
) -> exp.Expr:
    """Divide one decimal by another, rounding a half away from zero; DuckDB itself refuses to divide by zero."""
    assert result is not None
    scale = result.size[1]
    shift = scale - one.size[1] + other.size[1]
    n, d = _unscaled(left, one), _unscaled(right, other)
    if shift < 0:
        d = piece(f"arg_d * {_power(-shift)}", d=d)
    if by_zero_is_null:
        d = piece("nullif(arg_d, 0)", d=d)
    # Whole numbers are cut off towards zero: half of the divisor more rounds a half away from it.
    half, power = "sign(arg_n) * abs(arg_d)", max(shift, 0)
    if one.size[0] + power < MOST_DIGITS:
        value = f"(arg_n * {_power(power, 2)} + {half}) // (arg_d * 2)"
    else:
        # In two steps, since the dividend may have no room for the digits that are added.
        part = f"((arg_n % arg_d) * {_power(power, 2)} + {half}) // (arg_d * 2)"
        value = f"(arg_n // arg_d) * {_power(power)} + {part}"
    point = "" if scale == 0 else f" * cast('{_point(scale)}' as decimal({scale}, {scale}))"
    return repeated(f"cast(cast({value} as decimal(38, 0)){point} as {result})", n=n, d=d)


def _point(scale: int) -> str:
    return "0." + "0" * (scale - 1) + "1"


def _whole_quotient(left: exp.Expr, right: exp.Expr, one: Kind, other: Kind) -> exp.Expr:
    """Write div: the whole part of a quotient, as a bigint."""
    scale = max(one.size[1], other.size[1])
    n, d = _unscaled(left, one), _unscaled(right, other)
    n = piece(f"arg_n * {_power(scale - one.size[1])}", n=n) if scale > one.size[1] else n
    d = piece(f"arg_d * {_power(scale - other.size[1])}", d=d) if scale > other.size[1] else d
    return repeated("cast(arg_n // arg_d as bigint)", n=n, d=d)


def average(total: exp.Expr, count: exp.Expr, kind: Kind) -> exp.Expr:
    """Divide the sum of decimals of a type by their count; no values have no average."""
    return quotient(total, count, _summed(*kind.size), _COUNT, spark.averaged(kind), by_zero_is_null=True)


def ceiled(node: exp.Ceil | exp.Floor, digits: int) -> exp.Expr:
    """Write ceil(x, n) and floor(x, n) of a decimal."""
    (kind,) = operands(node)
    scale = kind.size[1]
    name = "ceil" if isinstance(node, exp.Ceil) else "floor"
    result = spark.rounded(kind, digits)
    assert result is not None
    if digits >= scale:
        return repeated(f"cast(arg_x as {result})", x=node.this)
    n, step = _unscaled(node.this, kind), _power(scale - digits)
    if scale - digits > MOST_DIGITS:
        raise UnlikeSparkError(f"it can't round to {digits} digits")
    # Whole numbers are cut off towards zero.
    more = "1" if name == "ceil" else "-1"
    sign = ">" if name == "ceil" else "<"
    whole = f"(arg_n // {step} + case when arg_n % {step} {sign} 0 then {more} else 0 end)"
    if digits <= 0:
        return repeated(f"cast({whole} * {_power(-digits)} as {result})", n=n)
    return repeated(
        f"cast(cast({whole} as decimal(38, 0)) * cast('{_point(digits)}' as decimal({digits}, {digits})) as {result})",
        n=n,
    )


def whole(node: exp.Ceil | exp.Floor, name: str) -> exp.Expr:
    """Write ceil(x) and floor(x) of a decimal, by its type on Spark: it may be too large for a bigint."""
    result = spark.floored(operands(node)[0])
    return piece(f"cast({name}(arg_x) as {result})", x=node.this)


def window_sum(node: exp.Expr, kind: Kind) -> exp.Expr:
    """Write a sum over whole partitions, of decimals of a type in 128 bits.

    DuckDB's optimizer sums narrower ones up as whole numbers, and stops with an internal error where it has made the
    window a join and a later condition on the sum is one of that join.
    """
    if node.args.get("order"):
        return node
    made = node.copy()
    inner = made.find(exp.Sum)
    assert inner is not None
    inner.set("this", piece(f"cast(arg_x as decimal({MOST_DIGITS}, {kind.size[1]}))", x=inner.this))
    return made


def mean(node: exp.Expr, call: exp.Avg) -> exp.Expr:
    """Write an average with what stands around it (FILTER, OVER): a sum and a count with the same around each."""
    (kind,) = operands(call)
    parts = []
    for make in (exp.Sum, exp.Count):
        other_environments = node.copy()
        at = other_environments.find(exp.Avg)
        assert at is not None
        made = make(this=at.this.copy())
        if at is not other_environments:
            at.replace(made)
        parts.append(made if at is other_environments else other_environments)
    if isinstance(node, exp.Window):
        parts[0] = window_sum(parts[0], kind)
    return average(parts[0], parts[1], kind)
