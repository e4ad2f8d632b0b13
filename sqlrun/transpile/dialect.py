"""Spark SQL as sqlrun parses it: every call keeps the name and the place that the analyst wrote. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import SqlglotError
from sqlglot.parsers.databricks import DatabricksParser
from sqlglot.parsers.hive import HiveParser
from sqlglot.tokenizer_core import Token, TokenType

from sqlrun.transpile import function_arity
from sqlrun.transpile.trees import every

# Name of the dialect below in sqlglot.
DIALECT = "sparksql"
# Meta key of a call's name as it was written; "" marks nodes that sqlglot added around a call.
SPELLED = "spelled"
# Prefix of the parser's error for a wrong number of arguments, which has its own code.
MISCOUNTED = "SR554 "
# Maximum number of tokens of a call whose arguments are counted; the engine checks longer calls.
MOST_TOKENS = 2_000
# Calls that sqlglot would turn into something else than Spark's function, or that are translated for DuckDB by name.
# They stay as they were written. Classes that sqlrun's rules match are not among them.
_VERBATIM = """
    add_months array_except array_intersect array_insert array_position array_remove arrays_zip bit_get char chr
    convert_timezone csc curdate date_add date_diff date_format date_from_unix_date date_part dateadd datediff
    date_sub datepart dayname dayofweek decode elt equal_null factorial flatten format_string from_json
    from_unixtime from_utc_timestamp getbit hour isnotnull isnull json_array_length json_object_keys last_day
    left len levenshtein log log10 log2 lpad make_timestamp map_concat map_contains_key minute monthname
    months_between nanvl negative next_day printf quarter regexp_substr right rint rpad sec second sha2 sign
    signum split_part str_to_map substring_index timestampadd timestampdiff to_char to_json to_number
    to_unix_timestamp to_utc_timestamp to_varchar try_add try_divide try_multiply try_subtract try_to_date
    try_to_timestamp unhex unix_millis unix_timestamp url_decode url_encode
    """
# The same for aggregates.
_VERBATIM_AGGREGATES = "kurtosis percentile percentile_cont percentile_disc skewness"
# Functions whose first argument may be a unit without quotes.
UNITS_FIRST = frozenset({"date_add", "dateadd", "timestampadd", "date_diff", "datediff", "timestampdiff"})
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
# Tokens that separate arguments without a comma; also subqueries and stars.
_WORDS = frozenset({TokenType.FROM, TokenType.IN, TokenType.ALIAS, TokenType.FARROW, TokenType.SELECT, TokenType.STAR})
# Words that sqlglot's tokenizer takes for a keyword only before BY; standard SQL reserves them.
_BEFORE_BY = frozenset({"cluster", "distribute", "group", "order", "partition", "sort"})
# Nodes that may be between a call's name and the call itself.
_AROUND = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.Paren)


def _verbatim(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    def build(arguments: list[exp.Expr]) -> exp.Expr:
        if name in UNITS_FIRST and len(arguments) == 3:
            arguments = [exp.var(arguments[0].name.lower()), *arguments[1:]]
        return exp.Anonymous(this=name, expressions=arguments)

    return build


def _verbatim_aggregate(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    return lambda arguments: exp.AnonymousAggFunc(this=name, expressions=arguments)


def _cast(kind: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    def build(arguments: list[exp.Expr]) -> exp.Expr:
        # A new node each time: DataType.build keeps no state, and a node has one parent.
        return exp.Cast(this=arguments[0], to=exp.DataType.build(kind, dialect="databricks"))

    return build


def _one_or_verbatim(name: str, build: Callable[[list[exp.Expr]], exp.Expr]) -> Callable[[list[exp.Expr]], exp.Expr]:
    verbatim = _verbatim(name)
    return lambda arguments: build(arguments) if len(arguments) == 1 else verbatim(arguments)


class Parser(DatabricksParser):
    """Databricks' grammar, a superset of Spark's that sqlglot parses strictly, with Spark's own functions."""

    FUNCTIONS: ClassVar = {
        **DatabricksParser.FUNCTIONS,
        **{name.upper(): _verbatim(name) for name in _VERBATIM.split()},
        **{name.upper(): _verbatim_aggregate(name) for name in _VERBATIM_AGGREGATES.split()},
        **{kind.upper(): _cast(kind) for kind in ("tinyint", "smallint", "bigint", "timestamp", "binary")},
        "DECIMAL": _cast("decimal(10,0)"),
        "REGEXP": exp.RegexpLike.from_arg_list,
        "MEAN": exp.Avg.from_arg_list,
        "STD": exp.Stddev.from_arg_list,
        "TO_DATE": _one_or_verbatim("to_date", exp.TsOrDsToDate.from_arg_list),
        "TO_TIMESTAMP": _one_or_verbatim("to_timestamp", _cast("timestamp")),
    }
    FUNCTION_PARSERS: ClassVar = {
        name: parse
        for name, parse in DatabricksParser.FUNCTION_PARSERS.items()
        if name.lower() not in {*_VERBATIM.split(), *_VERBATIM_AGGREGATES.split()}
    }

    def _parse_types(self, *arguments: Any, **options: Any) -> exp.Expr | None:
        # As Hive's parser does: outside table definitions Spark reads char(n) and varchar(n) as string. Hive's parser
        # parses the two names as types again for each type that it meets.
        this = super(HiveParser, self)._parse_types(*arguments, **options)
        if this is not None and not options.get("schema"):
            for node in every(this, exp.DataType):
                if node.this in (exp.DType.CHAR, exp.DType.VARCHAR):
                    node.set("this", exp.DType.TEXT)
                    node.set("expressions", None)
        return this

    def _parse_function_call(self, *arguments: Any, **options: Any) -> exp.Expr | None:
        token = self._curr
        if token is not None:
            self._hold_to_count(token)
        call = super()._parse_function_call(*arguments, **options)
        if isinstance(call, exp.Expr) and token is not None:
            _name(call, token)
        return call

    def _hold_to_count(self, token: Token) -> None:
        """Raise a parser error for a call with a number of arguments that Spark's function doesn't accept."""
        name = token.text.lower()
        if name not in function_arity.COUNTS or token.token_type == TokenType.IDENTIFIER:
            return
        count = _count(self._tokens[self._index : self._index + MOST_TOKENS])
        if count is not None and not function_arity.takes(name, count):
            given = f"{count or 'no'} argument{'s' * (count != 1)}"
            self.raise_error(
                f"{MISCOUNTED}{name}() is called with {given}, but takes {function_arity.counts(name)}", token
            )


def _count(tokens: Sequence[Token]) -> int | None:
    """Return the number of a call's arguments; None if words separate them, as in `trim(both 'a' from x)`."""
    if len(tokens) < 3 or tokens[1].token_type != TokenType.L_PAREN:
        return None
    depth, commas = 0, 0
    for place, token in enumerate(tokens[1:], 1):
        kind = token.token_type
        if kind in _OPENING:
            depth += 1
        elif kind in _CLOSING:
            depth -= 1
            if depth == 0:
                behind = tokens[place + 1].text.upper() if place + 1 < len(tokens) else ""
                if behind == "USING":  # TRANSFORM (..) USING, which `restrictions.py` refuses
                    return None
                return commas + 1 if place > 2 else 0
        elif depth == 1 and kind == TokenType.COMMA:
            commas += 1
        elif depth == 1 and (kind in _WORDS or token.text.upper() in ("PLACING", "BOTH")):
            return None
    return None


def _name(call: exp.Expr, token: Token) -> None:
    """Record a call's name and place in its meta; nodes that sqlglot added get an empty name."""
    while isinstance(call, _AROUND) and isinstance(call.this, exp.Expr):
        call.meta.setdefault(SPELLED, "")
        call = call.this
    if SPELLED in call.meta:
        return
    call.meta[SPELLED] = token.text.lower()
    if "line" not in call.meta:
        call.update_positions(token)
    for made in every(call, exp.Func):
        made.meta.setdefault(SPELLED, "")


class SparkSQL(Databricks):
    """The dialect that models are read in."""

    Parser = Parser

    class Tokenizer(Databricks.Tokenizer):
        """The tokenizer: in a text, Spark reads two quotes as one; Databricks reads two texts."""

        STRING_ESCAPES: ClassVar = ["\\", "'"]


@lru_cache(1024)
def is_plain(name: str) -> bool:
    """Return whether a name needs no quotes as the name of a column and of a CTE.

    >>> [is_plain(name) for name in ("order_id", "when", "order", "timestamp", "größe", "1st")]
    [True, False, False, True, False, False]
    """
    if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) is None or name.lower() in _BEFORE_BY:
        return False
    try:
        tree = sqlglot.parse_one(
            f"with {name} as (select {name}, 1 as {name} from t) select {name} from {name}", DIALECT
        )
    except SqlglotError:
        return False
    cte = tree.find(exp.CTE)
    found = [*cte.this.expressions, *tree.expressions] if cte is not None else []
    return [type(one) for one in found] == [exp.Column, exp.Alias, exp.Column] and {
        one.output_name for one in found
    } == {name}
