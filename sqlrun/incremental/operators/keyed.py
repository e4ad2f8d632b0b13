"""Operators that work group by group: their change is the touched groups, new minus old. Pure.

Such an operator is not linear: what a row means for its group depends on the group's other rows, which have not changed
and so are in no change feed. But a group is a function of its own rows alone. One that no change touches is as it was,
and one that is touched is computed twice: f(new) comes, f(old) leaves. Both read only rows of touched groups.
"""

from __future__ import annotations

from sqlrun.incremental.algebra import Node, Unary
from sqlrun.incremental.operators.touched import restrict
from sqlrun.incremental.operators.touched_keys import numbered
from sqlrun.incremental.script import WEIGHT, Script


def changes(node: Unary, keys: tuple[str, ...], script: Script) -> list[str]:
    """Recompute the groups of the input's columns `keys` that its changes touch, before and after.

    Without keys there is one group, the whole table.
    """
    moved = script.changes(node.child)
    if moved is None:
        return []
    again: Node = node
    if keys:
        relation = script.part(f"select distinct {numbered(keys, script)} from {moved}", "touched")
        child = restrict(node.child, relation, {key: f"k{n + 1}" for n, key in enumerate(keys)})
        again = node.with_children((child,))
    columns = script.names(again.columns)
    return [
        f"select {columns}, {weight} as {WEIGHT} from {script.rows(again, row_set)}"
        for row_set, weight in (("new", 1), ("old", -1))
    ]
