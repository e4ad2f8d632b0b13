"""Refuse window functions over an ORDER BY with ties that would decide the result. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental import column_names, determinism, functional_dependencies
from sqlrun.incremental.algebra import Node, walk
from sqlrun.incremental.operators.scan import Scan
from sqlrun.incremental.operators.window import Window
from sqlrun.transpile.refusals import Refusal

# Functions whose value depends on the order of rows that are equal in ORDER BY.
BY_PLACE = (
    exp.RowNumber,
    exp.Lag,
    exp.Lead,
    exp.Ntile,
    exp.FirstValue,
    exp.LastValue,
    exp.NthValue,
    exp.First,
    exp.Last,
)

# Marks the row_number() that stands for ORDER BY with LIMIT, for the message.
LIMITS = "limits"


def check_orders(node: Node) -> None:
    """Raise SR502 for a window function over an ORDER BY that leaves ties: the winner would depend on the engine."""
    for window in (n for n in walk(node) if isinstance(n, Window)):
        for _, item in window.items:
            if needs_total_order(item):
                _check_order(window, item)


def needs_total_order(item: exp.Window) -> bool:
    """Return whether a window function's value depends on the order of tied rows."""
    call = item.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        call = call.this
    if isinstance(call, (*BY_PLACE, exp.ArrayAgg, exp.AnyValue, exp.GroupConcat)):
        return True
    spec = item.args.get("spec")
    return spec is not None and (spec.args.get("kind") or "").upper() == "ROWS" and not _is_whole(spec)


def _is_whole(spec: exp.Expr) -> bool:
    return spec.args.get("start") == "UNBOUNDED" and spec.args.get("end") == "UNBOUNDED"


def _check_order(window: Window, item: exp.Window) -> None:
    order = item.args.get("order")
    asked = order.expressions if order is not None else []
    ordered = {o.this.name for o in asked if isinstance(o.this, exp.Column)}
    partitions = {p.name for p in item.args.get("partition_by") or () if isinstance(p, exp.Column)}
    known = functional_dependencies.by(window.child, ordered | partitions)
    unique = window.child.grain()
    missing = [key for key in unique or () if key not in known]
    every = set(window.child.columns) <= known  # then tied rows are copies of each other
    if every or (unique is not None and not missing):
        return
    advice = (
        f"Add {', '.join(column_names.name(key, window.child) for key in missing)} to the ORDER BY."
        if unique is not None
        else f"Declare the `grain` of {_without_grain(window.child)} in its contract, and add it to the ORDER BY."
    )
    call = item.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        call = call.this
    name = determinism.SPARK_NAMES.get(type(call)) or call.sql_name().lower()
    equal = (
        f"rows equal in {', '.join(column_names.text(o, window.child) for o in asked)}"
        if order is not None
        else "it has no ORDER BY"
    )
    what = "ORDER BY with LIMIT" if item.meta.get(LIMITS) else f"{name}()"
    raise Refusal("SR502", f"{what} leaves ties: {equal}", advice, item)


def _without_grain(node: Node) -> str:
    """Return the names of the tables below an operator that have no grain."""
    names = dict.fromkeys(one.table for one in walk(node) if isinstance(one, Scan) and one.unique is None)
    return " and ".join(f"`{name}`" for name in names) or "the input"
