"""Conditions that move with as_of, and windows that share a partition. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental.algebra import (
    Bound,
    Filter,
    Node,
    Project,
    Refusal,
    Temporal,
    column,
    columns_in,
)

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
    return expression.find(exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentDatetime) is not None


def filtered(node: Node, condition: exp.Expr) -> Node:
    """Put a condition over a node: what moves with as_of as temporal filters, the rest as a filter."""
    lowers: dict[str, tuple[exp.Expr, Bound]] = {}
    uppers: dict[str, tuple[exp.Expr, Bound]] = {}
    rest: list[exp.Expr] = []
    for part in conjuncts(condition):
        if not reads_clock(part):
            rest.append(part)
            continue
        time, bound = _bound(part)
        side = lowers if bound.op in (">", ">=") else uppers
        text = time.sql("databricks")
        if text in side:
            raise _no_rule(part)
        side[text] = (time, bound)
    for text in dict.fromkeys([*lowers, *uppers]):
        low, high = lowers.get(text), uppers.get(text)
        time = (low or high)[0]  # type: ignore[index]
        node = Temporal(node, time, low[1] if low else None, high[1] if high else None)
    return Filter(node, exp.and_(*rest, copy=False)) if rest else node


def _bound(part: exp.Expr) -> tuple[exp.Expr, Bound]:
    """Read `time <op> as_of + shift` in either order; a shift on the time's side changes sides."""
    op = OPERATORS.get(type(part))
    if op is None:
        raise _no_rule(part)
    left, right = part.this, part.expression
    if reads_clock(left):
        left, right, op = right, left, FLIP[op]
    if reads_clock(left):
        raise _no_rule(part)
    shift, sign = _shift(right, part)
    # `time + interval > now()`: the interval moves over with the other sign.
    if isinstance(left, exp.Add | exp.Sub) and isinstance(left.expression, exp.Interval) and shift is None:
        sign = -1 if isinstance(left, exp.Add) else 1
        left, shift = left.this, left.expression
    return left, Bound(op, shift, sign)  # type: ignore[arg-type]


def _shift(clock: exp.Expr, part: exp.Expr) -> tuple[exp.Expr | None, int]:
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
    raise _no_rule(part)


def _no_rule(part: exp.Expr) -> Refusal:
    return Refusal(
        "SR521",
        f"`{part.sql('databricks')}` moves with as_of in a way that has no rule",
        "Compare a column with current_timestamp() plus or minus a constant interval, "
        "at most once from below and once from above, joined by AND.",
        part,
    )


def partitioned(node: Node, found: list[exp.Window]) -> tuple[Node, tuple[str, ...]]:
    """Make the windows' shared PARTITION BY columns of the input; expressions become columns first."""
    keys = [tuple(part.sql("databricks") for part in w.args.get("partition_by") or ()) for w in found]
    shared = [key for key in keys[0] if all(key in other for other in keys)]
    if not shared:
        # Ranks over a whole table can't be proved total; other window functions run with the whole query.
        ranks = any(isinstance(window.this, exp.RowNumber) for window in found)
        raise Refusal(
            "SR502" if ranks else "SR522",
            "a window function without PARTITION BY reads the whole table",
            "Give all window functions of this SELECT a PARTITION BY column in common.",
            found[0],
        )
    for window in found:
        total_order(window)
    parts = {p.sql("databricks"): p for w in found for p in w.args.get("partition_by") or ()}
    computed = {text: f"_part_{n + 1}" for n, text in enumerate(shared) if not isinstance(parts[text], exp.Column)}
    if computed:
        items = [(name, column(name)) for name in node.columns]
        node = Project(node, (*items, *((name, parts[text]) for text, name in computed.items())))
    return node, tuple(computed.get(text, parts[text].name) for text in shared)


def total_order(window: exp.Window) -> None:
    """Refuse ranking functions without ORDER BY: their answer would depend on the engine."""
    if isinstance(window.this, exp.RowNumber) and window.args.get("order") is None:
        raise Refusal(
            "SR523",
            "row_number() without ORDER BY picks rows by chance",
            "Order by columns that leave no tie.",
            window,
        )
