"""Translate a qualified tree to operators, or refuse it and name the construct. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental import clocks, types
from sqlrun.incremental.algebra import Node
from sqlrun.incremental.expressions import column, columns_in, substitute
from sqlrun.incremental.operators.aggregate import Aggregate
from sqlrun.incremental.operators.explode import Explode
from sqlrun.incremental.operators.filter import Filter
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.operators.union_all import UnionAll
from sqlrun.incremental.operators.window import Window
from sqlrun.incremental.translate import clock_filters, subqueries
from sqlrun.incremental.translate.comma_joins import joined
from sqlrun.incremental.translate.exists import settled
from sqlrun.incremental.translate.from_clause import Context, Env, Resolve, plain, tables, unused
from sqlrun.incremental.translate.group_by import Items, aggregates, grouped
from sqlrun.incremental.translate.window_functions import windowed
from sqlrun.incremental.window_orders import LIMITS
from sqlrun.transpile.refusals import Refusal

Conditions = dict[str, exp.Expr]


def translate(tree: exp.Expr, resolve: Resolve) -> Node:
    """Return the operators of a qualified query.

    Raises: `Refusal` (SR51x) for what has no operator, such as recursive CTEs and LIMIT without a total order.
    """
    return _query(settled(joined(tree)), Context(resolve, {}, _query))


def _query(tree: exp.Expr, context: Context) -> Node:
    context = _with_ctes(tree, context)
    match tree:
        case exp.Subquery():
            return _first(_ordered(tree, inner := _query(tree.this, context)), inner)
        case exp.SetOperation():
            return _first(_ordered(tree, inner := _set_operation(tree, context)), inner)
        case exp.Select():
            return _select(tree, context)
        case _:
            raise Refusal("SR510", f"{tree.key.upper()} can't be maintained incrementally", "Write a SELECT.", tree)


def _set_operation(tree: exp.SetOperation, context: Context) -> Node:
    """Return UNION, INTERSECT or EXCEPT; all but UNION ALL count the copies of a row on each side.

    UNION DISTINCT, INTERSECT and EXCEPT aren't linear, as they depend on the number of copies. An aggregate counts the
    copies, and its state is maintained like any other.
    """
    sides = [_query(side, context) for side in (tree.left, tree.right)]
    if tree.args.get("by_name") or tree.args.get("side") or tree.args.get("on"):
        raise Refusal(
            "SR511", f"{tree.key.upper()} BY NAME isn't supported", "List the columns in the same order.", tree
        )
    distinct = bool(tree.args.get("distinct"))
    if isinstance(tree, exp.Union):
        union = UnionAll(tuple(part for side in sides for part in _flatten(side)))
        if not distinct:
            return union
        return Aggregate(union, tuple((c, column(c)) for c in union.columns), ())
    return _counted(sides, distinct, both=isinstance(tree, exp.Intersect))


def _counted(sides: list[Node], distinct: bool, *, both: bool) -> Node:
    """Return INTERSECT or EXCEPT, from the number of copies of each row on the left and on the right."""
    names = sides[0].columns  # the names on both sides: parsing renames the columns of each branch to the first one's
    left, right = unused("_left", names), unused("_right", names)
    parts = []
    for side, ones in zip(sides, ((1, 0), (0, 1)), strict=True):
        own = tuple((c, column(c)) for c in side.columns)
        marks = tuple((mark, exp.Literal.number(n)) for mark, n in zip((left, right), ones, strict=True))
        parts.append(Project(side, (*own, *marks)))
    calls = tuple((mark, exp.Sum(this=column(mark))) for mark in (left, right))
    counted = Aggregate(UnionAll(tuple(parts)), tuple((c, column(c)) for c in names), calls)
    zero = exp.Literal.number(0)
    if distinct:
        on_right = exp.GT(this=column(right), expression=zero) if both else exp.EQ(this=column(right), expression=zero)
        node: Node = Filter(counted, exp.and_(exp.GT(this=column(left), expression=zero.copy()), on_right))
    else:
        # INTERSECT ALL has least(left, right) copies of a row, EXCEPT ALL left - right; a series repeats the row.
        copies = (
            exp.func("least", column(left), column(right))
            if both
            else exp.Sub(this=column(left), expression=column(right))
        )
        number, copy = unused("_copies", names), unused("_copy", names)
        own = tuple((c, column(c)) for c in names)
        many = Filter(Project(counted, (*own, (number, copies))), exp.GT(this=column(number), expression=zero.copy()))
        series = exp.GenerateSeries(start=exp.Literal.number(1), end=column(number))
        node = Explode(many, series, copy, unused("_position", (*names, copy)))
    return Project(node, tuple((c, column(c)) for c in names))


def _flatten(node: Node) -> tuple[Node, ...]:
    return node.parts if isinstance(node, UnionAll) else (node,)


def _with_ctes(tree: exp.Expr, context: Context) -> Context:
    clause = tree.args.get("with_") or tree.args.get("with")
    if clause is None:
        return context
    if clause.args.get("recursive"):
        raise Refusal("SR512", "recursive CTEs aren't supported", "Write a CTE for each level.", clause)
    ctes: dict[str, Node] = dict(context.ctes)
    for cte in clause.expressions:
        ctes[cte.alias] = _query(cte.this, Context(context.resolve, ctes, _query))
    return Context(context.resolve, ctes, _query)


def _ordered(tree: exp.Expr, node: Node, keys: list[exp.Expr] | None = None) -> Node:
    """Return the first rows of ORDER BY .. LIMIT; ORDER BY alone has no effect on a table.

    `keys` are the sort keys over the node's columns; None: as the query names them, by its own columns.
    """
    for key in ("sort", "cluster", "distribute"):
        if tree.args.get(key) is not None:
            raise Refusal("SR513", f"{key.upper()} BY", "Remove it: tables have no order.", tree.args[key])
    order, limit, offset = (tree.args.get(key) for key in ("order", "limit", "offset"))
    if limit is None and offset is None:
        return node
    if order is None:
        why = "LIMIT without ORDER BY selects arbitrary rows"
        raise Refusal("SR504", why, "Add ORDER BY over columns that make the order unique.", limit or offset)
    place = column(unused("_place", node.columns))
    skipped = offset.expression.copy() if offset is not None else exp.Literal.number(0)
    bounds: list[exp.Expr] = [exp.GT(this=place, expression=skipped)]
    if limit is not None:
        last = exp.Add(this=skipped.copy(), expression=limit.expression.copy())
        bounds.append(exp.LTE(this=place.copy(), expression=last))
    written = []
    for number, one in enumerate(order.expressions):
        made = one.copy()
        made.set("this", keys[number].copy() if keys is not None else _own_column(one.this, node))
        named = one.find(exp.Identifier, exp.Literal)
        if named is not None:
            made.this.meta.update(named.meta)
        written.append(made)
    # LIMIT is a filter on the position, so a row that shifts others in or out is an ordinary change of a window
    # function.
    window = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=written))
    window.meta[LIMITS] = True
    return Filter(Window(node, (), ((place.name, window),)), exp.and_(*bounds))


def _first(ranked: Node, node: Node) -> Node:
    return ranked if ranked is node else Project(ranked, tuple((c, column(c)) for c in node.columns))


def _own_column(key: exp.Expr, node: Node) -> exp.Expr:
    """Return the output column that ORDER BY names, by its name or its number."""
    if isinstance(key, exp.Literal) and key.is_int and int(key.name) <= len(node.columns):
        return column(node.columns[int(key.name) - 1])
    if isinstance(key, exp.Column) and key.name in node.columns:
        return column(key.name)
    text = key.sql("databricks")
    raise Refusal(
        "SR513",
        f"ORDER BY {text} with LIMIT can't be maintained incrementally",
        "Order by columns of the select list.",
        key,
    )


def _order_keys(tree: exp.Select, raw: Items) -> Conditions:
    """Return the sort keys of ORDER BY .. LIMIT, as expressions over the query's input."""
    order = tree.args.get("order")
    if order is None or (tree.args.get("limit") is None and tree.args.get("offset") is None):
        return {}
    items = dict(raw)
    keys: Conditions = {}
    for number, one in enumerate(order.expressions):
        key = one.this
        if isinstance(key, exp.Literal) and key.is_int and int(key.name) <= len(raw):
            key = raw[int(key.name) - 1][1]
        elif isinstance(key, exp.Column) and not key.table and key.name in items:
            key = items[key.name]
        keys[f"_order_{number}"] = key
    return keys


def _select(tree: exp.Select, context: Context) -> Node:
    node, env = tables(tree, context)
    where = tree.args.get("where")
    # In SQL's order of evaluation: WHERE, GROUP BY, HAVING, window functions, QUALIFY, DISTINCT, ORDER BY with LIMIT.
    node = subqueries.filtered(node, env, where.this if where is not None else None, context)
    raw = tuple((item.alias_or_name, _unalias(item)) for item in tree.expressions)
    if tree.args.get("group") is None:
        node, raw = _exploded(node, raw, env)
    distinct = tree.args.get("distinct")
    clauses = {key: tree.args[key].this for key in ("having", "qualify") if tree.args.get(key)}
    if distinct is None:
        clauses |= _order_keys(tree, raw)
    if tree.args.get("group") is not None or _has_aggregates([*dict(raw).values(), *clauses.values()]):
        node, items, conditions = _groups(tree, node, env, raw, clauses, context)
    else:
        node, items = _valued(node, raw, env, context)
        node, pairs = _valued(node, tuple(clauses.items()), env, context)
        conditions = dict(pairs)
        if "having" in conditions:
            node = clock_filters.filtered(node, conditions["having"])
    node, items, conditions = windowed(_named_windows(tree, env), node, items, conditions)
    if "qualify" in conditions:
        node = clock_filters.filtered(node, conditions["qualify"])
    if distinct is None:
        keys = [condition for key, condition in conditions.items() if key.startswith("_order_")]
        return Project(_ordered(tree, node, keys), items)
    if distinct.args.get("on") is not None:
        raise Refusal("SR513", "DISTINCT ON isn't supported", "Rank with row_number() and QUALIFY.", distinct)
    rows = Project(node, items)
    # DISTINCT is an aggregate without calls: its state counts the copies of each row (`_n`), so that the row leaves
    # with the last copy.
    once = Aggregate(rows, tuple((name, column(name)) for name in rows.columns), ())
    return _first(_ordered(tree, once), once)


def _exploded(node: Node, raw: Items, env: Env) -> tuple[Node, Items]:
    """Replace explode in the select list by LATERAL VIEW: at most one, as in Spark."""
    done: list[tuple[str, exp.Expr]] = []
    for name, item in raw:
        if isinstance(item, exp.Explode) and not isinstance(item, exp.Posexplode):
            if isinstance(node, Explode) and node.element.startswith("_exploded"):
                raise Refusal(
                    "SR515", "two generators in one select list aren't supported", "Use LATERAL VIEW for each.", item
                )
            if clocks.reads_clock(item):
                raise clocks.no_rule(item)
            element, position = unused("_exploded", node.columns), unused("_position", node.columns)
            outer = isinstance(item, exp.ExplodeOuter)
            array = plain(item.this, env)
            if types.of(array, node.types()).text.startswith("map"):
                why = "explode() of a map returns two columns, but has one alias"
                raise Refusal("SR553", why, "Use `lateral view explode(map_entries(x)) e as entry`.", item)
            node = Explode(node, array, element, position, outer)
            done.append((name, exp.column(element)))
        else:
            done.append((name, item))
    return node, tuple(done)


def _unalias(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) else item


def _valued(node: Node, items: Items, env: Env, context: Context) -> tuple[Node, Items]:
    """Return expressions over a node, with their subqueries joined to it."""
    done = []
    for name, item in items:
        if subqueries.holds(item):
            node, written = subqueries.values(node, item, lambda part: plain(part, env), context)
        else:
            written = plain(item, env)
        done.append((name, written))
    return node, tuple(done)


def _groups(
    tree: exp.Select, node: Node, env: Env, raw: Items, clauses: Conditions, context: Context
) -> tuple[Node, Items, Conditions]:
    """Group, then join subqueries to the groups: those of HAVING, and those of items outside the aggregates."""

    def write(part: exp.Expr) -> exp.Expr:
        return plain(part, env)

    under = next((key for key in _grouping(tree) if subqueries.holds(key)), None)
    if under is not None:
        advice = "Move the subquery to a column of a CTE, and group by the column."
        raise Refusal("SR514", "a subquery in GROUP BY can't be maintained incrementally", advice, under)
    inside = next((c for _, item in raw for c in aggregates(item) if subqueries.holds(c)), None)
    if inside is not None:
        advice = "Move the subquery to a column of a CTE, and aggregate the column."
        raise Refusal("SR514", "a subquery inside an aggregate can't be maintained incrementally", advice, inside)
    with_subqueries = {name: item for name, item in (*raw, *clauses.items()) if subqueries.holds(item)}
    items = tuple((name, write(subqueries.left_out(item))) for name, item in raw)
    conditions = {key: write(subqueries.left_out(condition)) for key, condition in clauses.items()}
    node, pulled, over, groups = grouped(tree.args.get("group"), node, items, conditions, write)
    for name, item in with_subqueries.items():
        node, value = subqueries.values(
            node, item, lambda part: groups.pull(write(part)), context, filters=name in clauses
        )
        stray = columns_in(value) - set(node.columns)
        if stray:
            why = f"`{name}` reads {', '.join(sorted(stray))}, which is neither grouped nor aggregated"
            raise Refusal("SR519", why, "Add it to GROUP BY, or use an aggregate function.", item)
        pulled = tuple((n, value if n == name else i) for n, i in pulled)
        over = {key: value if key == name else condition for key, condition in over.items()}
    having = over.pop("having", None)
    return clock_filters.filtered(node, having) if having is not None else node, pulled, over


def _grouping(tree: exp.Select) -> list[exp.Expr]:
    group = tree.args.get("group")
    if group is None:
        return []
    # A number in GROUP BY is the position of a column in the select list.
    numbered = [tree.selects[int(key.name) - 1] for key in group.expressions if isinstance(key, exp.Literal)
                and key.is_int and 1 <= int(key.name) <= len(tree.selects)]  # fmt: skip
    return [group, *numbered]


def _has_aggregates(expressions: list[exp.Expr]) -> bool:
    return any(aggregates(expression) for expression in expressions)


def _named_windows(tree: exp.Select, env: Env) -> dict[str, exp.Expr]:
    """Return the windows of a WINDOW clause by name."""
    return {w.name.lower(): plain(w, env) for w in tree.args.get("windows") or ()}


def inline(items: Items, below: Items) -> Items:
    """Merge two projections: the outer one's expressions over the inner one's inputs."""
    return tuple((name, substitute(item, dict(below))) for name, item in items)
