"""Names of an operator's columns as the analyst wrote them: joins, groups and windows rename columns. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental.algebra import Node, walk
from sqlrun.incremental.operators.aggregate import Aggregate
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.operators.scan import Scan
from sqlrun.incremental.operators.window import Window
from sqlrun.transpile.trees import copied

# Prefixes that `apart` gives to the columns of a joined subquery.
SUBQUERIES = ("value", "inner")


def name(column: str, node: Node) -> str:
    """Return the name of a node's column in messages: `p.sku` for the joined `p__sku`, the call for `_agg_1`."""
    below = list(walk(node))
    if any(column in scan.columns for scan in below if isinstance(scan, Scan)):
        return column
    if column.startswith("_"):
        made = next((item for one in reversed(below) for key, item in _items(one) if key == column), None)
        if made is not None and not (isinstance(made, exp.Column) and made.name == column):
            return text(made, node)
    table, _, own = column.partition("__")
    if not table or not own:
        return column
    return own.rstrip("_") if table in SUBQUERIES else f"{table}.{own.rstrip('_')}"


def text(expression: exp.Expr, node: Node) -> str:
    """Return an expression over a node's columns as SQL text with the analyst's names."""

    def swap(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column):
            return part
        original = name(part.name, node)
        if original == part.name:
            return exp.column(original)
        return exp.Var(this=original)

    return copied(expression).transform(swap, copy=False).sql("databricks")


def _items(node: Node) -> tuple[tuple[str, exp.Expr], ...]:
    match node:
        case Project(items=items) | Window(items=items):
            return items
        case Aggregate(keys=keys, items=items):
            return (*keys, *items)
        case _:
            return ()
