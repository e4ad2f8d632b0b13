"""A qualified tree to operators, or a refusal that names the construct. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from sqlrun.incremental import windows
from sqlrun.incremental.algebra import (
    Aggregate,
    Explode,
    Filter,
    Join,
    Node,
    Project,
    Refusal,
    UnionAll,
    Window,
    column,
    columns_in,
    substitute,
)

# Where a query's tables come from: (database, name) -> node; `ref` tables, sources, views written out.
Resolve = Callable[[str, str], Node]
Env = dict[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class _Context:
    resolve: Resolve
    ctes: Mapping[str, Node]


def translate(tree: exp.Expr, resolve: Resolve) -> Node:
    """Turn a qualified query into operators.

    Raises: `Refusal` (SR51x) for what has no operator: subqueries in expressions, right and full joins,
    ORDER BY and LIMIT, recursive CTEs, grouping sets, intersect and except.
    """
    return _query(tree, _Context(resolve, {}))


def _query(tree: exp.Expr, context: _Context) -> Node:
    context = _with_ctes(tree, context)
    _no_order(tree)
    match tree:
        case exp.Subquery():
            return _query(tree.this, context)
        case exp.Union():
            parts = tuple(_query(side, context) for side in (tree.left, tree.right))
            flat = tuple(p for part in parts for p in _flatten(part))
            union = UnionAll(flat)
            if tree.args.get("distinct"):
                return Aggregate(union, tuple((c, column(c)) for c in union.columns), ())
            return union
        case exp.SetOperation():
            raise Refusal("SR511", f"{tree.key.upper()} has no rule yet", "Write a join or a union.", tree)
        case exp.Select():
            return _select(tree, context)
        case _:
            raise Refusal("SR510", f"{tree.key.upper()} has no rule", "Write a SELECT.", tree)


def _flatten(node: Node) -> tuple[Node, ...]:
    return node.parts if isinstance(node, UnionAll) else (node,)


def _with_ctes(tree: exp.Expr, context: _Context) -> _Context:
    clause = tree.args.get("with_") or tree.args.get("with")
    if clause is None:
        return context
    if clause.args.get("recursive"):
        raise Refusal("SR512", "a recursive CTE has no incremental rule", "Write the levels out.", clause)
    ctes = dict(context.ctes)
    for cte in clause.expressions:
        ctes[cte.alias] = _query(cte.this, _Context(context.resolve, ctes))
    return _Context(context.resolve, ctes)


def _no_order(tree: exp.Expr) -> None:
    for key in ("order", "limit", "offset", "sort", "cluster", "distribute"):
        clause = tree.args.get(key)
        if clause is not None:
            raise Refusal(
                "SR513",
                f"{key.upper()} BY or LIMIT on a table's rows" if key == "order" else f"{key.upper()}",
                "A table has no order: rank with row_number() and keep the first rows with QUALIFY.",
                clause,
            )


def _select(tree: exp.Select, context: _Context) -> Node:
    node, env = _from(tree, context)

    def plain(expression: exp.Expr) -> exp.Expr:
        return _plain(expression, env)

    where = tree.args.get("where")
    if where is not None:
        node = windows.filtered(node, plain(where.this))
    items = tuple((item.alias_or_name, plain(_unalias(item))) for item in tree.expressions)
    conditions = {key: plain(tree.args[key].this) for key in ("having", "qualify") if tree.args.get(key)}
    if tree.args.get("group") is not None or _has_aggregates([*dict(items).values(), *conditions.values()]):
        node, items, conditions = _grouped(tree, node, items, conditions, plain)
    if "having" in conditions:
        node = Filter(node, conditions["having"])
    node, items, conditions = _windowed(node, items, conditions)
    if "qualify" in conditions:
        node = Filter(node, conditions["qualify"])
    node = Project(node, items)
    if tree.args.get("distinct") is not None:
        return Aggregate(node, tuple((name, column(name)) for name in node.columns), ())
    return node


def _unalias(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) else item


def _plain(expression: exp.Expr, env: Env) -> exp.Expr:
    """Replace `table.column` by the input's own column name."""
    found = expression.find(exp.Query)
    if found is not None:
        raise Refusal(
            "SR514",
            "a subquery inside an expression has no incremental rule yet",
            "Join the other table, or count its rows in a CTE and join that.",
            found,
        )
    generator = next((e for e in expression.find_all(exp.Explode, exp.UDTF)), None)
    if generator is not None:
        raise Refusal(
            "SR515",
            "explode in the select list has no rule",
            "Write `lateral view explode(array) as element`.",
            generator,
        )

    def swap(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            key = (node.table, node.name)
            replacement = column(env.get(key, node.name))
            replacement.this.meta.update(node.this.meta)
            return replacement
        return node

    return expression.copy().transform(swap, copy=False)


def _from(tree: exp.Select, context: _Context) -> tuple[Node, Env]:
    clause = tree.args.get("from_") or tree.args.get("from")
    if clause is None:
        raise Refusal("SR516", "a SELECT without FROM", "Keep constant rows in a seed.", tree)
    node, env = _source(clause.this, context)
    for join in tree.args.get("joins") or ():
        node, env = _join(node, env, join, context)
    for lateral in tree.args.get("laterals") or ():
        node, env = _lateral(node, env, lateral)
    return node, env


def _source(source: exp.Expr, context: _Context) -> tuple[Node, Env]:
    alias = source.alias_or_name
    if isinstance(source, exp.Subquery):
        node = _query(source.this, context)
    elif isinstance(source, exp.Table):
        if not source.db and source.name in context.ctes:
            node = context.ctes[source.name]
        else:
            node = context.resolve(source.db, source.name)
    else:
        raise Refusal("SR517", f"{source.key.upper()} in FROM", "Read a ref, a CTE or a subquery.", source)
    for key in ("pivots", "sample"):
        if source.args.get(key):
            raise Refusal("SR517", f"{key.upper().rstrip('S')} in FROM", "Write it as a query.", source)
    env = {(alias, name): name for name in node.columns}
    if isinstance(source, exp.Table):
        for lateral in source.args.get("laterals") or ():
            node, env = _lateral(node, env, lateral)
    return node, env


def _lateral(node: Node, env: Env, lateral: exp.Expr) -> tuple[Node, Env]:
    call = lateral.this
    if not isinstance(lateral, exp.Lateral) or not isinstance(call, exp.Explode):
        raise Refusal("SR515", "only LATERAL VIEW explode and posexplode have a rule", "", lateral)
    alias = lateral.args["alias"]
    names = [identifier.name for identifier in alias.columns]
    with_position = isinstance(call, exp.Posexplode)
    if len(names) != (2 if with_position else 1):
        raise Refusal("SR515", "LATERAL VIEW needs its column names", "Write `as position, element`.", lateral)
    table = alias.name
    unique = [_unused(name, node.columns) for name in names]
    exploded = Explode(
        node,
        _plain(call.this, env),
        element=unique[-1],
        position=unique[0] if with_position else "",
        outer=bool(lateral.args.get("outer")) or isinstance(call, exp.ExplodeOuter | exp.PosexplodeOuter),
    )
    return exploded, env | {(table, name): new for name, new in zip(names, unique, strict=True)}


def _unused(name: str, taken: tuple[str, ...]) -> str:
    while name in taken:
        name += "_"
    return name


def _join(node: Node, env: Env, join: exp.Join, context: _Context) -> tuple[Node, Env]:
    if isinstance(join.this, exp.Lateral):
        return _lateral(node, env, join.this)
    kind = _join_kind(join)
    right, right_env = _source(join.this, context)
    alias = join.this.alias_or_name
    renamed = {
        name: _unused(f"{alias}__{name}" if name in node.columns else name, node.columns) for name in right.columns
    }
    if any(new != name for name, new in renamed.items()):
        right = Project(right, tuple((new, column(name)) for name, new in renamed.items()))
    both = env | {key: renamed[name] for key, name in right_env.items()}
    condition = join.args.get("on")
    equalities, rest = _equalities(_plain(condition, both) if condition is not None else None, node, right)
    return Join(node, right, kind, equalities, rest), both


def _join_kind(join: exp.Join) -> Literal["inner", "left"]:
    side, kind = (join.side or "").lower(), (join.kind or "").lower()
    if join.args.get("using") or join.method:
        raise Refusal("SR518", "NATURAL join", "Name the columns in ON.", join)
    match side, kind:
        case ("", "" | "inner" | "cross"):
            return "inner"
        case ("left", "" | "outer"):
            return "left"
        case _:
            word = " ".join(part for part in (side, kind) if part).upper()
            raise Refusal("SR518", f"{word} JOIN has no rule yet", "Write an inner or a left join.", join)


def _equalities(
    condition: exp.Expr | None, left: Node, right: Node
) -> tuple[tuple[tuple[exp.Expr, exp.Expr], ...], exp.Expr | None]:
    """Part a join condition into left = right keys and the rest."""
    keys: list[tuple[exp.Expr, exp.Expr]] = []
    rest: list[exp.Expr] = []
    for part in windows.conjuncts(condition):
        found = _equality(part, set(left.columns), set(right.columns))
        if found is not None:
            keys.append(found)
        else:
            rest.append(part)
    return tuple(keys), exp.and_(*rest, copy=False) if rest else None


def _equality(part: exp.Expr, left: set[str], right: set[str]) -> tuple[exp.Expr, exp.Expr] | None:
    if not isinstance(part, exp.EQ):
        return None
    a, b = columns_in(part.this), columns_in(part.expression)
    if a and b and a <= left and b <= right:
        return part.this, part.expression
    if a and b and a <= right and b <= left:
        return part.expression, part.this
    return None


def _has_aggregates(expressions: list[exp.Expr]) -> bool:
    return any(_aggregates(expression) for expression in expressions)


def _aggregates(expression: exp.Expr) -> list[exp.AggFunc]:
    """List the aggregate calls, but not those that are window functions."""
    return [
        call
        for call in expression.find_all(exp.AggFunc)
        if not isinstance(call.parent, exp.Window)
        and not (isinstance(call.parent, exp.Filter) and isinstance(call.parent.parent, exp.Window))
        and call.find_ancestor(exp.AggFunc) is None
    ]


Items = tuple[tuple[str, exp.Expr], ...]
Conditions = dict[str, exp.Expr]


def _grouped(
    tree: exp.Select,
    node: Node,
    items: Items,
    conditions: Conditions,
    plain: Callable[[exp.Expr], exp.Expr],
) -> tuple[Node, Items, Conditions]:
    group = tree.args.get("group")
    keys = _group_keys(group, items, plain)
    calls: dict[str, tuple[str, exp.Expr]] = {}

    def pull(expression: exp.Expr) -> exp.Expr:
        def swap(part: exp.Expr) -> exp.Expr:
            for name, key in keys:
                if part == key:
                    return column(name)
            call = part.this if isinstance(part, exp.Filter) else part
            is_window = isinstance(part.parent, exp.Window) and part.arg_key == "this"
            if isinstance(call, exp.AggFunc) and not is_window:
                text = part.sql("databricks")
                name = calls.setdefault(text, (_call_name(part, items, keys, calls), part))[0]
                return column(name)
            return part

        return expression.copy().transform(swap, copy=False)

    pulled = tuple((name, pull(item)) for name, item in items)
    pulled_conditions = {key: pull(condition) for key, condition in conditions.items()}
    node = Aggregate(node, keys, tuple(calls.values()))
    allowed = set(node.columns)
    for name, item in pulled:
        stray = columns_in(item) - allowed
        if stray:
            raise Refusal(
                "SR519",
                f"`{name}` reads {', '.join(sorted(stray))}, which is neither grouped nor aggregated",
                "Put it under GROUP BY or into an aggregate function.",
                item,
            )
    return node, pulled, pulled_conditions


def _group_keys(
    group: exp.Group | None,
    items: Items,
    plain: Callable[[exp.Expr], exp.Expr],
) -> Items:
    if group is None:
        return ()
    for clause in ("grouping_sets", "rollup", "cube", "totals"):
        if group.args.get(clause):
            raise Refusal("SR520", "grouping sets have no rule yet", "Write a UNION ALL of groupings.", group)
    if group.args.get("all"):
        return tuple((name, item) for name, item in items if not _aggregates(item))
    keys: list[tuple[str, exp.Expr]] = []
    for position, raw in enumerate(group.expressions):
        key = plain(raw)
        if isinstance(key, exp.Literal) and key.is_int:
            key = items[int(key.name) - 1][1]
        named = next((name for name, item in items if item == key), None)
        if named is None:
            named = key.name if isinstance(key, exp.Column) else f"_key_{position + 1}"
        keys.append((named, key))
    return tuple(keys)


def _call_name(call: exp.Expr, items: Items, keys: Items, calls: Mapping[str, tuple[str, object]]) -> str:
    """Name an aggregate after the column that it is, else by number."""
    taken = {name for name, _ in keys} | {name for name, _ in calls.values()}
    for name, item in items:
        if item == call and name not in taken:
            return name
    return f"_agg_{len(calls) + 1}"


def _windowed(node: Node, items: Items, conditions: Conditions) -> tuple[Node, Items, Conditions]:
    found: dict[str, exp.Window] = {}
    for expression in (*(item for _, item in items), *conditions.values()):
        for window in expression.find_all(exp.Window):
            found.setdefault(window.sql("databricks"), window)
    if not found:
        return node, items, conditions
    node, partition = windows.partitioned(node, list(found.values()))
    names = {text: f"_window_{n + 1}" for n, text in enumerate(found)}
    node = Window(node, partition, tuple((names[text], window) for text, window in found.items()))

    def pull(expression: exp.Expr) -> exp.Expr:
        def swap(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Window):
                return column(names[part.sql("databricks")])
            return part

        return expression.copy().transform(swap, copy=False)

    return (
        node,
        tuple((name, pull(item)) for name, item in items),
        {key: pull(condition) for key, condition in conditions.items()},
    )


def inline(items: Items, below: Items) -> Items:
    """Merge two projections: the outer one's expressions over the inner one's inputs."""
    return tuple((name, substitute(item, dict(below))) for name, item in items)
