"""Moving: a filter that reads the clock in any way. Pure.

With P the condition at this tick and at the one before, the change of the filtered rows is
the changes for which both hold; the new rows for which it holds now alone, +; the OLD rows for which it held before
alone, -. Where P compares a column with a moment, files are skipped by their statistics; else all rows are looked at.
"""

from __future__ import annotations

from sqlrun.incremental.algebra import Moving
from sqlrun.incremental.script import WEIGHT, Script


def rows(node: Moving, script: Script, flavour: str) -> str:
    """Keep the rows for which the condition holds at the tick of that flavour."""
    child = script.rows(node.child, flavour)
    moment = script.moment_of(flavour)
    return f"select {script.names(node.columns)} from {child} where {script.expr(node.condition, moment)}"


def changes(node: Moving, script: Script) -> list[str]:
    """Write the pieces that stay, enter and leave."""
    now, before = script.moment.as_of, script.moment.previous
    columns = script.names(node.columns)
    child = script.changes(node.child)
    if before is None:
        return [f"select {columns}, 1 as {WEIGHT} from {script.rows(node, 'new')}"]
    holds, held = (f"({script.expr(node.condition, moment)})" for moment in (now, before))
    texts = []
    if child is not None:
        texts.append(f"select {columns}, {WEIGHT} from {child} where {holds} and {held}")
    if now != before:
        new, old = script.rows(node.child, "new"), script.rows(node.child, "old")
        texts.append(f"select {columns}, 1 as {WEIGHT} from {new} where {holds} and not coalesce({held}, false)")
        texts.append(f"select {columns}, -1 as {WEIGHT} from {old} where {held} and not coalesce({holds}, false)")
    return texts
