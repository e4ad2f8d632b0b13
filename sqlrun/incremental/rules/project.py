"""Project: a change maps as its row does. Pure.

Where an expression reads the clock, rows that stand still change too: those whose value at this tick differs from
that at the one before.
"""

from __future__ import annotations

from datetime import datetime

from sqlrun.incremental import clocks
from sqlrun.incremental.algebra import Project
from sqlrun.incremental.script import WEIGHT, Script


def rows(node: Project, script: Script, flavour: str) -> str:
    """Map the rows."""
    return f"select {_items(node, script, script.moment_of(flavour))} from {script.rows(node.child, flavour)}"


def changes(node: Project, script: Script) -> list[str]:
    """Map the changes, and the old rows whose values the clock alone has changed."""
    child = script.changes(node.child)
    now, before = script.moment.as_of, script.moment.previous
    items = _items(node, script, now)
    texts = [f"select {items}, {WEIGHT} from {child}"] if child else []
    clocked = [item for _, item in node.items if clocks.reads_clock(item)]
    if clocked and before is not None and now != before:
        old = script.rows(node.child, "old")
        differs = " or ".join(
            f"not ({script.same(f'({script.expr(item, now)})', f'({script.expr(item, before)})')})" for item in clocked
        )
        texts.append(f"select {items}, 1 as {WEIGHT} from {old} where {differs}")
        texts.append(f"select {_items(node, script, before)}, -1 as {WEIGHT} from {old} where {differs}")
    return texts


def _items(node: Project, script: Script, moment: datetime) -> str:
    return ", ".join(f"{script.expr(item, moment)} as {script.name(name)}" for name, item in node.items)
