"""The columns of operators as the analyst would call them: joins, groups and windows name them anew. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental.algebra import Node, walk
from sqlrun.incremental.operators.aggregate import Aggregate
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.operators.scan import Scan
from sqlrun.incremental.operators.window import Window
from sqlrun.transpile.trees import copied

# What `apart` calls the columns of a subquery that is joined.
SUBQUERIES = ("value", "inner")


def name(column: str, node: Node) -> str:
    """Name a column of a node: `p__sku`, which a join made, is p.sku, and `_agg_1` is what it is computed of."""
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
    """Write an expression over a node's columns in the analyst's words."""

    def swap(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column):
            return part
        said = name(part.name, node)
        if said == part.name:
            return exp.column(said)
        return exp.Var(this=said)

    return copied(expression).transform(swap, copy=False).sql("databricks")


def _items(node: Node) -> tuple[tuple[str, exp.Expr], ...]:
    match node:
        case Project(items=items) | Window(items=items):
            return items
        case Aggregate(keys=keys, items=items):
            return (*keys, *items)
        case _:
            return ()
