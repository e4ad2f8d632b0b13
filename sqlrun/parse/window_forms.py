"""Refuse forms of window functions that Spark doesn't have, although DuckDB does. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from sqlrun.transpile.trees import every

Found = tuple[exp.Expr, str, str]
_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
_RANKS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)
_OWN_FRAME = (*_RANKS, exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead)
_SKIPPING = (
    exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.AnyValue, exp.NthValue, exp.Lag, exp.Lead,
)  # fmt: skip
# Arguments that Spark requires as literals, with their least value.
_COUNTS: Mapping[type[exp.Expr], tuple[str, int]] = {
    exp.Lag: ("offset", -(2**31)),
    exp.Lead: ("offset", -(2**31)),
    exp.Ntile: ("this", 1),
    exp.NthValue: ("offset", 1),
}
DISTINCT = "Use size(collect_set(x) over (...)) for count(distinct x), or group in a CTE, and join the CTE."
FILTER = "Move the condition into the argument: sum(case when ... then x end) over (...)."
FRAME = "Remove the frame."
ROWS = "Use ROWS or RANGE BETWEEN ... AND ..., with literal whole numbers or intervals."


def found(tree: exp.Expr) -> Iterator[Found]:
    """Yield such forms: (node, what it is, what to write instead)."""
    for node in every(tree, exp.IgnoreNulls, exp.RespectNulls):
        if not isinstance(node.this, _SKIPPING):
            word = "IGNORE NULLS" if isinstance(node, exp.IgnoreNulls) else "RESPECT NULLS"
            yield node, f"Spark SQL has no {word} for this function", "Remove it."
    for window in every(tree, exp.Window):
        call: exp.Expr = window.this
        filtered = isinstance(call, exp.Filter)
        while isinstance(call, _AROUND):
            call = call.this
        if isinstance(call.this, exp.Distinct):
            yield window, "Spark SQL has no DISTINCT in a window function", DISTINCT
        elif filtered:
            yield window, "Spark SQL has no FILTER in a window function", FILTER
        yield from _unordered(window, call)
        if _sorts(call) and (window.args.get("order") or window.args.get("spec")):
            yield (
                window,
                "Spark SQL doesn't allow ORDER BY or a frame in this window",
                "Use over (partition by ...) only.",
            )
        yield from _framed(window, call)
        yield from _counted(call)


def _sorts(call: exp.Expr) -> bool:
    """Return whether an aggregate sorts the whole window itself."""
    named = isinstance(call, exp.AnonymousAggFunc) and call.name.lower() in ("percentile_cont", "percentile_disc")
    return named or isinstance(call, exp.Median) or isinstance(call.parent, exp.WithinGroup)


def _unordered(window: exp.Window, call: exp.Expr) -> Iterator[Found]:
    if isinstance(call, _RANKS) and not any(part.args.get("order") for part in (window, *_named(window))):
        yield window, "a ranking function requires ORDER BY", "Add an order: over (partition by ... order by ...)."


def _named(window: exp.Window) -> list[exp.Expr]:
    """Return the windows of the WINDOW clause that a window may refer to."""
    select = window.find_ancestor(exp.Select)
    clause = select.args.get("windows") if select is not None else None
    return list(clause or ()) if window.args.get("alias") else []


def _framed(window: exp.Window, call: exp.Expr) -> Iterator[Found]:
    frame = window.args.get("spec")
    if frame is None:
        return
    kind = str(frame.args.get("kind") or "").upper()
    if kind not in ("ROWS", "RANGE") or frame.args.get("exclude"):
        yield window, f"Spark SQL doesn't have the frame `{frame.sql('databricks')}`", ROWS
    bounds = [bound for key in ("start", "end") if isinstance(bound := frame.args.get(key), exp.Expr)]
    if not all(isinstance(bound, exp.Literal | exp.Interval | exp.Cast) for bound in bounds):
        yield window, f"Spark SQL doesn't have the frame `{frame.sql('databricks')}`", ROWS
    elif isinstance(call, _OWN_FRAME) and not (isinstance(call, exp.RowNumber) and _is_usual(frame, kind)):
        yield window, "this window function doesn't accept a frame", FRAME


def _is_usual(frame: exp.Expr, kind: str) -> bool:
    bounds = (str(frame.args.get("start")).upper(), str(frame.args.get("end")).upper())
    return kind == "ROWS" and bounds == ("UNBOUNDED", "CURRENT ROW")


def _counted(call: exp.Expr) -> Iterator[Found]:
    key, least = _COUNTS.get(type(call), ("", 0))
    value = call.args.get(key) if key else None
    if value is None:
        return
    inner = value.this if isinstance(value, exp.Neg) else value
    number = int(inner.name) if isinstance(inner, exp.Literal) and inner.is_int else None
    if number is None or (-number if inner is not value else number) < least:
        yield (
            call,
            f"this window function doesn't accept `{value.sql('databricks')}` as a number",
            "Write a literal number.",
        )
