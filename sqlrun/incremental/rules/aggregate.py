"""Aggregate: touched groups recomputed; additive ones are kept as state instead (`state.py`). Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental.algebra import Aggregate, Project, column, with_children
from sqlrun.incremental.rules import keyed
from sqlrun.incremental.script import Script


def rows(node: Aggregate, script: Script, flavour: str) -> str:
    """Group the rows."""
    child = script.rows(node.child, flavour)
    items = [*node.keys, *node.items]
    texts = [f"{script.expr(item)} as {script.name(name)}" for name, item in items]
    groups = script.groups(key for _, key in node.keys)
    grouping = f" group by {groups}" if groups else ""
    return f"select {', '.join(texts)} from {child}{grouping}"


def changes(node: Aggregate, script: Script) -> list[str]:
    """Recompute the groups that a change touches."""
    node = _plain_keys(node)
    keys = tuple(key.name for _, key in node.keys)
    return keyed.changes(node, node.child, keys, script)


def _plain_keys(node: Aggregate) -> Aggregate:
    """Make computed group keys columns of the input, so that they can be compared with touched ones."""
    if all(isinstance(key, exp.Column) for _, key in node.keys):
        return node
    own = tuple((name, column(name)) for name in node.child.columns)
    computed = tuple((f"_key_{n}", key) for n, (_, key) in enumerate(node.keys))
    child = Project(node.child, (*own, *computed))
    keys = tuple((name, column(f"_key_{n}")) for n, (name, _) in enumerate(node.keys))
    made = with_children(node, (child,))
    assert isinstance(made, Aggregate)
    return Aggregate(child, keys, made.items)
