"""Operators that work group by group: their change is the touched groups, new minus old. Pure."""

from __future__ import annotations

from sqlrun.incremental.algebra import Node, with_children
from sqlrun.incremental.rules.touched import restrict
from sqlrun.incremental.script import WEIGHT, Script


def changes(node: Node, child: Node, keys: tuple[str, ...], script: Script) -> list[str]:
    """Recompute the groups of the child's columns `keys` that its changes touch, before and after.

    Without keys there is one group, the whole table.
    """
    moved = script.changes(child)
    if moved is None:
        return []
    if keys:
        numbered = ", ".join(f"{script.name(key)} as k{n + 1}" for n, key in enumerate(keys))
        relation = script.part(f"select distinct {numbered} from {moved}", "touched")
        child = restrict(child, relation, {key: f"k{n + 1}" for n, key in enumerate(keys)})
        node = with_children(node, (child,))
    columns = script.names(node.columns)
    return [
        f"select {columns}, {weight} as {WEIGHT} from {script.rows(node, flavour)}"
        for flavour, weight in (("new", 1), ("old", -1))
    ]
