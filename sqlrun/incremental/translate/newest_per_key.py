"""`row_number() = 1` over append-only input as the latest row of each key. Pure.

The general rule ranks each affected partition again. Over append-only input no ranking is needed: a new row is compared
with the stored winner, and rows that have lost can't win later.
"""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental.algebra import Node
from sqlrun.incremental.operators.filter import Filter
from sqlrun.incremental.operators.latest import Latest, OrderKey
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.operators.window import Window
from sqlrun.incremental.properties import only_grows


def newest_per_key(root: Node) -> Node:
    """Return the tree with `row_number() over (partition by key order by version desc) = 1` as `Latest`."""
    done: dict[int, Node] = {}  # a CTE that is used twice stays one node

    def visit(node: Node) -> Node:
        if id(node) not in done:
            made = node.with_children(tuple(visit(child) for child in node.children()))
            done[id(node)] = _as_latest(made)
        return done[id(node)]

    return visit(root)


def _as_latest(node: Node) -> Node:
    if not isinstance(node, Filter):
        return node
    below, names = _under_projection(node.child)
    if not isinstance(below, Window) or len(below.items) != 1 or not only_grows(below.child):
        return node
    name, item = below.items[0]
    if not isinstance(item.this, exp.RowNumber) or not _is_first(node.condition, names.get(name, name)):
        return node
    order = tuple(
        OrderKey(o.this.name, bool(o.args.get("desc")), bool(o.args.get("nulls_first")))
        for o in item.args["order"].expressions
    )
    if not all(isinstance(o.this, exp.Column) for o in item.args["order"].expressions):
        return node
    if not below.partition or len(item.args.get("partition_by") or ()) != len(below.partition):
        return node
    # Over append-only input the first rank is a maximum, which needs no other row of its partition.
    latest: Node = Latest(below.child, below.partition, order)
    return _first_again(node.child, latest, name)


def _under_projection(node: Node) -> tuple[Node, dict[str, str]]:
    """Return the node below projections, and its columns as {name there: name above}."""
    if not isinstance(node, Project):
        return node, {}
    below, names = _under_projection(node.child)
    mapped = {item.name: name for name, item in node.items if isinstance(item, exp.Column)}
    if names:
        return below, {old: mapped[new] for old, new in names.items() if new in mapped}
    return below, mapped


def _is_first(condition: exp.Expr, name: str) -> bool:
    if not isinstance(condition, exp.EQ | exp.LTE):
        return False
    left, right = condition.this, condition.expression
    return isinstance(left, exp.Column) and left.name == name and right == exp.Literal.number(1)


def _first_again(above: Node, latest: Node, rank: str) -> Node:
    """Return the projections over the latest rows again, with the rank as the constant 1."""
    if isinstance(above, Window):
        items = [(c, exp.column(exp.to_identifier(c, quoted=True))) for c in latest.columns]
        return Project(latest, (*items, (rank, exp.Literal.number(1))))
    assert isinstance(above, Project)
    return Project(_first_again(above.child, latest, rank), above.items)
