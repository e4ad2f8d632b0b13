"""GROUP BY: keys, GROUPING SETS, ROLLUP, CUBE and ALL."""

from __future__ import annotations

from itertools import combinations, product

from sqlglot import exp

from tests.support.evaluator.aggregates import is_aggregate
from tests.support.evaluator.expressions import evaluate
from tests.support.evaluator.scope import Group, Scope
from tests.support.evaluator.values import Unknown, Value

Keys = list[exp.Expression]


def grouped(node: exp.Select) -> bool:
    """Return whether a SELECT groups: by a clause, or by an aggregate without one."""
    clauses = [*node.expressions, *(node.args[k] for k in ("having", "qualify", "order") if node.args.get(k))]
    return node.args.get("group") is not None or any(_aggregates(clause) for clause in clauses)


def _aggregates(clause: exp.Expression) -> bool:
    for found in clause.walk(prune=lambda n: isinstance(n, exp.Query)):
        if is_aggregate(found) and not _is_window_call(found):
            return True
    return False


def _is_window_call(node: exp.Expression) -> bool:
    parent, key = node.parent, node.arg_key
    while isinstance(parent, exp.Filter | exp.IgnoreNulls) and key == "this":
        parent, key = parent.parent, parent.arg_key
    return isinstance(parent, exp.Window) and key == "this"


def groups(node: exp.Select, scopes: list[Scope], nothing: Scope) -> list[Scope]:
    """Return one scope for each group of rows."""
    clause = node.args.get("group")
    if clause is None:
        return [_scope(nothing, Group(scopes, {}, {}))]
    sets = _sets(node, clause)
    keys: Keys = []
    for one in sets:
        keys.extend(k for k in one if k not in keys)
    if clause.expressions:
        keys = _in_order(clause, keys)
    places = _places(node, keys)
    made = []
    for one in sets:
        present = [key in one for key in keys]
        parts: dict[tuple[Value, ...], list[Scope]] = {}
        for scope in scopes:
            found = tuple(evaluate(k, scope) if p else None for k, p in zip(keys, present, strict=True))
            parts.setdefault(found, []).append(scope)
        made.extend(_scope(nothing, _group(rows, keys, values, present, places)) for values, rows in parts.items())
    return made


def _scope(nothing: Scope, group: Group) -> Scope:
    return Scope(nothing.world, nothing.ctes, {}, nothing.outer, group)


def _group(
    rows: list[Scope], keys: Keys, values: tuple[Value, ...], present: list[bool], places: dict[int, int]
) -> Group:
    columns = {(k.table, k.name): v for k, v in zip(keys, values, strict=True) if isinstance(k, exp.Column)}
    bits = 0
    for is_in in present:
        bits = bits * 2 + (not is_in)
    absent = {node for node, place in places.items() if not present[place]}
    return Group(rows, {node: values[place] for node, place in places.items()}, columns, absent, bits)


def _places(node: exp.Select, keys: Keys) -> dict[int, int]:
    """Return the grouping keys by the nodes that name them, in clauses after the grouping."""
    found = {}
    clauses = [*node.expressions, *(node.args[k] for k in ("having", "qualify", "order") if node.args.get(k))]
    for clause in clauses:
        for part in clause.walk(prune=lambda n: isinstance(n, exp.Query) or id(n) in found):
            if _in_aggregate(part, clause):
                continue
            for place, key in enumerate(keys):
                if type(part) is type(key) and part == key:
                    found[id(part)] = place
                    break
    return found


def _in_aggregate(node: exp.Expression, top: exp.Expression) -> bool:
    """Return whether a node is an argument of an aggregate, where it has the value of each row, not of the group."""
    while node is not top and node.parent is not None:
        node = node.parent
        if is_aggregate(node) and not _is_window_call(node) and not isinstance(node, exp.Grouping | exp.GroupingId):
            return True
        if isinstance(node, exp.Filter) and not _is_window_call(node):
            return True
    return False


def _sets(node: exp.Select, clause: exp.Group) -> list[Keys]:
    """Return the grouping sets of a GROUP BY clause."""
    if clause.args.get("all"):
        return [[_bare(item) for item in node.expressions if not _aggregates(item)]]
    if clause.args.get("totals"):
        raise Unknown("GROUP BY WITH TOTALS")
    elements: list[list[Keys]] = []
    plain = [
        _positioned(node, e) for e in clause.expressions if not isinstance(e, exp.GroupingSets | exp.Rollup | exp.Cube)
    ]
    tails = [(key, part) for key in ("grouping_sets", "rollup", "cube") for part in clause.args.get(key) or ()]
    if tails:
        ((key, part),) = tails
        if key == "grouping_sets":
            return _expanded(part)
        return _steps(plain) if key == "rollup" else _subsets(plain)
    for element in clause.expressions:
        elements.append(
            _expanded(element)
            if isinstance(element, exp.GroupingSets | exp.Rollup | exp.Cube)
            else [[_positioned(node, element)]]
        )
    return [_merged(choice) for choice in product(*elements)]


def _merged(choice: tuple[Keys, ...]) -> Keys:
    found: Keys = []
    for keys in choice:
        found.extend(k for k in keys if k not in found)
    return found


def _bare(item: exp.Expression) -> exp.Expression:
    return item.this if isinstance(item, exp.Alias) else item


def _positioned(node: exp.Select, key: exp.Expression) -> exp.Expression:
    if isinstance(key, exp.Literal) and key.is_int:
        return _bare(node.expressions[int(key.this) - 1])
    return key


def _expanded(part: exp.Expression) -> list[Keys]:
    match part:
        case exp.GroupingSets():
            return [keys for element in part.expressions for keys in _expanded(element)]
        case exp.Rollup():
            return _steps([_listed(e) for e in part.expressions])
        case exp.Cube():
            return _subsets([_listed(e) for e in part.expressions])
        case _:
            return [_listed(part)]


def _listed(element: exp.Expression) -> Keys:
    match element:
        case exp.Tuple():
            return list(element.expressions)
        case exp.Paren():
            return [element.this]
    return [element]


def _flat(elements: list[Keys] | Keys) -> Keys:
    return [k for e in elements for k in (e if isinstance(e, list) else [e])]


def _steps(elements: list[Keys] | Keys) -> list[Keys]:
    return [_flat(list(elements[:size])) for size in range(len(elements), -1, -1)]


def _subsets(elements: list[Keys] | Keys) -> list[Keys]:
    sizes = range(len(elements), -1, -1)
    return [_flat(list(chosen)) for size in sizes for chosen in combinations(elements, size)]


def _in_order(clause: exp.Group, keys: Keys) -> Keys:
    """Return keys in the order of GROUP BY, the order of the bits of grouping_id()."""
    named = [part for e in clause.expressions for part in e.walk() if any(part == k for k in keys)]
    result: Keys = []
    for part in named:
        if part in keys and part not in result:
            result.append(part)
    return [*result, *(k for k in keys if k not in result)]
