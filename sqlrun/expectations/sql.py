"""Expectations as Spark SQL: the predicate of a good row, and the queries over `{batch}`. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrun.expectations.catalogue import QUERY
from sqlrun.expectations.values import Family, families, parameter, typed
from sqlrun.parse import where_clause
from sqlrun.parse.functions import refusal, unlike
from sqlrun.project import Column, Expectation, Value
from sqlrun.runtime.text_lines import text_lines
from sqlrun.transpile import patterns
from sqlrun.transpile.dialect import DIALECT as _DIALECT

BATCH = "batch"
# Valid uses of braces, tried from the left; any other brace is an error.
BRACES = re.compile(r"\{\{|\}\}|\{batch\}|[{}]")


def passes(expectation: Expectation, columns: tuple[Column, ...] = ()) -> str | None:
    """Return the Spark SQL predicate of a row that satisfies the expectation; None if there is none.

    It is never NULL, and has Great Expectations' semantics: NULL values pass except in the null checks,
    `mostly` is ignored. Literals get the types of `columns` (the contract's); without them a
    literal has its YAML type. `{"$PARAMETER": "as_of"}` becomes CURRENT_TIMESTAMP().

    >>> from sqlrun.errors import Place
    >>> kwargs = {"column": "amount", "min_value": 0}
    >>> passes(Expectation("expect_column_values_to_be_between", kwargs, "critical", "fail", "", Place("x")))
    '`amount` IS NULL OR `amount` >= 0'
    """
    tree = _tree(expectation, families(columns))
    return None if tree is None else tree.sql(dialect=_DIALECT)


def _tree(expectation: Expectation, types: Mapping[str, Family]) -> exp.Expr | None:
    write = _WRITERS.get(expectation.type)
    if write is None:
        return None
    tree = write(expectation.kwargs, types)
    condition = expectation.kwargs.get("row_condition")
    if tree is None or condition is None:
        return tree
    # Rows for which the condition is false or unknown are ignored.
    condition_true = exp.Coalesce(this=condition_tree(str(condition)), expressions=[exp.false()])
    return exp.or_(exp.not_(condition_true), tree)


def condition_tree(text: str) -> exp.Expr:
    """Return a `row_condition` parsed: one boolean expression over the row's own columns. Raises: ValueError."""
    tree = _parse_query(f"SELECT * FROM {BATCH} WHERE {text}")
    if not isinstance(tree, exp.Select) or _condition(tree) is None:
        raise ValueError("it must be one boolean expression over the row's columns")
    return tree.args["where"].this  # type: ignore[no-any-return]


def condition_query(text: str) -> exp.Query:
    """Return the query of the batch's rows that satisfy a `row_condition`. Raises: ValueError."""
    return exp.select("*").from_(BATCH).where(condition_tree(text))


def unlike_types(query: exp.Query, columns: Iterable[Column]) -> Iterator[tuple[str, str]]:
    """Yield what Spark refuses in a query over the batch for the types of its columns, and what to write instead."""
    return where_clause.unlike_types(query, BATCH, {column.name: column.type for column in columns})


def batch_query(text: str) -> exp.Query:
    """Return an unexpected_rows_query parsed; the batch is the table `batch`. Raises: ValueError with a sentence."""
    return _parse_query(batch_text(text))


def batch_text(text: str) -> str:
    """Return a query over `{batch}` with the table's name. Raises: ValueError with a sentence.

    Braces are doubled as in Great Expectations, which formats the query by `str.format`. Here only `{batch}` is
    replaced: a format could produce a text of any length, or read an attribute.
    """
    found = [piece[0] for piece in BRACES.finditer(text)]
    if any(piece in ("{", "}") for piece in found):
        raise ValueError("only {batch} is allowed in braces. Double other braces: {{3}}")
    if "{batch}" not in found:
        raise ValueError("the query must read {batch}")
    written = {"{{": "{", "}}": "}", "{batch}": BATCH}
    return BRACES.sub(lambda piece: written[piece[0]], text)


def _parse_query(query: str) -> exp.Query:
    try:
        trees = sqlglot.parse(query, dialect=_DIALECT)
    except SqlglotError as error:
        raise ValueError(f"invalid SQL: {text_lines(str(error))[0]}") from None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Query) or tree.find(exp.Into, exp.Command, exp.DML, exp.DDL):
        raise ValueError("it must be one SELECT")
    names = {cte.alias for cte in tree.find_all(exp.CTE)}
    if BATCH in names:
        raise ValueError("a CTE must not have the name of {batch}")
    for table in tree.find_all(exp.Table):
        plain = isinstance(table.this, exp.Identifier) and not table.args.get("db")
        if not plain or table.name not in {BATCH, *names}:
            raise ValueError(f"it must read {{batch}} only, not {table.sql(dialect=_DIALECT)}")
    for function in tree.find_all(exp.Func):
        refused = refusal(function)
        if refused:
            raise ValueError(refused[1])
    for _, why, _ in patterns.invalid(tree):
        raise ValueError(why)
    for _, why, _ in unlike(tree):
        raise ValueError(f"{why}. Checks run on DuckDB")
    return tree


def row_predicate(tree: exp.Query) -> exp.Expr | None:
    """Return P of `SELECT <columns> FROM batch WHERE P`, columns unqualified; None if the query has anything else."""
    if not isinstance(tree, exp.Select):
        return None
    plain = all(
        isinstance(item, exp.Star) or (isinstance(item, exp.Column) and not isinstance(item.this, exp.Dot))
        for item in tree.expressions
    )
    return _condition(tree) if plain else None


def _condition(tree: exp.Select) -> exp.Expr | None:
    clauses = {name for name, value in tree.args.items() if value}
    where = tree.args.get("where")
    if where is None or not clauses <= {"kind", "expressions", "from_", "from", "where"}:
        return None
    if where.find(exp.AggFunc, exp.Window, exp.Query, exp.Explode):
        return None
    table = tree.find(exp.Table)
    if table is None or {name for name, value in table.args.items() if value} - {"this", "alias"}:
        return None
    qualifiers = {BATCH, table.alias_or_name}
    predicate: exp.Expr = where.this.copy()
    for column in list(predicate.find_all(exp.Column)):
        if column.table in qualifiers:
            column.set("table", None)
    return predicate


def _column(name: Value) -> exp.Expr:
    return exp.column(exp.to_identifier(str(name), quoted=True))


def literal(value: Value, family: Family) -> exp.Expr:
    """Return a value as a Spark SQL literal: text escaped, decimals exact, timestamps with their offset."""
    if parameter(value) == "as_of":
        return exp.CurrentDate() if family == "date" else exp.CurrentTimestamp()
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if isinstance(value, (int, float, Decimal)):
        return exp.Literal.number(format(Decimal(str(value)), "f"))
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return exp.cast(exp.Literal.string(value.isoformat(" ")), "TIMESTAMPNTZ")
        text = value.astimezone(timezone.utc).isoformat(" ")
        return exp.cast(exp.Literal.string(text), "TIMESTAMPTZ")
    if isinstance(value, date):
        return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    return exp.Literal.string(str(value))


def _family(kwargs: Mapping[str, Value], types: Mapping[str, Family]) -> Family:
    return types.get(str(kwargs["column"]), "other")


def _or_null(kwargs: Mapping[str, Value], tree: exp.Expr) -> exp.Expr:
    return exp.or_(_column(kwargs["column"]).is_(exp.null()), tree)


def _bounds(kwargs: Mapping[str, Value], side: exp.Expr, family: Family) -> exp.Expr:
    low, high = (typed(kwargs.get(name), family) for name in ("min_value", "max_value"))
    parts: list[exp.Expr] = []
    if low is not None:
        above = exp.GT if kwargs.get("strict_min") else exp.GTE
        parts.append(above(this=side.copy(), expression=literal(low, family)))
    if high is not None:
        below = exp.LT if kwargs.get("strict_max") else exp.LTE
        parts.append(below(this=side.copy(), expression=literal(high, family)))
    if family == "float":
        # Spark sorts NaN above every number; a range without an upper end would include it.
        parts.append(exp.not_(exp.IsNan(this=side.copy())))
    return exp.and_(*parts)


def _between(kwargs: Mapping[str, Value], types: Mapping[str, Family]) -> exp.Expr:
    return _or_null(kwargs, _bounds(kwargs, _column(kwargs["column"]), _family(kwargs, types)))


def _lengths(kwargs: Mapping[str, Value], types: Mapping[str, Family]) -> exp.Expr:
    length = exp.Length(this=_column(kwargs["column"]))
    if "value" in kwargs:
        return _or_null(kwargs, length.eq(literal(typed(kwargs["value"], "integer"), "integer")))
    return _or_null(kwargs, _bounds(kwargs, length, "integer"))


def _inside(kwargs: Mapping[str, Value], types: Mapping[str, Family]) -> exp.Expr:
    family = _family(kwargs, types)
    value_set = cast(Sequence[Value], kwargs["value_set"])
    values = [typed(value, family) for value in value_set if value is not None]
    if not values:
        return exp.false()
    return _column(kwargs["column"]).isin(*[literal(value, family) for value in values])


def _in_set(kwargs: Mapping[str, Value], types: Mapping[str, Family]) -> exp.Expr:
    return _or_null(kwargs, _inside(kwargs, types))


def _not_in_set(kwargs: Mapping[str, Value], types: Mapping[str, Family]) -> exp.Expr:
    return _or_null(kwargs, exp.not_(_inside(kwargs, types)))


def _regex(kwargs: Mapping[str, Value], types: Mapping[str, Family]) -> exp.Expr:
    pattern = exp.Literal.string(str(kwargs["regex"]))
    return _or_null(kwargs, exp.RegexpLike(this=_column(kwargs["column"]), expression=pattern))


def _not_regex(kwargs: Mapping[str, Value], types: Mapping[str, Family]) -> exp.Expr:
    pattern = exp.Literal.string(str(kwargs["regex"]))
    match = exp.RegexpLike(this=_column(kwargs["column"]), expression=pattern)
    return _or_null(kwargs, exp.not_(match))


def _pair(kwargs: Mapping[str, Value], compare: type[exp.Binary]) -> exp.Expr:
    first, second = _column(kwargs["column_A"]), _column(kwargs["column_B"])
    test = compare(this=first, expression=second)
    comparison = exp.Coalesce(this=test, expressions=[exp.false()])
    missing = [side.copy().is_(exp.null()) for side in (first, second)]
    ignored = str(kwargs.get("ignore_row_if", "both_values_are_missing"))
    if ignored == "neither":
        return comparison
    return exp.or_(exp.and_(*missing) if ignored.startswith("both") else exp.or_(*missing), comparison)


def _greater(kwargs: Mapping[str, Value], types: Mapping[str, Family]) -> exp.Expr:
    return _pair(kwargs, exp.GTE if kwargs.get("or_equal") else exp.GT)


def _equal(kwargs: Mapping[str, Value], types: Mapping[str, Family]) -> exp.Expr:
    return _pair(kwargs, exp.EQ)


def _query(kwargs: Mapping[str, Value], types: Mapping[str, Family]) -> exp.Expr | None:
    predicate = row_predicate(batch_query(str(kwargs["unexpected_rows_query"])))
    if predicate is None:
        return None
    return exp.not_(exp.Coalesce(this=predicate, expressions=[exp.false()]))


_Writer = Callable[[Mapping[str, Value], Mapping[str, Family]], exp.Expr | None]
_WRITERS: Mapping[str, _Writer] = {
    "expect_column_values_to_not_be_null": lambda kwargs, types: exp.not_(_column(kwargs["column"]).is_(exp.null())),
    "expect_column_values_to_be_null": lambda kwargs, types: _column(kwargs["column"]).is_(exp.null()),
    "expect_column_values_to_be_between": _between,
    "expect_column_values_to_be_in_set": _in_set,
    "expect_column_values_to_not_be_in_set": _not_in_set,
    "expect_column_values_to_match_regex": _regex,
    "expect_column_values_to_not_match_regex": _not_regex,
    "expect_column_value_lengths_to_be_between": _lengths,
    "expect_column_value_lengths_to_equal": _lengths,
    "expect_column_pair_values_a_to_be_greater_than_b": _greater,
    "expect_column_pair_values_to_be_equal": _equal,
    QUERY: _query,
}
