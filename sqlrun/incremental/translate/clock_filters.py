"""Conditions over the clock to filters: `Temporal` for windows of time, `Moving` for other forms. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental.algebra import Node
from sqlrun.incremental.clocks import conjuncts, reads_clock
from sqlrun.incremental.expressions import columns_in
from sqlrun.incremental.operators.filter import Filter
from sqlrun.incremental.operators.moving import Moving
from sqlrun.incremental.operators.temporal import Bound, Temporal

FLIP = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
OPERATORS: dict[type[exp.Expr], str] = {
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}


def filtered(node: Node, condition: exp.Expr) -> Node:
    """Return a node under a condition: a plain filter, and above it temporal filters for parts with the clock."""
    lowers: dict[str, tuple[exp.Expr, Bound]] = {}
    uppers: dict[str, tuple[exp.Expr, Bound]] = {}
    rest: list[exp.Expr] = []
    free: list[exp.Expr] = []
    again: list[tuple[exp.Expr, Bound]] = []
    for part in conjuncts(condition):
        if not reads_clock(part):
            rest.append(part)
            continue
        found = _bound(part)
        if found is None:
            free.append(part)
            continue
        time, bound = found
        side = lowers if bound.op in (">", ">=") else uppers
        text = time.sql("databricks")
        if text in side:
            again.append(found)
        else:
            side[text] = found
    if rest:
        node = Filter(node, exp.and_(*rest, copy=False))
    # Two bounds on one time are one window, whose three pieces are disjoint.
    for text in dict.fromkeys([*lowers, *uppers]):
        low, high = lowers.get(text), uppers.get(text)
        time = (low or high)[0]  # type: ignore[index]
        node = Temporal(node, time, low[1] if low else None, high[1] if high else None)
    for time, bound in again:
        is_lower = bound.op in (">", ">=")
        node = Temporal(node, time, bound if is_lower else None, None if is_lower else bound)
    return Moving(node, exp.and_(*free, copy=False)) if free else node


def _bound(part: exp.Expr) -> tuple[exp.Expr, Bound] | None:
    """Return `time <op> as_of + shift` as (time, bound), written in either order; None for another form."""
    op = OPERATORS.get(type(part))
    if op is None:
        return None
    left, right = part.this, part.expression
    if reads_clock(left):
        left, right, op = right, left, FLIP[op]
    if reads_clock(left) or not columns_in(left):
        return None
    found = _shift(right)
    if found is None:
        return None
    shift, sign = found
    # `time + interval > now()`: the interval moves to the other side with the opposite sign.
    if isinstance(left, exp.Add | exp.Sub) and isinstance(left.expression, exp.Interval) and shift is None:
        sign = -1 if isinstance(left, exp.Add) else 1
        left, shift = left.this, left.expression
    return left, Bound(op, shift, sign)  # type: ignore[arg-type]


def _shift(clock: exp.Expr) -> tuple[exp.Expr | None, int] | None:
    while isinstance(clock, exp.Paren):
        clock = clock.this
    if isinstance(clock, exp.CurrentTimestamp):
        return None, -1
    if isinstance(clock, exp.Add | exp.Sub) and isinstance(clock.this, exp.CurrentTimestamp):
        shift = clock.expression
        while isinstance(shift, exp.Paren):
            shift = shift.this
        if isinstance(shift, exp.Interval) and not columns_in(shift):
            return shift, 1 if isinstance(clock, exp.Add) else -1
    return None
