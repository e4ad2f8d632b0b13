"""A condition that a user types, checked before an engine sees it. Pure."""

from __future__ import annotations

import difflib

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrun.errors import UsageError
from sqlrun.functions import refusal
from sqlrun.incremental import sql
from sqlrun.parse import DIALECT


def condition(text: str, columns: list[str]) -> str:
    """Turn a condition in Spark SQL over these columns into DuckDB's SQL.

    Raises: UsageError for anything that is not one condition over known columns and functions.

    >>> condition("n_orders > 3", ["n_orders"])
    '(n_orders > 3)'
    """
    try:
        parsed = sqlglot.parse_one(f"select 1 from t where ({text})", read=DIALECT)
    except SqlglotError as error:
        raise UsageError(f"--where can't be read: {str(error).splitlines()[0]}") from None
    where = parsed.args.get("where")
    if where is None or not isinstance(parsed, exp.Select) or set(_used(parsed)) - {"expressions", "from_", "from", "where"}:
        raise UsageError("--where takes one condition")
    tree = where.this
    if tree.find(exp.Query, exp.Command):
        raise UsageError("--where takes no subquery")
    for function in tree.find_all(exp.Func):
        found = refusal(function)
        if found is not None:
            raise UsageError(f"--where: {found[1]}. {found[2]}")
    for column in tree.find_all(exp.Column):
        if column.name not in columns:
            near = difflib.get_close_matches(column.name, columns, 1)
            advice = f"Did you mean `{near[0]}`?" if near else f"Columns: {', '.join(columns)}."
            raise UsageError(f"--where: unknown column `{column.name}`. {advice}")
    return sql.expression(tree, "duckdb")


def _used(select: exp.Select) -> list[str]:
    return [key for key, value in select.args.items() if value]
