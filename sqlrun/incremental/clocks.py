"""Expressions that read the tick's time. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental.expressions import columns_in
from sqlrun.transpile import parameters
from sqlrun.transpile.refusals import Reason, Refusal
from sqlrun.transpile.trees import copied, has, place_of


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """Return the operands of a condition's ANDs; a BETWEEN over the clock becomes two comparisons."""
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
    """Return whether an expression reads the tick's time."""
    return has(expression, exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentDatetime)


def is_narrow(condition: exp.Expr) -> bool:
    """Return whether every conjunct compares a bare column with a moment, so that files outside can be skipped."""
    return all(
        isinstance(part, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ)
        and any(
            isinstance(time, exp.Column) and not columns_in(clock)
            for time, clock in ((part.this, part.expression), (part.expression, part.this))
        )
        for part in conjuncts(condition)
    )


def at(expression: exp.Expr, time: parameters.Name) -> exp.Expr:
    """Return a copy of an expression with the parameter `time` in place of the clock's functions."""
    return copied(expression).transform(lambda node: at_node(node, time), copy=False)


def at_node(node: exp.Expr, time: parameters.Name) -> exp.Expr:
    """Return the parameter `time` for a function that reads the clock, any other node unchanged."""
    if isinstance(node, exp.CurrentTimestamp):
        return exp.cast(parameters.node(time, "_text"), exp.DataType.build("timestamp", dialect="databricks"))
    if isinstance(node, exp.CurrentDate):
        return exp.cast(parameters.node(time, "_day"), "date")
    return node


def no_rule(part: exp.Expr) -> Refusal:
    """Return the refusal (SR521) of an expression that reads the clock in an unsupported place."""
    return Refusal(
        "SR521",
        f"`{part.sql('databricks')}` depends on the clock in a place that sqlrun can't maintain incrementally",
        "Move it to the select list of a CTE, or to WHERE.",
        part,
    )


def may_change(expression: exp.Expr) -> Reason:
    """Return the reason (SR547) for reading all rows: the clock may change the expression in any of them."""
    line, column = place_of(expression)
    why = f"`{expression.sql('databricks')}` depends on the clock and may change for any row"
    advice = "Compare a plain column with current_timestamp() plus or minus a constant interval, in WHERE."
    return Reason("SR547", why, advice, line, column)
