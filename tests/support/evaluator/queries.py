"""Queries over bags: FROM and joins, WHERE, groups, windows, ORDER BY, set operations, CTEs, subqueries."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cmp_to_key

from sqlglot import exp

from tests.support.evaluator import windows
from tests.support.evaluator.expressions import evaluate
from tests.support.evaluator.grouping import grouped, groups
from tests.support.evaluator.scope import Row, Scope, World
from tests.support.evaluator.values import MapValue, Unknown, Value, order

Tuple = tuple[Value, ...]
CLAUSES = {
    "with_", "kind", "expressions", "hint", "distinct", "from_", "joins", "laterals", "where", "group", "having",
    "qualify", "windows", "order", "limit", "offset", "operation_modifiers",
}  # fmt: skip


@dataclass(slots=True)
class Relation:
    """Rows in a bag; they have an order if the query has one."""

    columns: list[str]
    rows: list[Tuple]


@dataclass(slots=True)
class _Tables:
    """The FROM clause so far: the columns of each alias, and the rows."""

    columns: dict[str, list[str]]
    rows: list[Row]


def subquery(node: exp.Expression, scope: Scope) -> Relation:
    """Return the result of a query inside of an expression, for one row of the outer query."""
    return query(node, scope.world, scope.ctes, scope)


def query(node: exp.Expression, world: World, ctes: dict[str, Relation], outer: Scope | None) -> Relation:
    """Return the result of a query."""
    clause = node.args.get("with_")
    if clause is not None:
        ctes = _with(clause, world, ctes, outer)
    match node:
        case exp.Subquery():
            return _limited(node, query(node.this, world, ctes, outer), world, ctes, outer)
        case exp.SetOperation():
            return _limited(node, _combined(node, world, ctes, outer), world, ctes, outer)
        case exp.Select():
            return _select(node, world, ctes, outer)
    raise Unknown(f"{type(node).__name__}: {node.sql('databricks')}")


def _with(clause: exp.With, world: World, ctes: dict[str, Relation], outer: Scope | None) -> dict[str, Relation]:
    if clause.args.get("recursive"):
        raise Unknown("a recursive CTE")
    found = dict(ctes)
    for cte in clause.expressions:
        relation = query(cte.this, world, found, outer)
        names = [c.name for c in cte.args["alias"].columns]
        found[cte.alias] = Relation(names or relation.columns, relation.rows)
    return found


def _combined(node: exp.SetOperation, world: World, ctes: dict[str, Relation], outer: Scope | None) -> Relation:
    left, right = query(node.this, world, ctes, outer), query(node.expression, world, ctes, outer)
    if node.args.get("by_name") or node.args.get("on") or node.args.get("side"):
        raise Unknown(node.sql("databricks"))
    distinct = bool(node.args.get("distinct"))
    if isinstance(node, exp.Union):
        rows = left.rows + right.rows
        return Relation(left.columns, list(dict.fromkeys(rows)) if distinct else rows)
    a, b = Counter(left.rows), Counter(right.rows)
    match node, distinct:
        case exp.Intersect(), True:
            return Relation(left.columns, list(a.keys() & b.keys()))
        case exp.Intersect(), False:
            return Relation(left.columns, list((a & b).elements()))
        case exp.Except(), True:
            return Relation(left.columns, list(a.keys() - b.keys()))
        case exp.Except(), False:
            return Relation(left.columns, list((a - b).elements()))
    raise Unknown(node.sql("databricks"))


# SELECT


def _select(node: exp.Select, world: World, ctes: dict[str, Relation], outer: Scope | None) -> Relation:
    stray = {key for key, value in node.args.items() if value} - CLAUSES
    if stray or node.args.get("kind"):
        raise Unknown(f"{', '.join(sorted(stray)) or node.args['kind']} of a SELECT")
    tables = _from(node, world, ctes, outer)
    scopes = [Scope(world, ctes, row, outer) for row in tables.rows]
    if node.args.get("where"):
        scopes = [s for s in scopes if evaluate(node.args["where"].this, s)]
    if grouped(node):
        scopes = groups(node, scopes, Scope(world, ctes, {}, outer))
        if node.args.get("having"):
            scopes = [s for s in scopes if evaluate(node.args["having"].this, s)]
    elif node.args.get("having"):
        raise Unknown("HAVING without groups")
    named = {w.name: w for w in node.args.get("windows") or ()}
    for window in _windows(node):
        windows.fill(window, named, scopes)
    if node.args.get("qualify"):
        scopes = [s for s in scopes if evaluate(node.args["qualify"].this, s)]
    names = [item.alias_or_name for item in node.expressions]
    rows = [(row, s) for s in scopes for row in _items(node.expressions, s)]
    if node.args.get("distinct"):
        if node.args["distinct"].args.get("on"):
            raise Unknown("DISTINCT ON")
        first: dict[Tuple, Scope] = {}
        for row, scope in rows:
            first.setdefault(row, scope)
        rows = list(first.items())
    return Relation(names, _ordered(node, names, rows))


def _items(items: list[exp.Expression], scope: Scope) -> Iterable[Tuple]:
    """Yield a select list's rows: one, or with explode() one for each element."""
    bare = [item.this if isinstance(item, exp.Alias) else item for item in items]
    if not any(isinstance(item, exp.Explode) for item in bare):
        return [tuple(evaluate(item, scope) for item in items)]
    choices: list[list[Value]] = []
    for item in bare:
        if not isinstance(item, exp.Explode):
            choices.append([evaluate(item, scope)])
        elif isinstance(item, exp.Posexplode):
            raise Unknown(item.sql("databricks"))
        else:
            elements = list(evaluate(item.this, scope) or ())
            choices.append(elements or ([None] if isinstance(item, exp.ExplodeOuter) else []))
    return list(itertools.product(*choices))


def _windows(node: exp.Select) -> Iterable[exp.Window]:
    """Yield the window functions of a SELECT, without those of subqueries."""
    clauses = [*node.expressions, *(node.args[k] for k in ("qualify", "order") if node.args.get(k))]
    for clause in clauses:
        for found in clause.walk(prune=lambda n: isinstance(n, exp.Query)):
            if isinstance(found, exp.Window):
                yield found


def _limited(
    node: exp.Expression, relation: Relation, world: World, ctes: dict[str, Relation], outer: Scope | None
) -> Relation:
    """Apply ORDER BY and LIMIT of a set operation or of a query in parentheses."""
    rows = [(row, Scope(world, ctes, {}, outer)) for row in relation.rows]
    return Relation(relation.columns, _ordered(node, relation.columns, rows))


def _ordered(node: exp.Expression, names: list[str], rows: list[tuple[Tuple, Scope]]) -> list[Tuple]:
    clause = node.args.get("order")
    keys = list(clause.expressions) if clause is not None else []
    if keys:
        by = windows.compare(keys)
        sortable = [([_key(k.this, names, row, scope) for k in keys], row) for row, scope in rows]
        sortable.sort(key=cmp_to_key(lambda a, b: by(a[0], b[0])))
    else:
        by = windows.compare([])
        sortable = [([], row) for row, _ in rows]
    start, end = 0, len(sortable)
    if node.args.get("offset"):
        start = _count(node.args["offset"])
    if node.args.get("limit"):
        end = min(start + _count(node.args["limit"]), end)
    for edge in (start, end):
        if 0 < edge < len(sortable) and start < end:
            (a, left), (b, right) = sortable[edge - 1], sortable[edge]
            if by(a, b) == 0 and order(left, right) != 0:
                raise Unknown("LIMIT between rows that ORDER BY doesn't tell apart")
    return [row for _, row in sortable[start:end]]


def _count(clause: exp.Expression) -> int:
    if not isinstance(clause.expression, exp.Literal):
        raise Unknown(clause.sql("databricks"))
    return int(clause.expression.this)


def _key(node: exp.Expression, names: list[str], row: Tuple, scope: Scope) -> Value:
    if isinstance(node, exp.Literal) and node.is_int:
        return row[int(node.this) - 1]
    if isinstance(node, exp.Column) and not node.table and node.name in names:
        return row[names.index(node.name)]
    return evaluate(node, scope.with_names(dict(zip(names, row, strict=True))))


# FROM


def _from(node: exp.Select, world: World, ctes: dict[str, Relation], outer: Scope | None) -> _Tables:
    clause = node.args.get("from_")
    if clause is None:
        return _Tables({}, [{}])
    tables = _source(clause.this, world, ctes, outer)
    for join in node.args.get("joins") or ():
        tables = _join(tables, join, world, ctes, outer)
    for lateral in node.args.get("laterals") or ():
        tables = _lateral(tables, lateral, Scope(world, ctes, {}, outer))
    return tables


def _source(node: exp.Expression, world: World, ctes: dict[str, Relation], outer: Scope | None) -> _Tables:
    for key in ("pivots", "sample", "version", "when"):
        if node.args.get(key):
            raise Unknown(f"{key} in FROM")
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery) and not node.alias:
        tables = _source(node.this, world, ctes, outer)
    elif isinstance(node, exp.Paren):
        return _source(node.this, world, ctes, outer)
    else:
        tables = _rows_of(node, world, ctes, outer)
    for join in node.args.get("joins") or ():
        tables = _join(tables, join, world, ctes, outer)
    for lateral in node.args.get("laterals") or ():
        tables = _lateral(tables, lateral, Scope(world, ctes, {}, outer))
    return tables


def _rows_of(node: exp.Expression, world: World, ctes: dict[str, Relation], outer: Scope | None) -> _Tables:
    match node:
        case exp.Table() if node.db:
            relation = world.tables[node.name]
        case exp.Table() if isinstance(node.this, exp.Identifier):
            if node.name not in ctes:
                raise Unknown(f"table {node.name}")
            relation = ctes[node.name]
        case exp.Subquery():
            relation = query(node, world, ctes, outer)
        case exp.Values():
            scope = Scope(world, ctes, {}, outer)
            rows = [tuple(evaluate(e, scope) for e in row.expressions) for row in node.expressions]
            relation = Relation([f"col{n}" for n in range(1, len(rows[0]) + 1)], rows)
        case _:
            raise Unknown(f"{type(node).__name__} in FROM: {node.sql('databricks')}")
    alias = node.alias_or_name
    given = node.args.get("alias")
    columns = [c.name for c in given.columns] if given is not None and given.columns else relation.columns
    return _Tables({alias: columns}, [{(alias, n): v for n, v in zip(columns, r, strict=True)} for r in relation.rows])


def _join(left: _Tables, join: exp.Join, world: World, ctes: dict[str, Relation], outer: Scope | None) -> _Tables:
    if isinstance(join.this, exp.Lateral):
        return _lateral_join(left, join, world, ctes, outer)
    if join.args.get("using") or join.method:
        raise Unknown(f"join {join.sql('databricks')}")
    right = _source(join.this, world, ctes, outer)
    return _joined(left, [right.rows] * len(left.rows), right.columns, join, Scope(world, ctes, {}, outer), right.rows)


def _joined(
    left: _Tables,
    candidates: list[list[Row]],
    right: dict[str, list[str]],
    join: exp.Join,
    scope: Scope,
    all_right: list[Row],
) -> _Tables:
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if side not in ("", "LEFT", "RIGHT", "FULL") or kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI"):
        raise Unknown(f"join {join.sql('databricks')}")
    condition = join.args.get("on")
    nothing: Row = {(alias, name): None for alias, names in right.items() for name in names}
    empty: Row = {(alias, name): None for alias, names in left.columns.items() for name in names}
    rows: list[Row] = []
    met_right: set[int] = set()
    for row, others in zip(left.rows, candidates, strict=True):
        met = False
        for other in others:
            both = row | other
            if condition is not None and not evaluate(condition, Scope(scope.world, scope.ctes, both, scope.outer)):
                continue
            met = True
            met_right.add(id(other))
            if kind not in ("SEMI", "ANTI"):
                rows.append(both)
        if (kind == "SEMI" and met) or (kind == "ANTI" and not met):
            rows.append(row)
        elif side in ("LEFT", "FULL") and not met and kind not in ("SEMI", "ANTI"):
            rows.append(row | nothing)
    if side in ("RIGHT", "FULL"):
        if kind in ("SEMI", "ANTI"):
            raise Unknown(f"join {join.sql('databricks')}")
        rows.extend(empty | other for other in all_right if id(other) not in met_right)
    columns = left.columns if kind in ("SEMI", "ANTI") else left.columns | right
    return _Tables(columns, rows)


def _lateral_join(
    left: _Tables, join: exp.Join, world: World, ctes: dict[str, Relation], outer: Scope | None
) -> _Tables:
    lateral = join.this
    if isinstance(lateral.this, exp.Explode):
        if join.side or join.args.get("on"):
            raise Unknown(f"join {join.sql('databricks')}")
        return _lateral(left, lateral, Scope(world, ctes, {}, outer))
    if not isinstance(lateral.this, exp.Subquery) or join.side in ("RIGHT", "FULL"):
        raise Unknown(f"join {join.sql('databricks')}")
    alias, columns = lateral.alias, list(lateral.this.this.named_selects)
    candidates = []
    for row in left.rows:
        found = query(lateral.this, world, ctes, Scope(world, ctes, row, outer))
        candidates.append([{(alias, n): v for n, v in zip(columns, r, strict=True)} for r in found.rows])
    return _joined(left, candidates, {alias: columns}, join, Scope(world, ctes, {}, outer), [])


def _lateral(tables: _Tables, lateral: exp.Lateral, scope: Scope) -> _Tables:
    call, alias = lateral.this, lateral.args["alias"]
    if not isinstance(call, exp.Explode):
        raise Unknown(lateral.sql("databricks"))
    keep = bool(lateral.args.get("outer")) or isinstance(call, exp.ExplodeOuter | exp.PosexplodeOuter)
    with_position = isinstance(call, exp.Posexplode)
    names = [c.name for c in alias.columns]
    rows: list[Row] = []
    for row in tables.rows:
        value = evaluate(call.this, Scope(scope.world, scope.ctes, row, scope.outer))
        pairs = isinstance(value, MapValue)
        found = [(*((n,) if with_position else ()), *(v if pairs else (v,))) for n, v in enumerate(value or ())]
        if not found and keep:
            found = [(None,) * len(names)]
        for values in found:
            if len(values) != len(names):
                raise Unknown(lateral.sql("databricks"))
            rows.append(row | {(alias.name, n): v for n, v in zip(names, values, strict=True)})
    return _Tables(tables.columns | {alias.name: names}, rows)
