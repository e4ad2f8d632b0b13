"""Refuse queries whose result depends on the order in which an engine reads rows. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.transpile.refusals import Refusal
from sqlrun.transpile.trees import nodes

# The estimate of these sketches depends on the order of their input (docs/decisions/0009).
SKETCHES = frozenset({"hll_sketch_agg", "hll_union_agg"})
# These functions return a list in the order of their input.
KEEPS_ORDER = (
    exp.ArrayDistinct,
    exp.ArrayFilter,
    exp.ArrayCompact,
    exp.Transform,
    exp.Filter,
    exp.Coalesce,
    exp.Paren,
)
# The result of these functions doesn't depend on the order of a list.
FORGETS_ORDER = (
    exp.ArraySort,
    exp.ArraySize,
    exp.ArrayContains,
    exp.ArrayMax,
    exp.ArrayMin,
    exp.ArrayAny,
    exp.ArrayAll,
)
SPARK_NAMES: dict[type[exp.Expr], str] = {
    exp.ArrayAgg: "collect_list",
    exp.ArrayUniqueAgg: "collect_set",
    exp.GroupConcat: "listagg",
    exp.RowNumber: "row_number",
    exp.FirstValue: "first_value",
    exp.LastValue: "last_value",
    exp.AnyValue: "any_value",
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.ApproxQuantile: "approx_percentile",
}
ADVICE = {
    "collect": "Sort the result: sort_array(collect_list(x)).",
    "first": "Use min(x), max(x), or max(struct(version, x)).x for the latest value.",
    "ties": "Use max(struct(y, x)).x, which breaks ties by x.",
    "approximate": "Use the exact percentile(x, 0.5).",
    "sketch": "Use count(distinct x), which is exact and incremental, or approx_count_distinct(x).",
    "mode": "Count the values, and select the first row by row_number().",
}


# No ORDER BY of a window makes these deterministic.
_ALWAYS = ("ties", "mode")


def check(tree: exp.Expr) -> None:
    """Raise SR504 for a function that depends on the order of rows; `window_orders.py` checks window functions."""
    for node in nodes(tree):
        if not isinstance(node, exp.Func):  # every case below is a function
            continue
        advice = _advice(node)
        if advice and (advice in _ALWAYS or node.find_ancestor(exp.Window) is None):
            name = node.name.lower() if isinstance(node, exp.Anonymous) else SPARK_NAMES.get(type(node)) or node.key
            raise Refusal("SR504", f"{name}() depends on the order in which rows are read", ADVICE[advice], node)


def _advice(node: exp.Expr) -> str:
    match node:
        case exp.ArrayAgg() | exp.ArrayUniqueAgg():
            return "" if _is_ordered(node) else "collect"
        case exp.GroupConcat():
            return "" if isinstance(node.this, exp.Order) or isinstance(node.parent, exp.WithinGroup) else "collect"
        case exp.First() | exp.Last() | exp.FirstValue() | exp.LastValue() | exp.AnyValue():
            return "first"
        case exp.ArgMax() | exp.ArgMin():
            return "ties"
        case exp.ApproxQuantile():
            return "approximate"
        case exp.Mode():
            return "mode"
        case exp.Anonymous() if node.name.lower() in SKETCHES:
            return "sketch"
        case _:
            return ""


def _is_ordered(call: exp.Expr) -> bool:
    node: exp.Expr | None = call
    while node is not None:
        above = node.parent
        if isinstance(above, FORGETS_ORDER) or (isinstance(above, exp.Exists) and above.args.get("expression")):
            return above.this is node
        if not isinstance(above, KEEPS_ORDER):
            return False
        node = above
    return False
