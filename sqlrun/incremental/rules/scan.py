"""Scan: a table's rows and its change feed. Pure."""

from __future__ import annotations

from sqlrun.incremental.algebra import Scan
from sqlrun.incremental.script import WEIGHT, Script


def rows(node: Scan, script: Script, flavour: str) -> str:
    """Read the table as of the previous tick or of this one."""
    return f"select {script.names(node.columns)} from {script.table(node.table, flavour)}"


def changes(node: Scan, script: Script) -> list[str]:
    """Read what came and left."""
    if node.table not in script.changed:
        return []
    source = script.table(node.table, "changes")
    return [f"select {script.names(node.columns)}, {WEIGHT} from {source}"]
