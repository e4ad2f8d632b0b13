"""What can be said of a query's shape: linear, growing, unique, additive. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental.algebra import (
    Aggregate,
    Explode,
    Filter,
    Join,
    Latest,
    Node,
    Project,
    Refusal,
    Scan,
    Temporal,
    Touched,
    UnionAll,
    Window,
    children,
    walk,
    with_children,
)

ADDITIVE = (exp.Sum, exp.Count, exp.CountIf, exp.Avg)


def is_linear(node: Node) -> bool:
    """Tell whether a change of the inputs maps to the change of the output without state."""
    return not any(isinstance(n, Aggregate | Window | Latest) for n in walk(node))


def only_grows(node: Node) -> bool:
    """Tell whether rows, once in, never leave: linear over tables that only grow, without joins and clocks."""
    return is_linear(node) and all(
        n.only_grows if isinstance(n, Scan) else not isinstance(n, Join | Temporal) for n in walk(node)
    )


def moves(node: Node) -> bool:
    """Tell whether the answer changes with as_of alone."""
    return any(isinstance(n, Temporal) for n in walk(node))


def is_additive(node: Aggregate) -> bool:
    """Tell whether all aggregates add up over changes, and there is a key to add them under."""
    return bool(node.keys) and all(_additive_call(call) for _, call in node.items)


def _additive_call(call: exp.Expr) -> bool:
    inner = call.this if isinstance(call, exp.Filter) else call
    if isinstance(inner, exp.Count) and inner.expressions:
        return False  # count(a, b)
    return isinstance(inner, ADDITIVE) and not isinstance(inner.this, exp.Distinct)


def grain(node: Node) -> tuple[str, ...]:
    """Name columns that are unique together, exact copies aside; empty where that is not known."""
    match node:
        case Scan():
            return node.grain
        case Filter() | Temporal() | Touched():
            return grain(node.child)
        case Window():
            return grain(node.child)
        case Latest():
            return node.keys
        case Aggregate():
            return tuple(name for name, _ in node.keys)
        case Explode():
            below = grain(node.child)
            return (*below, node.position) if below and node.position else ()
        case Project():
            below = grain(node.child)
            names = {item.name: name for name, item in reversed(node.items) if isinstance(item, exp.Column)}
            return tuple(names[key] for key in below) if all(key in names for key in below) else ()
        case UnionAll(parts=parts):
            return _of_union(parts, node)
        case Join():
            return _of_join(node)


def _of_union(parts: tuple[Node, ...], node: UnionAll) -> tuple[str, ...]:
    """A constant that differs from part to part keeps the parts' rows apart."""
    grains = [grain(part) for part in parts]
    if not all(grains):
        return ()
    positions = {tuple(part.columns.index(key) for key in own) for part, own in zip(parts, grains, strict=True)}
    if len(positions) != 1:
        return ()
    keys = [node.columns[position] for position in positions.pop()]
    for index, name in enumerate(node.columns):
        constants = {_constant(part, part.columns[index]) for part in parts}
        if None not in constants and len(constants) == len(parts):
            return tuple(dict.fromkeys([name, *keys]))
    return ()


def _constant(node: Node, name: str) -> str | None:
    if isinstance(node, Project):
        item = dict(node.items)[name]
        bare = item.this if isinstance(item, exp.Cast) else item
        if isinstance(bare, exp.Literal):
            return item.sql("databricks")
        return _constant(node.child, item.name) if isinstance(item, exp.Column) else None
    return _constant(node.child, name) if isinstance(node, Filter | Temporal) else None


def _of_join(node: Join) -> tuple[str, ...]:
    left, right = grain(node.left), grain(node.right)
    joined = {b.name for _, b in node.keys if isinstance(b, exp.Column)}
    if left and right and set(right) <= joined:
        return left
    return (*left, *right) if left and right else ()


def check_orders(node: Node) -> None:
    """Refuse row_number() over an ORDER BY that leaves ties: which row wins would depend on the engine."""
    for window in (n for n in walk(node) if isinstance(n, Window)):
        for _, item in window.items:
            if isinstance(item.this, exp.RowNumber):
                _check_order(window, item)


def _check_order(window: Window, item: exp.Window) -> None:
    order = item.args["order"]
    ordered = {o.this.name for o in order.expressions if isinstance(o.this, exp.Column)}
    fixed = {p.name for p in item.args.get("partition_by") or () if isinstance(p, exp.Column)}
    unique = grain(window.child)
    missing = [key for key in unique if key not in ordered | fixed]
    if unique and not missing:
        return
    advice = (
        f"Add {', '.join(missing)} to the ORDER BY."
        if unique
        else "Declare the `grain` of the input in its contract and order by those columns too."
    )
    raise Refusal("SR502", f"row_number() leaves ties: rows equal in {order.sql('databricks')[9:]}", advice, item)


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
    order = tuple((o.this.name, bool(o.args.get("desc"))) for o in item.args["order"].expressions)
    if not all(isinstance(o.this, exp.Column) for o in item.args["order"].expressions):
        return node
    if len(item.args.get("partition_by") or ()) != len(below.partition):
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
