"""Single: one row without data, which never changes. Pure."""

from __future__ import annotations

from sqlrun.incremental.algebra import Single
from sqlrun.incremental.script import Script


def rows(node: Single, script: Script, flavour: str) -> str:
    """Write the row, the same in every tick."""
    return f"select 1 as {script.name(node.columns[0])}"


def changes(node: Single, script: Script) -> list[str]:
    """Write nothing: it came with the first build."""
    return []
