"""Project: a change maps as its row does. Pure."""

from __future__ import annotations

from sqlrun.incremental.algebra import Project
from sqlrun.incremental.script import WEIGHT, Script


def rows(node: Project, script: Script, flavour: str) -> str:
    """Map the rows."""
    return f"select {_items(node, script)} from {script.rows(node.child, flavour)}"


def changes(node: Project, script: Script) -> list[str]:
    """Map the changes."""
    child = script.changes(node.child)
    return [f"select {_items(node, script)}, {WEIGHT} from {child}"] if child else []


def _items(node: Project, script: Script) -> str:
    return ", ".join(f"{script.expr(item)} as {script.name(name)}" for name, item in node.items)
