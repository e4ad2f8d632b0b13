"""What can be said of a query's shape: linear, growing, unique, additive. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental import clocks, column_names, determinism, functional_dependencies, types
from sqlrun.incremental.algebra import (
    Aggregate,
    Explode,
    Filter,
    Join,
    Latest,
    Moving,
    Node,
    OrderKey,
    Project,
    Scan,
    Single,
    Temporal,
    Touched,
    UnionAll,
    Window,
    children,
    columns_in,
    walk,
    with_children,
)
from sqlrun.transpile.refusals import Reason, Refusal
from sqlrun.transpile.trees import place_of

ADDITIVE = (exp.Sum, exp.Count, exp.CountIf, exp.Avg, exp.LogicalAnd, exp.LogicalOr)


def is_linear(node: Node) -> bool:
    """Tell whether a change of the inputs maps to the change of the output without state."""
    return not any(isinstance(n, Aggregate | Window | Latest) for n in walk(node))


def only_grows(node: Node) -> bool:
    """Tell whether rows, once in, never leave: linear over tables that only grow, without joins and clocks."""
    return (
        is_linear(node)
        and not moves(node)
        and all(n.only_grows if isinstance(n, Scan) else not isinstance(n, Join) for n in walk(node))
    )


def moves(node: Node) -> bool:
    """Tell whether the answer changes with as_of alone."""
    return any(isinstance(n, Temporal | Moving) or is_clocked(n) for n in walk(node))


def is_clocked(node: Node) -> bool:
    """Tell whether a projection has values that the clock alone changes."""
    return isinstance(node, Project) and any(clocks.reads_clock(item) for _, item in node.items)


def is_additive(node: Aggregate) -> bool:
    """Tell whether all aggregates add up over changes, and there is a key to add them under.

    The least and the greatest value add up where no row ever leaves.
    """
    grows = only_grows(node.child)
    return bool(node.keys) and all(adds_up(call) or (grows and _is_extreme(call, node)) for _, call in node.items)


def adds_up(call: exp.Expr) -> bool:
    """Tell whether an aggregate call is a sum of some kind."""
    inner = call.this if isinstance(call, exp.Filter) else call
    if isinstance(inner, exp.Count) and inner.expressions:
        return False  # count(a, b)
    return isinstance(inner, ADDITIVE) and not isinstance(inner.this, exp.Distinct)


def _is_extreme(call: exp.Expr, node: Aggregate) -> bool:
    inner = call.this if isinstance(call, exp.Filter) else call
    if not isinstance(inner, exp.Min | exp.Max) or inner.expressions or isinstance(inner.this, exp.Distinct):
        return False
    text = types.of(inner.this, types.of_node(node.child)).text
    # The engines rank NULLs inside of nested values in different ways.
    return text not in ("", "double", "float") and "<" not in text


def reads_everything(node: Node) -> Reason | None:
    """Say why a tick must look at whole tables, however little has changed; None where it need not."""
    for one in walk(node):
        match one:
            case Moving(condition=condition) if not clocks.is_narrow(condition):
                return _by_clock(condition)
            case Project(items=items):
                clocked = next((item for _, item in items if clocks.reads_clock(item)), None)
                if clocked is not None:
                    return _by_clock(clocked)
            case Window(partition=(), items=items):
                line, column = place_of(items[0][1])
                why = "a window function without PARTITION BY ranks the whole table"
                return Reason("SR522", why, "Give it a PARTITION BY, such as the day.", line, column)
            case Aggregate(keys=keys, items=items) if not (
                is_additive(one) or any(_varies(key, one.child) for _, key in keys)
            ):
                line, column = place_of(items[0][1]) if items else (0, 0)
                why = "an aggregate of the whole table that does not add up"
                return Reason("SR526", why, "Group it, or keep sums and counts, which add up.", line, column)
    return None


def _by_clock(expression: exp.Expr) -> Reason:
    line, column = place_of(expression)
    why = f"`{expression.sql('databricks')}` may change with as_of for any row"
    advice = "Compare a bare column with current_timestamp() plus or minus a constant interval, in WHERE."
    return Reason("SR547", why, advice, line, column)


def _varies(key: exp.Expr, child: Node) -> bool:
    """Tell whether a group key reads a column that is no constant."""
    return any(_constant(child, name) is None for name in columns_in(key))


def grain(node: Node) -> tuple[str, ...] | None:
    """Name columns that are unique together, exact copies aside: none for one row at most; None: not known."""
    match node:
        case Scan():
            return node.grain
        case Single():
            return ()
        case Filter() | Temporal() | Moving() | Touched() | Window():
            return grain(node.child)
        case Latest():
            return node.keys
        case Aggregate():
            return tuple(name for name, _ in node.keys)
        case Explode():
            below = grain(node.child)
            return (*below, node.position) if below is not None and node.position else None
        case Project():
            below = grain(node.child)
            names = {item.name: name for name, item in reversed(node.items) if isinstance(item, exp.Column)}
            return tuple(names[key] for key in below) if below is not None and all(k in names for k in below) else None
        case UnionAll(parts=parts):
            return _of_union(parts, node)
        case Join():
            return _of_join(node)


def has_copies(node: Node) -> bool:
    """Tell whether exact copies of a row may stand beside each other although there is a grain."""
    match node:
        case Scan():
            return node.repeats
        case Aggregate() | Latest() | Single():
            return False
        case Join() if node.kind in ("semi", "anti"):
            return has_copies(node.left)
        case _:
            return any(has_copies(child) for child in children(node))


def _of_union(parts: tuple[Node, ...], node: UnionAll) -> tuple[str, ...] | None:
    """A constant that differs from part to part keeps the parts' rows apart."""
    positions: set[tuple[int, ...]] = set()
    for part in parts:
        own = grain(part)
        if own is None:
            return None
        positions.add(tuple(part.columns.index(key) for key in own))
    if len(positions) != 1:
        return None
    keys = [node.columns[position] for position in positions.pop()]
    for index, name in enumerate(node.columns):
        constants = {_constant(part, part.columns[index]) for part in parts}
        if None not in constants and len(constants) == len(parts):
            return tuple(dict.fromkeys([name, *keys]))
    return None


def _constant(node: Node, name: str) -> str | None:
    if isinstance(node, Project):
        item = dict(node.items).get(name)
        if item is None:
            return None
        bare = item.this if isinstance(item, exp.Cast) else item
        if isinstance(bare, exp.Literal):
            return item.sql("databricks")
        return _constant(node.child, item.name) if isinstance(item, exp.Column) else None
    return _constant(node.child, name) if isinstance(node, Filter | Temporal) else None


def _of_join(node: Join) -> tuple[str, ...] | None:
    left, right = grain(node.left), grain(node.right)
    if node.kind in ("semi", "anti"):
        return left
    if left is None or right is None:
        return None
    mine, theirs = types.of_node(node.left), types.of_node(node.right)
    joined = {
        b.name
        for a, b in node.keys
        if isinstance(b, exp.Column) and types.keeps_apart(theirs[b.name], types.of(a, mine))
    }
    return left if set(right) <= joined else (*left, *right)


# What these say of a row depends on how rows that are equal in ORDER BY happen to lie.
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


def check_orders(node: Node) -> None:
    """Refuse window functions over an ORDER BY that leaves ties: which row wins would depend on the engine."""
    for window in (n for n in walk(node) if isinstance(n, Window)):
        for _, item in window.items:
            if needs_total_order(item):
                _check_order(window, item)


def needs_total_order(item: exp.Window) -> bool:
    """Tell whether a window function's answer depends on which of two rows that tie comes first."""
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
    parted = {p.name for p in item.args.get("partition_by") or () if isinstance(p, exp.Column)}
    known = functional_dependencies.by(window.child, ordered | parted)
    unique = grain(window.child)
    missing = [key for key in unique or () if key not in known]
    every = set(window.child.columns) <= known  # then rows that tie are copies of each other
    if every or (unique is not None and not missing):
        return
    advice = (
        f"Add {', '.join(column_names.name(key, window.child) for key in missing)} to the ORDER BY."
        if unique is not None
        else "Declare the `grain` of the input in its contract and order by those columns too."
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
    raise Refusal("SR502", f"{name}() leaves ties: {equal}", advice, item)


def newest_per_key(root: Node) -> Node:
    """Turn `row_number() over (partition by key order by version desc) = 1` over a growing table into Latest."""
    done: dict[int, Node] = {}  # a CTE that is used twice stays one node

    def visit(node: Node) -> Node:
        if id(node) not in done:
            made = with_children(node, tuple(visit(child) for child in children(node)))
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
    latest: Node = Latest(below.child, below.partition, order)
    return _first_again(node.child, latest, name)


def _under_projection(node: Node) -> tuple[Node, dict[str, str]]:
    """Look through projections for a window; map its columns to their names above."""
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
    """Put the projections back over the newest rows, where the rank is always 1."""
    if isinstance(above, Window):
        items = [(c, exp.column(exp.to_identifier(c, quoted=True))) for c in latest.columns]
        return Project(latest, (*items, (rank, exp.Literal.number(1))))
    assert isinstance(above, Project)
    return Project(_first_again(above.child, latest, rank), above.items)
