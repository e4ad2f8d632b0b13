"""Spark's arithmetic and its functions on numbers and conditions, as DuckDB's. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlrun.incremental import duckdb_decimals
from sqlrun.incremental.duckdb_pieces import Mend, UnlikeSparkError, number, of, piece


def remainder(node: exp.Mod) -> exp.Expr:
    """Mend %: DuckDB's remainder of a double by zero is no error."""
    if number(node.expression):
        return node
    template = "case when arg_b = 0 and arg_a is not null then error('%: division by zero') else arg_a % arg_b end"
    return piece(template, a=node.this.unnest(), b=node.expression.unnest())


def divided(node: exp.Div) -> exp.Expr:
    """Mend /: division by zero is an error."""
    if number(node.expression):
        return node
    template = "case when arg_b = 0 and arg_a is not null then error('/: division by zero') else arg_a / arg_b end"
    return piece(template, a=node.this.unnest(), b=node.expression.unnest())


def whole(node: exp.Ceil | exp.Floor) -> exp.Expr:
    """Mend ceil and floor: Spark's give whole numbers."""
    if node.args.get("decimals") is not None:
        digits = number(node.args["decimals"])
        if digits is None or not duckdb_decimals.operands(node):
            raise UnlikeSparkError("the number's type has to be known, and the digits have to be written out")
        return duckdb_decimals.ceiled(node, digits)
    name = "ceil" if isinstance(node, exp.Ceil) else "floor"
    return piece(f"cast({name}(arg_x) as bigint)", x=node.this)


def _log(arguments: list[exp.Expr]) -> exp.Expr:
    if len(arguments) == 1:
        return piece("case when arg_x > 0 then ln(arg_x) end", x=arguments[0])
    return of("case when arg_b > 0 and arg_x > 0 then ln(arg_x) / ln(arg_b) end", "bx")(arguments)


_SIGN = "case when isnan(cast(arg_x as double)) then cast(arg_x as double) else cast(sign(arg_x) as double) end"
CALLS: Mapping[str, Mend] = {
    "bit_count": of("bit_count(cast(arg_x as bigint))", "x"),
    "csc": of("cast(1 as double) / sin(arg_x)", "x"),
    "e": of("exp(1)", ""),
    "equal_null": of("arg_a is not distinct from arg_b", "ab"),
    "factorial": of("case when arg_n between 0 and 20 then cast(factorial(arg_n) as bigint) end", "n"),
    "isnan": of("coalesce(isnan(arg_x), false)", "x"),
    "isnotnull": of("arg_x is not null", "x"),
    "isnull": of("arg_x is null", "x"),
    "hypot": of("sqrt(arg_a * arg_a + arg_b * arg_b)", "ab"),
    "log": _log,
    "log10": of("case when arg_x > 0 then log10(arg_x) end", "x"),
    "log2": of("case when arg_x > 0 then log2(arg_x) end", "x"),
    "nanvl": of("case when isnan(arg_a) then arg_b else arg_a end", "ab"),
    "negative": of("-arg_x", "x"),
    "nullifzero": of("nullif(arg_x, 0)", "x"),
    "pmod": of(
        "case when arg_b = 0 and arg_a is not null then error('pmod: division by zero') "
        "when arg_a % arg_b < 0 then (arg_a % arg_b + arg_b) % arg_b else arg_a % arg_b end",
        "ab",
    ),
    "positive": of("arg_x", "x"),
    "rint": of("round_even(cast(arg_x as double), 0)", "x"),
    "sec": of("cast(1 as double) / cos(arg_x)", "x"),
    "sign": of(_SIGN, "x"),
    "signum": of(_SIGN, "x"),
    "try_add": of("try(arg_a + arg_b)", "ab"),
    "try_divide": of("case when arg_b <> 0 then arg_a / arg_b end", "ab"),
    "try_mod": of("case when arg_b <> 0 then arg_a % arg_b end", "ab"),
    "try_multiply": of("try(arg_a * arg_b)", "ab"),
    "try_subtract": of("try(arg_a - arg_b)", "ab"),
    "zeroifnull": of("coalesce(arg_x, 0)", "x"),
}
