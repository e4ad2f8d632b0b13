"""Window functions to operators, grouped by their PARTITION BY. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlrun.incremental import clocks
from sqlrun.incremental.algebra import Node
from sqlrun.incremental.expressions import column, columns_in
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.operators.window import Window
from sqlrun.incremental.translate.from_clause import unused
from sqlrun.incremental.translate.group_by import Items
from sqlrun.transpile.refusals import Refusal
from sqlrun.transpile.trees import copied, every

Conditions = dict[str, exp.Expr]


def windowed(
    named: Mapping[str, exp.Expr], node: Node, items: Items, conditions: Conditions
) -> tuple[Node, Items, Conditions]:
    """Compute the window functions of a SELECT as columns below it; `named` are those of its WINDOW clause.

    Windows that share PARTITION BY columns are computed together, others on top of each other.
    """
    items = tuple((name, _spelled(item, named)) for name, item in items)
    conditions = {key: _spelled(condition, named) for key, condition in conditions.items()}
    found: dict[str, exp.Window] = {}
    for expression in (*(item for _, item in items), *conditions.values()):
        for window in every(expression, exp.Window):
            found.setdefault(window.sql("databricks"), window)
    if not found:
        return node, items, conditions
    names = {text: f"_window_{n + 1}" for n, text in enumerate(found)}
    clocked = next((window for window in found.values() if clocks.reads_clock(window)), None)
    if clocked is not None:
        raise clocks.no_rule(clocked)
    for texts in _together(found):
        # Windows with different partitions are computed one above the other: each recomputes its own affected
        # partitions.
        node, partition = _partitioned(node, [found[text] for text in texts])
        node = Window(node, partition, tuple((names[text], found[text]) for text in texts))

    def pull(expression: exp.Expr) -> exp.Expr:
        def swap(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Window):
                return column(names[part.sql("databricks")])
            return part

        return copied(expression).transform(swap, copy=False)

    return (
        node,
        tuple((name, pull(item)) for name, item in items),
        {key: pull(condition) for key, condition in conditions.items()},
    )


def _spelled(expression: exp.Expr, named: Mapping[str, exp.Expr]) -> exp.Expr:
    """Replace references to named windows by the windows."""

    def swap(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Window) or part.args.get("alias") is None:
            return part
        spec = named.get(part.args["alias"].name.lower())
        if spec is None:
            raise Refusal(
                "SR522", f"unknown window `{part.args['alias'].name}`", "Define it in the clause WINDOW.", part
            )
        if any(part.args.get(key) for key in ("partition_by", "order", "spec")):
            why = "Spark SQL can't extend a named window"
            raise Refusal("SR301", why, "Write the whole window in OVER, or name a second window.", part)
        made = part.copy()
        made.set("alias", None)
        for key in ("partition_by", "order", "spec"):
            if spec.args.get(key):
                made.set(key, [p.copy() for p in spec.args[key]] if key == "partition_by" else spec.args[key].copy())
        return made

    return expression.copy().transform(swap, copy=False) if named else expression


def _together(found: Mapping[str, exp.Window]) -> list[list[str]]:
    """Return the groups of windows to compute together: all if they share a column, else those with equal columns."""
    keys = {text: frozenset(part.sql("databricks") for part in _parts(window)) for text, window in found.items()}
    # With a shared column, one pass over the rows of its affected values recomputes all windows.
    if frozenset.intersection(*keys.values()):
        return [list(found)]
    groups: dict[frozenset[str], list[str]] = {}
    for text, key in keys.items():
        groups.setdefault(key, []).append(text)
    return list(groups.values())


def _parts(window: exp.Window) -> list[exp.Expr]:
    """Return the expressions of PARTITION BY; a constant splits nothing."""
    return [part for part in window.args.get("partition_by") or () if columns_in(part)]


def _partitioned(node: Node, found: list[exp.Window]) -> tuple[Node, tuple[str, ...]]:
    """Make the windows' shared PARTITION BY expressions columns of the input; none: one partition."""
    parts = {part.sql("databricks"): part for window in found for part in _parts(window)}
    shared = [t for t in parts if all(any(p.sql("databricks") == t for p in _parts(w)) for w in found)]
    computed: dict[str, str] = {}
    for text in shared:
        if not isinstance(parts[text], exp.Column):
            computed[text] = unused(f"_part_{len(computed) + 1}", (*node.columns, *computed.values()))
    if computed:
        own = tuple((name, column(name)) for name in node.columns)
        node = Project(node, (*own, *((name, parts[text]) for text, name in computed.items())))
    return node, tuple(computed.get(text, parts[text].name) for text in shared)
