"""Subqueries inside expressions to joins: EXISTS, IN and scalar subqueries. Pure.

In WHERE, `exists` and `in` are semi joins and their negations anti joins. Elsewhere, and for scalar subqueries, the
aggregates of the subquery are grouped by its correlated columns (one row for the whole table if there are none) and
left joined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from sqlrun.incremental import clocks, types
from sqlrun.incremental.algebra import Node
from sqlrun.incremental.expressions import column, columns_in, substitute
from sqlrun.incremental.operators.aggregate import Aggregate
from sqlrun.incremental.operators.join import Join
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.translate import clock_filters, in_over_nulls
from sqlrun.incremental.translate.from_clause import Context, Env, apart, joined_by, plain, tables
from sqlrun.incremental.translate.group_by import Groups, aggregates, of_none, whole
from sqlrun.runtime.text_table import counted
from sqlrun.transpile.refusals import Refusal
from sqlrun.transpile.trees import copied, has

Write = Callable[[exp.Expr], exp.Expr]
ADVICE = "Join the other table, or group it in a CTE and join the CTE."


@dataclass(frozen=True, slots=True)
class _Inner:
    """A subquery's rows, its select list over them, and its correlated conditions."""

    node: Node
    items: tuple[exp.Expr, ...]
    ties: tuple[exp.Expr, ...]


def holds(expression: exp.Expr) -> bool:
    """Return whether an expression contains a subquery."""
    return has(expression, exp.Query)


def filtered(node: Node, env: Env, condition: exp.Expr | None, context: Context, write: Write | None = None) -> Node:
    """Return a node under a WHERE condition: first the conjuncts without subqueries."""
    written: Write = write or (lambda part: plain(part, env))
    # Fewer rows reach the joins that subqueries become.
    parts = clocks.conjuncts(condition)
    simple = [written(part) for part in parts if not holds(part)]
    if simple:
        node = clock_filters.filtered(node, exp.and_(*simple, copy=False))
    for part in parts:
        if holds(part):
            node = _condition(node, part, written, context)
    return node


def _condition(node: Node, part: exp.Expr, write: Write, context: Context) -> Node:
    negated, test = _bare(part)
    if isinstance(test, exp.Exists) and isinstance(test.this, exp.Query | exp.Subquery):
        inner = _inner(test.this, context)
        return _matched(node, inner, "anti" if negated else "semi", [], write)
    if isinstance(test, exp.In) and test.args.get("query") is not None and not holds(test.this):
        inner = _inner(test.args["query"], context)
        return _matched(node, inner, "anti" if negated else "semi", _operands(test, inner), write)
    columns = node.columns
    node, value = values(node, part, write, context, filters=True)
    filtered_rows = clock_filters.filtered(node, value)
    return Project(filtered_rows, tuple((name, column(name)) for name in columns))


def _bare(part: exp.Expr) -> tuple[bool, exp.Expr]:
    negated = False
    while isinstance(part, exp.Not | exp.Paren):
        negated ^= isinstance(part, exp.Not)
        part = part.this
    return negated, part


def _operands(test: exp.In, inner: _Inner) -> list[tuple[exp.Expr, exp.Expr]]:
    outer = list(test.this.expressions) if isinstance(test.this, exp.Tuple) else [test.this]
    if len(outer) != len(inner.items):
        raise Refusal("SR514", f"IN compares {len(outer)} with {counted(len(inner.items), 'column')}", ADVICE, test)
    if inner.ties and any(aggregates(item) or has(item, exp.Window) for item in inner.items):
        why = "IN over an aggregate or window function in a correlated subquery can't be maintained incrementally"
        raise Refusal("SR514", why, "Compare with one value: x = (select max(y) from ...).", test)
    return list(zip(outer, inner.items, strict=True))


def _matched(node: Node, inner: _Inner, kind: str, operands: list[tuple[exp.Expr, exp.Expr]], write: Write) -> Node:
    """Return the rows with (semi) or without (anti) a partner.

    In NOT IN a comparison with NULL counts as a match: `x not in (..., null)` is never true.
    """
    right, renamed = apart(node, inner.node, "inner")
    outer_known, inner_known = node.types(), inner.node.types()
    parts = [_tied(tie, renamed, write) for tie in inner.ties]
    for own, other in operands:
        mine, theirs = write(own), _renamed(other, renamed)
        # x NOT IN (S) is true only if x <> s is true for every s: `x = s` and a NULL comparison both remove the row. An
        # anti join removes matches, so NULL has to match, too.
        equal: exp.Expr = exp.EQ(this=mine, expression=theirs)
        if kind == "anti":
            if types.of(mine, outer_known).nullable:
                equal = exp.Or(this=equal, expression=exp.Is(this=exp.paren(mine), expression=exp.null()))
            if types.of(other, inner_known).nullable:
                equal = exp.Or(this=equal, expression=exp.Is(this=exp.paren(theirs), expression=exp.null()))
        parts.append(exp.paren(equal) if isinstance(equal, exp.Or) else equal)
    condition = exp.and_(*parts, copy=False) if parts else None
    return joined_by(node, right, "semi" if kind == "semi" else "anti", condition)


def _renamed(expression: exp.Expr, renamed: dict[str, str]) -> exp.Expr:
    def swap(node: exp.Expr) -> exp.Expr:
        return column(renamed[node.name]) if isinstance(node, exp.Column) and node.name in renamed else node

    return copied(expression).transform(swap, copy=False)


def _tied(tie: exp.Expr, renamed: dict[str, str], write: Write) -> exp.Expr:
    """Return a condition over both sides; outer columns keep their table until here."""

    def swap(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            return write(node) if node.table else column(renamed[node.name])
        return node

    return tie.copy().transform(swap, copy=False)


def _inner(query: exp.Expr, context: Context) -> _Inner:
    """Translate a subquery and separate its correlated conditions.

    In those, inner columns have lost their table's name and outer ones have kept it.
    """
    while isinstance(query, exp.Subquery):
        query = query.this
    outer = _outer_columns(query)
    if not outer:
        node = context.query(query, context)
        return _Inner(node, tuple(column(name) for name in node.columns), ())
    select = _simple(query, outer)
    node, env = tables(select, context)
    own: list[exp.Expr] = []
    # Conditions over an outer column become join conditions; all others filter the inner rows before the join.
    ties: list[exp.Expr] = []
    for part in clocks.conjuncts(select.args["where"].this if select.args.get("where") else None):
        tied = any(id(c) in outer for c in part.find_all(exp.Column))
        if tied and holds(part):
            raise Refusal(
                "SR514", "a subquery inside a correlated subquery can't be maintained incrementally", ADVICE, part
            )
        (ties if tied else own).append(part)
    node = filtered(node, env, exp.and_(*own) if own else None, context)
    items = tuple(plain(_unalias(item), env) for item in select.expressions)
    return _Inner(node, items, tuple(_inner_plain(tie, env, outer) for tie in ties))


def _unalias(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) else item


def _inner_plain(tie: exp.Expr, env: Env, outer: set[int]) -> exp.Expr:
    marks = {id(c) for c in tie.find_all(exp.Column) if id(c) in outer}

    def visit(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            return node.copy() if id(node) in marks else plain(node, env)
        made = node.copy()
        for key, value in node.args.items():
            if isinstance(value, exp.Expr):
                made.set(key, visit(value))
            elif isinstance(value, list):
                made.set(key, [visit(v) if isinstance(v, exp.Expr) else v for v in value])
        return made

    return visit(tie)


def _outer_columns(query: exp.Expr) -> set[int]:
    """Return the ids of a subquery's columns that belong to an enclosing query."""
    found = set()
    for one in query.find_all(exp.Column):
        if not one.table:
            continue
        node: exp.Expr | None = one
        while node is not None:
            if isinstance(node, exp.Select) and one.table in _aliases(node):
                break
            node = node.parent if node is not query else None
        if node is None:
            found.add(id(one))
    return found


def _aliases(select: exp.Select) -> set[str]:
    clause = select.args.get("from_") or select.args.get("from")
    sources = [clause.this] if clause is not None else []
    sources += [join.this for join in select.args.get("joins") or ()]
    names = {source.alias_or_name for source in sources}
    laterals = list(select.args.get("laterals") or ())
    for source in sources:
        laterals += source.args.get("laterals") or ()
    return names | {lateral.alias for lateral in laterals}


def _simple(query: exp.Expr, outer: set[int]) -> exp.Select:
    """Return a correlated subquery as a SELECT. Raise SR514 for a form without a rule."""
    allowed = {"expressions", "from", "from_", "joins", "where", "laterals", "distinct", "hint", "kind"}
    if isinstance(query, exp.Select):
        other = next((key for key, value in query.args.items() if value and key not in allowed), None)
        place = query.args.get("where")
        inside = {id(c) for c in place.find_all(exp.Column)} if place is not None else set()
        if other is None and outer <= inside:
            return query
    raise Refusal(
        "SR514",
        "a correlated subquery may read the outer row only in WHERE, without GROUP BY, HAVING or LIMIT",
        ADVICE,
        query,
    )


def values(
    node: Node, expression: exp.Expr, write: Write, context: Context, *, filters: bool = False
) -> tuple[Node, exp.Expr]:
    """Join the results of an expression's subqueries. Return the node and the expression over the joined rows.

    `filters`: the expression is a condition, where NULL is equivalent to false.
    """
    holder = exp.Paren(this=copied(expression))
    marks: dict[str, exp.Expr] = {}
    while (found := _next(holder)) is not None:
        null_is_visible = not (filters and _only_filters(found, holder))
        node, value = _value(node, found, write, context, null_is_visible)
        mark = f"_subquery_{len(marks) + 1}"
        marks[mark] = value
        found.replace(column(mark))
    if holds(holder):
        raise Refusal(
            "SR514", "this kind of subquery can't be maintained incrementally", ADVICE, holder.find(exp.Query)
        )
    return node, substitute(write(holder.this), marks)


def left_out(expression: exp.Expr) -> exp.Expr:
    """Return an expression with NULL for its subqueries and the left operand for IN, so that its aggregates show."""
    holder = exp.Paren(this=copied(expression))
    while (found := _next(holder)) is not None:
        found.replace(found.this if isinstance(found, exp.In) else exp.null())
    result: exp.Expr = holder.this
    return result


def _next(holder: exp.Expr) -> exp.Expr | None:
    tests = holder.find_all(exp.Exists, exp.In, exp.Subquery, bfs=False)
    return next((found for found in tests if _is_test(found)), None)


def _is_test(found: exp.Expr) -> bool:
    match found:
        case exp.Exists():
            return isinstance(found.this, exp.Query | exp.Subquery)
        case exp.In():
            return found.args.get("query") is not None
        case _:
            return not isinstance(found.parent, exp.In | exp.Exists | exp.From | exp.Join)


def _only_filters(found: exp.Expr, holder: exp.Expr) -> bool:
    """Return whether only AND, OR and NOT enclose a part of a condition."""
    above = found.parent
    while above is not holder and isinstance(above, exp.And | exp.Or | exp.Not | exp.Paren):
        above = above.parent
    return above is holder


def _value(node: Node, found: exp.Expr, write: Write, context: Context, null_is_visible: bool) -> tuple[Node, exp.Expr]:
    match found:
        case exp.Exists():
            inner = _inner(found.this, context)
            node, (count,) = _joined(node, inner, (("_rows", exp.Count(this=exp.Star())),), write, found)
            return node, exp.GT(this=count, expression=exp.Literal.number(0))
        case exp.In():
            return _membership(node, found, write, context, null_is_visible)
        case _:
            return _scalar(node, found, write, context)


def _membership(
    node: Node, test: exp.In, write: Write, context: Context, null_is_visible: bool
) -> tuple[Node, exp.Expr]:
    """Return `x in (query)` with its three values: true, false, or NULL if a NULL decides.

    If the NULL would be visible, raise SR505: Spark returns false there, SQL and DuckDB return NULL.
    """
    if holds(test.this) or isinstance(test.this, exp.Tuple):
        raise Refusal("SR514", "this IN can be maintained incrementally only in WHERE", ADVICE, test)
    inner = _inner(test.args["query"], context)
    ((own, item),) = _operands(test, inner)
    counts = (("_rows", exp.Count(this=exp.Star())), ("_known", exp.Count(this=item)))
    node, (rows, known) = _joined(node, inner, counts, write, test)
    mine = write(own)
    if null_is_visible and (types.of(mine, node.types()).nullable or types.of(item, inner.node.types()).nullable):
        raise Refusal("SR505", in_over_nulls.WHY, in_over_nulls.INSTEAD, test)
    # Three counts decide the result as SQL defines it: all inner rows, non-NULL rows, and equal rows.
    equal = _Inner(inner.node, inner.items, (*inner.ties, exp.EQ(this=own.copy(), expression=item)))
    node, (met,) = _joined(node, equal, (("_met", exp.Count(this=exp.Star())),), write, test)
    zero = exp.Literal.number(0)
    answer = (
        exp.case()
        .when(exp.EQ(this=rows, expression=zero), exp.false())
        .when(exp.Is(this=exp.paren(mine), expression=exp.null()), exp.null())
        .when(exp.GT(this=met, expression=zero), exp.true())
        .when(exp.LT(this=known, expression=rows), exp.null())
        .else_(exp.false())
    )
    return node, answer


def _scalar(node: Node, found: exp.Expr, write: Write, context: Context) -> tuple[Node, exp.Expr]:
    """Return the value of a subquery that has one column and at most one row."""
    inner = _inner(found, context)
    if len(inner.items) != 1:
        raise Refusal("SR514", "a scalar subquery returns more than one column", ADVICE, found)
    (item,) = inner.items
    if not inner.ties:
        # The grain () proves that the subquery has at most one row.
        if inner.node.grain() != ():
            why = "a scalar subquery may return several rows"
            raise Refusal("SR514", why, "Aggregate it, for example max(x).", found)
        right, renamed = apart(node, inner.node, "value")
        return Join(node, right, "left", ()), column(renamed[item.name])
    if not aggregates(item):
        raise Refusal("SR514", "a scalar subquery may return several rows", "Aggregate it, for example max(x).", found)
    groups = Groups((), (), ())
    over = groups.pull(item)
    if columns_in(over) - {name for name, _ in groups.calls.values()}:
        raise Refusal("SR519", "a subquery combines an aggregate with a column that is not grouped", ADVICE, found)
    calls = tuple(groups.calls.values())
    node, parts = _joined(node, inner, calls, write, found)
    named = {name: part for (name, _), part in zip(calls, parts, strict=True)}

    def swap(part: exp.Expr) -> exp.Expr:
        return named[part.name].copy() if isinstance(part, exp.Column) else part

    return node, over.transform(swap, copy=False)


def _joined(
    node: Node, inner: _Inner, calls: tuple[tuple[str, exp.Expr], ...], write: Write, at: exp.Expr
) -> tuple[Node, list[exp.Expr]]:
    """Join aggregates of a subquery's rows, grouped by its correlated columns. Return the node and their values."""
    if not inner.ties:
        # Without correlation there is one row for the whole table, even over no rows: a cross join with one row.
        made = whole(inner.node, calls)
        right, renamed = apart(node, made, "value")
        return Join(node, right, "inner", ()), [column(renamed[name]) for name, _ in calls]
    keys, pairs = [], []
    for number, tie in enumerate(inner.ties):
        mine, theirs = _sides(tie, at)
        keys.append((f"_tie_{number + 1}", theirs))
        pairs.append((write(mine), f"_tie_{number + 1}"))
    grouped = Aggregate(inner.node, tuple(keys), calls)
    right, renamed = apart(node, grouped, "value")
    # A left join: an outer row without inner rows has no group.
    joined = Join(node, right, "left", tuple((mine, column(renamed[name])) for mine, name in pairs))
    return joined, [of_none(call, column(renamed[name])) for name, call in calls]


def _sides(tie: exp.Expr, at: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Split `inner = outer` into its outer and its inner side. Raise SR514 for another form."""
    if isinstance(tie, exp.EQ):
        for mine, theirs in ((tie.this, tie.expression), (tie.expression, tie.this)):
            outer = [bool(c.table) for c in mine.find_all(exp.Column)]
            inner = [not c.table for c in theirs.find_all(exp.Column)]
            if outer and all(outer) and inner and all(inner):
                return mine, theirs
    why = "a correlated scalar subquery must compare with the outer row by equality"
    raise Refusal("SR514", why, ADVICE, at)
