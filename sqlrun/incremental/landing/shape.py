"""Shape of a landing query: items and one condition over a source's columns. Pure.

Each line is one row or none, so that landed, quarantined and dropped lines add up to the lines read. A query that makes
several rows of a line, such as explode or UNION ALL, has no such shape.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sqlrun.incremental.algebra import Node
from sqlrun.incremental.expressions import column
from sqlrun.incremental.operators.filter import Filter
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.operators.scan import Scan
from sqlrun.incremental.translate.group_by import Items
from sqlrun.incremental.translate.translate import inline


@dataclass(frozen=True, slots=True)
class Shape:
    """Selected items and the condition of all filters, over the source's columns; the condition may be None."""

    items: Items
    condition: exp.Expr | None


def renamed(node: Node) -> dict[str, str]:
    """Return the selected columns that are columns of the source as they are, with the source's names for them."""
    found = shape_of(node)
    items = found.items if found is not None else ()
    return {name: item.name for name, item in items if isinstance(item, exp.Column)}


def shape_of(node: Node) -> Shape | None:
    """Return the shape of a query; None if it does more than filter and compute columns of one source.

    Projections and filters may alternate: what a filter reads is replaced by the item that computes it.
    """
    match node:
        case Scan():
            return Shape(tuple((name, column(name)) for name in node.columns), None)
        case Project():
            below = shape_of(node.child)
            return below and Shape(inline(node.items, below.items), below.condition)
        case Filter():
            below = shape_of(node.child)
            if below is None:
                return None
            ((_, condition),) = inline((("", node.condition),), below.items)
            both = condition if below.condition is None else exp.and_(condition, below.condition)
            return Shape(below.items, both)
        case _:
            return None
