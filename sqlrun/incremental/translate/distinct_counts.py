"""count(distinct x) as two aggregates: by group and value, then by group. Pure.

DISTINCT isn't linear: deleting one of two equal rows doesn't delete the value. A value needs a count of its rows, as in
the counting algorithm of Gupta & Mumick 1995: it appears with the first row and disappears when its count reaches 0.
The inner aggregate is that count. Both aggregates add up. All distinct calls of a query must be over one expression.
"""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental import stages, types
from sqlrun.incremental.algebra import Node, Type
from sqlrun.incremental.expressions import column
from sqlrun.incremental.operators.aggregate import Aggregate, adds_up
from sqlrun.incremental.operators.project import Project

VALUE = "_value"
Items = list[tuple[str, exp.Expr]]


def in_two_steps(root: Node) -> Node:
    """Return the tree with every supported aggregate of distinct calls rewritten; others stay."""
    done: dict[int, Node] = {}  # a CTE that is used twice stays one node

    def visit(node: Node) -> Node:
        if id(node) not in done:
            made = node.with_children(tuple(visit(child) for child in node.children()))
            done[id(node)] = _two_steps(made) if isinstance(made, Aggregate) else made
        return done[id(node)]

    return visit(root)


def _two_steps(node: Aggregate) -> Node:
    values = {argument.sql("databricks"): argument for _, call in node.items if (argument := _distinct(call))}
    others = [call for _, call in node.items if _distinct(call) is None]
    if not node.keys or len(values) != 1 or not all(_parts(call) for call in others):
        return node
    inner: Items = []
    outer: Items = []
    top: Items = []
    for number, (name, call) in enumerate(node.items):
        partial = _parts(call) if _distinct(call) is None else {}
        for kind, part in partial.items():
            inner.append((f"_{kind}_{number}", part))
            outer.append((f"_{kind}_{number}", exp.Sum(this=column(f"_{kind}_{number}"))))
        if not partial:
            outer.append((name, _over_values(call)))
        top.append((name, _whole(partial, name, number, node.child.types())))
    # Group and value first, then the group: sums of partial sums, and each value once.
    (value,) = values.values()
    by_value = Aggregate(node.child, (*node.keys, (VALUE, value)), tuple(inner))
    groups = tuple((name, column(name)) for name, _ in node.keys)
    return Project(Aggregate(by_value, groups, tuple(outer)), (*groups, *top))


def _distinct(call: exp.Expr) -> exp.Expr | None:
    """Return the argument of a distinct call, NULL where its FILTER is false; None for another call."""
    inner = call.this if isinstance(call, exp.Filter) else call
    if not isinstance(inner, exp.Count | exp.Sum) or not isinstance(inner.this, exp.Distinct):
        return None
    if len(inner.this.expressions) != 1:
        return None
    argument: exp.Expr = inner.this.expressions[0]
    return exp.case().when(call.expression.this, argument) if isinstance(call, exp.Filter) else argument


def _over_values(call: exp.Expr) -> exp.Expr:
    inner = call.this if isinstance(call, exp.Filter) else call
    return type(inner)(this=column(VALUE))


def _parts(call: exp.Expr) -> dict[str, exp.Expr]:
    """Split a call into sums over the rows of one value; {} if it doesn't add up."""
    inner = call.this if isinstance(call, exp.Filter) else call
    if not adds_up(call) or isinstance(inner, exp.LogicalAnd | exp.LogicalOr):
        return {}
    # An average isn't the average of partial averages, but its sum and its count add up.
    if not isinstance(inner, exp.Avg):
        return {"total": call.copy()}
    total, count = exp.Sum(this=inner.this.copy()), exp.Count(this=inner.this.copy())
    if isinstance(call, exp.Filter):
        return {
            "total": exp.Filter(this=total, expression=call.expression.copy()),
            "known": exp.Filter(this=count, expression=call.expression.copy()),
        }
    return {"total": total, "known": count}


def _whole(partial: dict[str, exp.Expr], name: str, number: int, known: dict[str, Type]) -> exp.Expr:
    if not partial:
        return column(name)
    total = column(f"_total_{number}")
    if "known" not in partial:
        return total
    count = column(f"_known_{number}")
    some = exp.GT(this=count, expression=exp.Literal.number(0))
    summed = partial["total"]
    argument = summed.this if isinstance(summed, exp.Sum) else summed.this.this
    return exp.case().when(some, stages.average(total, count, types.of(argument, known)))
