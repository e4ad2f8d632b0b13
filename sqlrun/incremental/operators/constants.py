"""Columns that have the same value in all rows, by the query's text. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental.algebra import Node
from sqlrun.incremental.operators.filter import Filter
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.operators.temporal import Temporal


def constant(node: Node, name: str) -> str | None:
    """Return a column's constant as SQL text; None if it isn't known to be constant, which is always safe."""
    if isinstance(node, Project):
        item = dict(node.items).get(name)
        if item is None:
            return None
        bare = item.this if isinstance(item, exp.Cast) else item
        if isinstance(bare, exp.Literal):
            return item.sql("databricks")
        return constant(node.child, item.name) if isinstance(item, exp.Column) else None
    return constant(node.child, name) if isinstance(node, Filter | Temporal) else None
