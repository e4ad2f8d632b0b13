"""Temporal filter: the three-piece rule of windows that move with as_of. Pure.

From the tick at p to the tick at t the window moves from (L0, U0] to (L1, U1]. Its change is
overlap (in both windows): the input's changes; entering (in the new window alone): the input's new rows, +;
leaving (in the old window alone): the input's OLD rows, -, at the value that they had at p.
The pieces are written as conditions on the four bounds, so a window that jumped past itself (an outage longer than
its width) and rows dated in the future need no case of their own.
"""

from __future__ import annotations

from datetime import datetime

from sqlglot import exp

from sqlrun.incremental.algebra import Bound, Temporal
from sqlrun.incremental.script import WEIGHT, Script
from sqlrun.transpile import writer as sql


def rows(node: Temporal, script: Script, flavour: str) -> str:
    """Keep the rows that are in the window at the tick of that flavour."""
    child = script.rows(node.child, flavour)
    moment = script.moment.as_of if flavour == "new" else script.moment.previous
    columns = script.names(node.columns)
    if moment is None:  # before the first tick every window was empty
        return f"select {columns} from {child} where false"
    return f"select {columns} from {child} where {_inside(node, script, moment)}"


def changes(node: Temporal, script: Script) -> list[str]:
    """Write the pieces overlap, entering and leaving."""
    now, before = script.moment.as_of, script.moment.previous
    columns = script.names(node.columns)
    child = script.changes(node.child)
    if before is None:
        return [f"select {columns}, 1 as {WEIGHT} from {script.rows(node, 'new')}"]
    texts = []
    inside_now, inside_before = _inside(node, script, now), _inside(node, script, before)
    if child is not None:
        both = f"{inside_now} and {inside_before}"
        texts.append(f"select {columns}, {WEIGHT} from {child} where {both}")
    if now != before and node.upper is not None:
        new = script.rows(node.child, "new")
        entering = f"{inside_now} and not ({_side(node, node.upper, script, before)})"
        texts.append(f"select {columns}, 1 as {WEIGHT} from {new} where {entering}")
    if now != before and node.lower is not None:
        old = script.rows(node.child, "old")
        leaving = f"{inside_before} and not ({_side(node, node.lower, script, now)})"
        texts.append(f"select {columns}, -1 as {WEIGHT} from {old} where {leaving}")
    return texts


def _inside(node: Temporal, script: Script, moment: datetime) -> str:
    sides = [bound for bound in (node.lower, node.upper) if bound is not None]
    return " and ".join(_side(node, bound, script, moment) for bound in sides)


def _side(node: Temporal, bound: Bound, script: Script, moment: datetime) -> str:
    at = sql.timestamp(moment, script.dialect)
    if bound.shift is not None:
        sign = "+" if bound.sign > 0 else "-"
        at = f"({at} {sign} {script.expr(bound.shift)})"
    return f"{script.expr(_operand(node.time))} {bound.op} {at}"


def _operand(time: exp.Expr) -> exp.Expr:
    return exp.paren(time) if isinstance(time, exp.Binary) else time
