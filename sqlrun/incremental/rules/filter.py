"""Filter: a change passes where its row does. Pure."""

from __future__ import annotations

from sqlrun.incremental.algebra import Filter
from sqlrun.incremental.script import WEIGHT, Script


def rows(node: Filter, script: Script, flavour: str) -> str:
    """Filter the rows."""
    child = script.rows(node.child, flavour)
    return f"select {script.names(node.columns)} from {child} where {script.expr(node.condition)}"


def changes(node: Filter, script: Script) -> list[str]:
    """Filter the changes."""
    child = script.changes(node.child)
    if child is None:
        return []
    columns = script.names(node.columns)
    return [f"select {columns}, {WEIGHT} from {child} where {script.expr(node.condition)}"]
