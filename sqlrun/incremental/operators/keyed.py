"""Operators that compute each group on its own: the change is the affected groups, post-state minus pre-state. Pure.

Such an operator isn't linear: the effect of a row depends on the other rows of its group, which are in no change feed.
But a group is a function f of its own rows. A group without changed rows is as before; an affected group is computed
twice, f(post-state) with +1 and f(pre-state) with -1. Both read only rows of affected groups.
"""

from __future__ import annotations

from sqlrun.incremental.algebra import Node, Unary
from sqlrun.incremental.operators.affected import restrict
from sqlrun.incremental.operators.affected_keys import numbered, numbers
from sqlrun.incremental.script import WEIGHT, Script


def changes(node: Unary, keys: tuple[str, ...], script: Script) -> list[str]:
    """Return the change: groups of the columns `keys` that the input's changes affect, recomputed before and after.

    Without keys there is one group, the whole table.
    """
    moved = script.changes(node.child)
    if moved is None:
        return []
    again: Node = node
    if keys:
        again = node.with_children((_affected(node, keys, moved, script),))
    columns = script.names(again.columns)
    # f(post-state) - f(pre-state), each over the affected groups alone. Rows that stay equal cancel out.
    return [
        f"select {columns}, {weight} as {WEIGHT} from {script.rows(again, row_set)}"
        for row_set, weight in (("new", 1), ("old", -1))
    ]


def _affected(node: Unary, keys: tuple[str, ...], moved: str, script: Script) -> Node:
    """Return the input with the affected groups alone; `moved` is its change."""
    # Inserted and deleted rows both affect their group; an update of the key affects two groups.
    relation = script.part(f"select distinct {numbered(keys, script)} from {moved}", "touched")
    return restrict(node.child, relation, numbers(keys))


def support(node: Unary, keys: tuple[str, ...], of: tuple[str, ...], script: Script) -> list[str]:
    """Return the values of the input's columns `of` in the groups that `changes` recomputes, without computing them."""
    moved = script.changes(node.child)
    if moved is None:
        return []
    child = _affected(node, keys, moved, script) if keys else node.child
    return [f"select distinct {numbered(of, script)} from {script.rows(child, state)}" for state in ("new", "old")]
