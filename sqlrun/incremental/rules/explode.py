"""Explode: a change of an array is a change of each of its elements. Pure."""

from __future__ import annotations

from sqlrun.incremental.algebra import Explode
from sqlrun.incremental.script import WEIGHT, Script


def rows(node: Explode, script: Script, flavour: str) -> str:
    """Write one row for each element."""
    child = script.rows(node.child, flavour)
    return _exploded(node, script, script.names(node.child.columns), child)


def changes(node: Explode, script: Script) -> list[str]:
    """Write one change for each element of a changed row."""
    child = script.changes(node.child)
    if child is None:
        return []
    kept = f"{script.names(node.child.columns)}, {WEIGHT}"
    inner = script.part(_exploded(node, script, kept, child), "exploded")
    return [f"select {script.names(node.columns)}, {WEIGHT} from {inner}"]


def _exploded(node: Explode, script: Script, kept: str, child: str) -> str:
    element, array = script.name(node.element), script.expr(node.array)
    position = script.name(node.position) if node.position else ""
    if script.dialect == "spark":
        call = "posexplode" if position else "explode"
        aliases = f"{position}, {element}" if position else element
        outer = "outer " if node.outer else ""
        view = f"lateral view {outer}{call}({array}) _exploded as {aliases}"
        return f"select {kept}, {aliases} from {child} {view}"
    inner = f"select unnest({array}) as {element}"
    if position:
        # Positions count from 0, as Spark's posexplode does.
        inner += f", cast(generate_subscripts({array}, 1) - 1 as integer) as {position}"
    added = f"_exploded.{position}, _exploded.{element}" if position else f"_exploded.{element}"
    join = "left join lateral" if node.outer else "join lateral"
    return f"select {kept}, {added} from {child} {join} ({inner}) as _exploded on true"
