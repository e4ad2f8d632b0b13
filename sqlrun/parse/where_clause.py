"""Validate a condition that a user types, before an engine sees it. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.optimizer.qualify import qualify

from sqlrun.errors import UsageError
from sqlrun.parse import operand_types
from sqlrun.parse.functions import refusal, unlike
from sqlrun.parse.syntax import described
from sqlrun.parse.type_check import Walk
from sqlrun.transpile import patterns
from sqlrun.transpile import writer as sql
from sqlrun.transpile.dialect import DIALECT

# Constructs that don't depend on one row alone, or aren't conditions.
REFUSED = (
    (exp.Query, "a subquery"), (exp.Command, "a command"), (exp.Window, "a window function"),
    (exp.AggFunc, "an aggregate"), (exp.UDTF, "a table function"), (exp.Explode, "a table function"),
    (exp.Parameter, "a parameter"), (exp.Placeholder, "a parameter"), (exp.Star, "a star"), (exp.Tuple, "a list"),
)  # fmt: skip


# The table of the condition's columns, for the inference of types.
TABLE = "published_rows"


def condition(text: str, columns: Mapping[str, str]) -> str:
    """Return a condition in Spark SQL over these columns, with their types, as DuckDB's SQL.

    Raises: UsageError for anything but one condition over known columns and functions.

    >>> condition("n_orders > 3", {"n_orders": "bigint"})
    '(n_orders > 3)'
    """
    tree = _parsed(text)
    for kind, what in REFUSED:
        found = tree.find(kind)
        if found is not None and not (isinstance(found, exp.Tuple) and isinstance(found.parent, exp.In)):
            raise UsageError(f"--where takes a condition on one row, but this contains {what}")
    for function in tree.find_all(exp.Func):
        refused = refusal(function)
        if refused is not None:
            raise UsageError(f"--where: {refused[1]}. {refused[2]}")
    for _, why, instead in patterns.invalid(tree):
        raise UsageError(f"--where: {why}. {instead}")
    for _, why, _ in unlike(tree):
        raise UsageError(f"--where: {why}")
    for column in tree.find_all(exp.Column):
        # `a.b` is the field b of the column a: there is one table, and it has no name.
        name = column.parts[0].name
        if name.lower() not in {known.lower() for known in columns}:
            near = difflib.get_close_matches(name, columns, 1)
            advice = f"Did you mean `{near[0]}`?" if near else f"Columns: {', '.join(columns)}."
            raise UsageError(f"--where: unknown column `{name}`. {advice}")
    query = exp.select("1").from_(TABLE).where(tree)
    for why, instead in unlike_types(query, TABLE, columns):
        raise UsageError(f"--where: {why}. {instead}")
    return sql.expression(exp.paren(tree), "duckdb")


def unlike_types(query: exp.Query, table: str, columns: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what Spark refuses in a query over one table for the types of its columns, and what to write instead.

    DuckDB would take a number for a condition. Nothing of a query whose columns can't be found, which others report.
    """
    known: dict[str, object] = {table: {sql.identifier(name, "spark"): kind for name, kind in columns.items()}}
    try:
        done = qualify(query.copy(), schema=known, dialect=DIALECT, quote_identifiers=False, identify=False)
    except (SqlglotError, RecursionError):
        return
    for _, why, instead in operand_types.found(Walk(done, {"": {table: columns}})):
        yield why.replace(f"{table}.", ""), instead  # the analyst wrote the columns without a table


def _parsed(text: str) -> exp.Expression:
    try:
        parsed = sqlglot.parse(f"select 1 from t where {text}", read=DIALECT)
    except ParseError as error:
        raise UsageError(f"--where: {described(error.errors[0])}") from None
    except (SqlglotError, RecursionError):
        raise UsageError("--where: syntax error: unbalanced quotes, or nested too deeply") from None
    select = parsed[0]
    if len(parsed) != 1 or not isinstance(select, exp.Select):
        raise UsageError("--where takes exactly one condition")
    where = select.args.get("where")
    if where is None or {key for key, value in select.args.items() if value} - {"expressions", "from_", "where"}:
        raise UsageError("--where takes exactly one condition")
    for node in where.walk():
        node.comments = None  # DuckDB needs no comments
    tree: exp.Expression = where.this.unnest()
    return tree
