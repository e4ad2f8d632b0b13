"""Window functions, top-k among them: touched partitions recomputed. Pure."""

from __future__ import annotations

from sqlrun.incremental.algebra import Window
from sqlrun.incremental.rules import keyed
from sqlrun.incremental.script import Script


def rows(node: Window, script: Script, flavour: str) -> str:
    """Add the functions' columns to the rows."""
    child = script.rows(node.child, flavour)
    added = ", ".join(f"{script.expr(item)} as {script.name(name)}" for name, item in node.items)
    return f"select {script.names(node.child.columns)}, {added} from {child}"


def changes(node: Window, script: Script) -> list[str]:
    """Recompute the partitions that a change touches."""
    return keyed.changes(node, node.child, node.partition, script)
