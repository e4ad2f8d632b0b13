"""Spark's arithmetic of decimals in DuckDB's SQL: exact, in integers of 128 bits. Pure.

`decimal_casts.py` casts each operand to its Spark type. A quotient is computed from the operands as integers, to the
scale that Spark gives it, halves rounded up. A value that doesn't fit in 128 bits is an error, never another number.
"""

from __future__ import annotations

from sqlglot import exp

from sqlrun.transpile import spark_types as spark
from sqlrun.transpile.spark_types import MOST_DIGITS, Kind
from sqlrun.transpile.templates import UnlikeSparkError, piece, repeated

_OPERANDS = "decimals"
# Meta key on a division of a sum by a count: the type of the average.
AVERAGE = "average"
# Maximum precision of decimals that DuckDB stores in 64 bits.
_NARROW = 18
_COUNT = spark.decimal(20, 0)
_BINARY = (exp.Div, exp.Mod, exp.IntDiv, exp.Mul, exp.Add, exp.Sub)
_CALLS = ("try_divide", "pmod")


def note(tree: exp.Expr) -> None:
    """Store the types of decimal operands in the nodes' meta, before their casts are rewritten for DuckDB."""
    for node in tree.find_all(*_BINARY, exp.Avg, exp.Sum, exp.Anonymous, exp.Ceil, exp.Floor):
        kinds = operands(node)
        if kinds:
            node.meta[_OPERANDS] = kinds


def operands(node: exp.Expr) -> tuple[Kind, ...]:
    """Return the types of a node's operands if all are cast to decimals, else ()."""
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
    """Return decimal arithmetic in DuckDB's SQL; None if DuckDB's own gives the same result."""
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
    """Return pmod of decimals, cast to its Spark type."""
    return piece(f"cast(arg_x as {spark.remainder(*operands(node))})", x=value)


def _cut(node: exp.Expr, left: exp.Expr, right: exp.Expr, one: Kind, other: Kind) -> exp.Expr | None:
    """Return a product or a sum rounded to Spark's scale; None if it has no more digits than that."""
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
    """Return whether DuckDB would multiply in 64 bits although the product needs more."""
    return isinstance(node, exp.Mul) and one.size[0] + other.size[0] > _NARROW >= max(one.size[0], other.size[0])


def _same_scale(one: Kind, other: Kind) -> int:
    """Return the larger of two scales. Raise UnlikeSparkError if DuckDB would convert the decimals to doubles."""
    scale = max(one.size[1], other.size[1])
    if max(one.size[0] - one.size[1], other.size[0] - other.size[1]) + scale > MOST_DIGITS:
        raise UnlikeSparkError(
            "it has no decimals with this number of digits", "Cast the operands to decimals with fewer digits."
        )
    return scale


def _summed(precision: int, scale: int) -> Kind:
    return spark.decimal(precision + 10, scale)


def _unscaled(value: exp.Expr, kind: Kind) -> exp.Expr:
    """Return a decimal as the integer of its digits."""
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
    """Return a quotient of decimals, halves rounded away from zero; DuckDB raises the error for division by zero."""
    assert result is not None
    scale = result.size[1]
    shift = scale - one.size[1] + other.size[1]
    n, d = _unscaled(left, one), _unscaled(right, other)
    if shift < 0:
        d = piece(f"arg_d * {_power(-shift)}", d=d)
    if by_zero_is_null:
        d = piece("nullif(arg_d, 0)", d=d)
    # Integer division truncates towards zero, so adding half of the divisor rounds halves away from zero.
    half, power = "sign(arg_n) * abs(arg_d)", max(shift, 0)
    if one.size[0] + power < MOST_DIGITS:
        value = f"(arg_n * {_power(power, 2)} + {half}) // (arg_d * 2)"
    else:
        # In two steps, because the dividend may have no room for the additional digits.
        part = f"((arg_n % arg_d) * {_power(power, 2)} + {half}) // (arg_d * 2)"
        value = f"(arg_n // arg_d) * {_power(power)} + {part}"
    point = "" if scale == 0 else f" * cast('{_point(scale)}' as decimal({scale}, {scale}))"
    return repeated(f"cast(cast({value} as decimal(38, 0)){point} as {result})", n=n, d=d)


def _point(scale: int) -> str:
    return "0." + "0" * (scale - 1) + "1"


def _whole_quotient(left: exp.Expr, right: exp.Expr, one: Kind, other: Kind) -> exp.Expr:
    """Return `div`: the integer part of a quotient, as a bigint."""
    scale = max(one.size[1], other.size[1])
    n, d = _unscaled(left, one), _unscaled(right, other)
    n = piece(f"arg_n * {_power(scale - one.size[1])}", n=n) if scale > one.size[1] else n
    d = piece(f"arg_d * {_power(scale - other.size[1])}", d=d) if scale > other.size[1] else d
    return repeated("cast(arg_n // arg_d as bigint)", n=n, d=d)


def average(total: exp.Expr, count: exp.Expr, kind: Kind) -> exp.Expr:
    """Return the sum of decimals of a type divided by their count; NULL for no values."""
    return quotient(total, count, _summed(*kind.size), _COUNT, spark.averaged(kind), by_zero_is_null=True)


def ceiled(node: exp.Ceil | exp.Floor, digits: int) -> exp.Expr:
    """Return ceil(x, n) or floor(x, n) of a decimal."""
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
    # Integer division truncates towards zero.
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
    """Return ceil(x) or floor(x) of a decimal with its Spark type: it may exceed a bigint."""
    result = spark.floored(operands(node)[0])
    return piece(f"cast({name}(arg_x) as {result})", x=node.this)


def window_sum(node: exp.Expr, kind: Kind) -> exp.Expr:
    """Return a sum of decimals over whole partitions, computed in 128 bits.

    DuckDB's optimizer sums narrower decimals as integers. It fails with an internal error if it has turned the window
    into a join and moves a later condition on the sum into that join.
    """
    if node.args.get("order"):
        return node
    made = node.copy()
    inner = made.find(exp.Sum)
    assert inner is not None
    inner.set("this", piece(f"cast(arg_x as decimal({MOST_DIGITS}, {kind.size[1]}))", x=inner.this))
    return made


def mean(node: exp.Expr, call: exp.Avg) -> exp.Expr:
    """Return an average with its FILTER or OVER, as a sum and a count with the same FILTER or OVER."""
    (kind,) = operands(call)
    parts = []
    for make in (exp.Sum, exp.Count):
        wrapped = node.copy()
        at = wrapped.find(exp.Avg)
        assert at is not None
        made = make(this=at.this.copy())
        if at is not wrapped:
            at.replace(made)
        parts.append(made if at is wrapped else wrapped)
    if isinstance(node, exp.Window):
        parts[0] = window_sum(parts[0], kind)
    return average(parts[0], parts[1], kind)
