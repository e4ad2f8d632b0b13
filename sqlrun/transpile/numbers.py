"""Spark's arithmetic and its functions on numbers and conditions in DuckDB's SQL. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlrun.transpile import casts as duckdb_casts
from sqlrun.transpile import decimals as duckdb_decimals
from sqlrun.transpile.templates import Translation, UnlikeSparkError, call, number, of, piece, text


def remainder(node: exp.Mod) -> exp.Expr:
    """Return %: DuckDB's remainder of a double by zero isn't an error."""
    if number(node.expression):
        return node
    template = "case when arg_b = 0 and arg_a is not null then error('%: division by zero') else arg_a % arg_b end"
    return piece(template, a=node.this.unnest(), b=node.expression.unnest())


def divided(node: exp.Div) -> exp.Expr:
    """Return /: division by zero is an error."""
    if number(node.expression):
        return node
    template = "case when arg_b = 0 and arg_a is not null then error('/: division by zero') else arg_a / arg_b end"
    return piece(template, a=node.this.unnest(), b=node.expression.unnest())


# Java's cast of a double to a long never fails; DuckDB's ceil and floor of integers are doubles.
_WHOLE_NUMBER = (
    "case when typeof(arg_x) in ('DOUBLE', 'FLOAT') then case when isnan(cast(arg_x as double)) then 0 "
    "when cast(arg_x as double) >= 9223372036854775807 then 9223372036854775807 "
    "when cast(arg_x as double) <= -9223372036854775808 then -9223372036854775808 "
    "else cast({0}(cast(arg_x as double)) as bigint) end "
    "when typeof(arg_x) like '%INT%' then cast(arg_x as bigint) else cast({0}(arg_x) as bigint) end"
)


# The lowest bits, as a signed number.
_BITS = "((cast(arg_v as hugeint) * (cast(1 as hugeint) << (arg_n & {0}))) & cast('{1}' as hugeint))"
_SHIFTED_LEFT = f"({_BITS} - case when {_BITS} >= cast('{{2}}' as hugeint) then cast('{{3}}' as hugeint) else 0 end)"
_LARGEST = "greatest(abs(cast(arg_a as double)), abs(cast(arg_b as double)))"
_HYPOT = (
    "case when isinf(cast(arg_a as double)) or isinf(cast(arg_b as double)) then cast('inf' as double) "
    f"when {_LARGEST} between 1e-150 and 1e150 or {_LARGEST} = 0 "
    "then sqrt(cast(arg_a as double) * cast(arg_a as double) + cast(arg_b as double) * cast(arg_b as double)) "
    f"else {_LARGEST} * sqrt((cast(arg_a as double) / {_LARGEST}) * (cast(arg_a as double) / {_LARGEST}) "
    f"+ (cast(arg_b as double) / {_LARGEST}) * (cast(arg_b as double) / {_LARGEST})) end"
)


def whole(node: exp.Ceil | exp.Floor) -> exp.Expr:
    """Return ceil() or floor(): integers in Spark; for a double the nearest bigint, and 0 for NaN."""
    if node.args.get("decimals") is not None:
        digits = number(node.args["decimals"])
        if digits is None or not duckdb_decimals.operands(node):
            raise UnlikeSparkError("the type of the number must be known, and the digits must be a literal")
        return duckdb_decimals.ceiled(node, digits)
    name = "ceil" if isinstance(node, exp.Ceil) else "floor"
    if duckdb_decimals.operands(node):
        return duckdb_decimals.whole(node, name)
    return piece(_WHOLE_NUMBER.format(name), x=node.this)


def asinh(node: exp.Asinh) -> exp.Expr:
    """Return asinh(): Spark computes it by its definition, so far below zero it has few digits or none."""
    template = (
        "case when abs(cast(arg_x as double)) > 1e150 then asinh(cast(arg_x as double)) "
        "else ln(cast(arg_x as double) + sqrt(cast(arg_x as double) * cast(arg_x as double) + 1)) end"
    )
    return piece(template, x=node.this)


def shifted(node: exp.BitwiseLeftShift | exp.BitwiseRightShift) -> exp.Expr:
    """Return << or >>: Java takes the count modulo 32 or 64 and drops bits that are shifted out."""
    value, count = node.this.unnest(), node.expression.unnest()
    if isinstance(node, exp.BitwiseRightShift):
        template = "case when typeof(arg_x) = 'BIGINT' then arg_x >> (arg_n & 63) else arg_x >> (arg_n & 31) end"
        return piece(template, x=value, n=count)
    template = (
        f"cast(case when typeof(arg_x) = 'BIGINT' then {_SHIFTED_LEFT.format(63, 2**64 - 1, 2**63, 2**64)} "
        f"else {_SHIFTED_LEFT.format(31, 2**32 - 1, 2**31, 2**32)} end as bigint)"
    )
    return piece(template, x=value, v=duckdb_casts.to_whole(value, "bigint"), n=count)


def _try_mod(arguments: list[exp.Expr]) -> exp.Expr:
    if any(text(argument) is not None for argument in arguments):
        raise UnlikeSparkError("it casts the string before it tries", "Cast the string.")
    return of("case when arg_b <> 0 then arg_a % arg_b end", "ab")(arguments)


def _log(arguments: list[exp.Expr]) -> exp.Expr:
    if len(arguments) == 1:
        return piece("case when arg_x > 0 then ln(arg_x) end", x=arguments[0])
    return of("case when arg_b > 0 and arg_x > 0 then ln(arg_x) / ln(arg_b) end", "bx")(arguments)


_SIGN = "case when isnan(cast(arg_x as double)) then cast(arg_x as double) else cast(sign(arg_x) as double) end"
CALLS: Mapping[str, Translation] = {
    "bin": lambda arguments: call("bin", duckdb_casts.to_whole(arguments[0], "bigint")),
    # DuckDB's result is a byte: the product of two would overflow it.
    "bit_count": of("cast(bit_count(cast(arg_x as bigint)) as integer)", "x"),
    "csc": of("cast(1 as double) / sin(arg_x)", "x"),
    "e": of("exp(1)", ""),
    "equal_null": of("arg_a is not distinct from arg_b", "ab"),
    "factorial": of("case when arg_n between 0 and 20 then cast(factorial(arg_n) as bigint) end", "n"),
    "isnan": of("coalesce(isnan(arg_x), false)", "x"),
    "isnotnull": of("arg_x is not null", "x"),
    "isnull": of("arg_x is null", "x"),
    "hypot": of(_HYPOT, "ab"),
    "log": _log,
    "log10": of("case when arg_x > 0 then log10(arg_x) end", "x"),
    "log2": of("case when arg_x > 0 then log2(arg_x) end", "x"),
    "nanvl": of(
        "case when isnan(cast(arg_a as double)) then cast(arg_b as double) else cast(arg_a as double) end", "ab"
    ),
    "negative": of("-arg_x", "x"),
    "nullifzero": of("nullif(arg_x, 0)", "x"),
    "pmod": of(
        "case when arg_b = 0 and arg_a is not null then error('pmod: division by zero') "
        "when arg_a % arg_b < 0 then (arg_a % arg_b + arg_b) % arg_b else arg_a % arg_b end",
        "ab",
    ),
    "positive": of(
        "case when typeof(arg_x) = 'VARCHAR' then error('positive: a text is no number') else arg_x end", "x"
    ),
    "rint": of("round_even(cast(arg_x as double), 0)", "x"),
    "sec": of("cast(1 as double) / cos(arg_x)", "x"),
    "sign": of(_SIGN, "x"),
    "signum": of(_SIGN, "x"),
    "try_add": of("try(arg_a + arg_b)", "ab"),
    "try_divide": of("case when arg_b <> 0 then arg_a / arg_b end", "ab"),
    "try_mod": _try_mod,
    "try_multiply": of("try(arg_a * arg_b)", "ab"),
    "try_subtract": of(
        "case when typeof(arg_a) = 'DATE' and typeof(arg_b) = 'DATE' "
        "then error('try_subtract: of two dates it is an interval on Spark, write datediff') "
        "else try(arg_a - arg_b) end",
        "ab",
    ),
    "zeroifnull": of("coalesce(arg_x, 0)", "x"),
}
