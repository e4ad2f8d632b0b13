"""Conditions that move with as_of. Pure."""

from __future__ import annotations

from datetime import datetime

from sqlglot import exp

from sqlrun.incremental.algebra import Bound, Filter, Moving, Node, Temporal, columns_in
from sqlrun.transpile.refusals import Refusal
from sqlrun.transpile.trees import copied, has

FLIP = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
OPERATORS: dict[type[exp.Expr], str] = {
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """Part a condition at its ANDs; BETWEEN becomes two comparisons."""
    match condition:
        case None:
            return []
        case exp.And():
            return conjuncts(condition.this) + conjuncts(condition.expression)
        case exp.Paren():
            return conjuncts(condition.this)
        case exp.Between() if reads_clock(condition):
            low = exp.GTE(this=condition.this.copy(), expression=condition.args["low"])
            high = exp.LTE(this=condition.this.copy(), expression=condition.args["high"])
            return [low, high]
        case exp.Boolean() if condition.this:
            return []
        case _:
            return [condition]


def reads_clock(expression: exp.Expr) -> bool:
    """Tell whether an expression asks for the tick's time."""
    return has(expression, exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentDatetime)


def filtered(node: Node, condition: exp.Expr) -> Node:
    """Put a condition over a node: what moves with as_of as temporal filters, the rest as a filter below them."""
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
    for text in dict.fromkeys([*lowers, *uppers]):
        low, high = lowers.get(text), uppers.get(text)
        time = (low or high)[0]  # type: ignore[index]
        node = Temporal(node, time, low[1] if low else None, high[1] if high else None)
    for time, bound in again:
        is_lower = bound.op in (">", ">=")
        node = Temporal(node, time, bound if is_lower else None, None if is_lower else bound)
    return Moving(node, exp.and_(*free, copy=False)) if free else node


def _bound(part: exp.Expr) -> tuple[exp.Expr, Bound] | None:
    """Read `time <op> as_of + shift` in either order; a shift on the time's side changes sides. None: another form."""
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
    # `time + interval > now()`: the interval moves over with the other sign.
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


def is_narrow(condition: exp.Expr) -> bool:
    """Tell whether every part compares a bare column with a moment, so that files outside need not be opened."""
    return all(
        isinstance(part, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ)
        and any(
            isinstance(time, exp.Column) and not columns_in(clock)
            for time, clock in ((part.this, part.expression), (part.expression, part.this))
        )
        for part in conjuncts(condition)
    )


def at(expression: exp.Expr, moment: datetime) -> exp.Expr:
    """Write a moment for the clock in an expression, in place of the clock's functions; the expression is copied."""
    return copied(expression).transform(lambda node: at_node(node, moment), copy=False)


def at_node(node: exp.Expr, moment: datetime) -> exp.Expr:
    """Write a moment for a function that asks the clock; other nodes stay."""
    if isinstance(node, exp.CurrentTimestamp):
        text = moment.strftime("%Y-%m-%d %H:%M:%S.%f") + "+00:00"
        return exp.cast(exp.Literal.string(text), exp.DataType.build("timestamp", dialect="databricks"))
    if isinstance(node, exp.CurrentDate):
        return exp.cast(exp.Literal.string(moment.strftime("%Y-%m-%d")), "date")
    return node


def no_rule(part: exp.Expr) -> Refusal:
    """Say that a clock stands where it has no rule."""
    return Refusal(
        "SR521",
        f"`{part.sql('databricks')}` moves with as_of in a place that has no rule",
        "Compute it in the select list of a CTE, or put it into WHERE.",
        part,
    )
