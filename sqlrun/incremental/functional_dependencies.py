"""Which columns are fixed once others are: by a grain, by an equality, by a constant. Pure.

An ORDER BY leaves no tie where it fixes the rows' key. `l_orderkey` of lines joined to their orders fixes the order's
date, so `order by revenue desc, l_orderkey` is total over groups of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from sqlrun.incremental import types
from sqlrun.incremental.algebra import (
    Aggregate,
    Explode,
    Filter,
    Join,
    Latest,
    Moving,
    Node,
    Project,
    Scan,
    Single,
    Temporal,
    Touched,
    Type,
    UnionAll,
    Window,
    columns_in,
)
from sqlrun.incremental.clocks import conjuncts

# (these columns, that one): rows equal in the first are equal in the second.
Rule = tuple[frozenset[str], str]


def by(node: Node, columns: Iterable[str]) -> frozenset[str]:
    """Name the columns of a node whose values follow from those of `columns`, these included."""
    return _closed(frozenset(columns), _rules(node)) & set(node.columns)


def _closed(known: frozenset[str], rules: list[Rule]) -> frozenset[str]:
    while True:
        found = {column for needed, column in rules if needed <= known}
        if found <= known:
            return known
        known |= found


def _rules(node: Node) -> list[Rule]:
    match node:
        case Scan():
            return _keyed(node.grain, node) if node.grain is not None else []
        case Single():
            return _keyed((), node)
        case Filter():
            return [*_rules(node.child), *_equalities(node.condition, types.of_node(node.child))]
        case Temporal() | Moving() | Touched() | Window():
            return _rules(node.child)
        case Latest():
            return [*_rules(node.child), *_keyed(node.keys, node)]
        case Aggregate():
            return [*_through(node.keys, node.child), *_keyed([name for name, _ in node.keys], node)]
        case Project():
            return _through(node.items, node.child)
        case Explode():
            own = _rules(node.child)
            array = frozenset(columns_in(node.array))
            return [*own, (array | {node.position}, node.element)] if node.position else own
        case Join():
            return _of_join(node)
        case UnionAll():
            return []


def _keyed(keys: Iterable[str], node: Node) -> list[Rule]:
    return [(frozenset(keys), column) for column in node.columns]


def _equalities(condition: exp.Expr | None, known: Mapping[str, Type]) -> list[Rule]:
    found = [part for part in conjuncts(condition) if isinstance(part, exp.EQ)]
    return [rule for part in found for rule in _equal(part.this, part.expression, known)]


def _equal(left: exp.Expr, right: exp.Expr, known: Mapping[str, Type]) -> list[Rule]:
    """Of two that are equal, a column follows from what the other reads, if no cast makes unequal values equal."""
    a, b = types.of(left, known), types.of(right, known)
    pairs = [(left, right, b, a), (right, left, a, b)]
    return [
        (frozenset(columns_in(given)), made.name)
        for given, made, own, other in pairs
        if isinstance(made, exp.Column) and types.keeps_apart(own, other)
    ]


def _through(items: Iterable[tuple[str, exp.Expr]], child: Node) -> list[Rule]:
    """Rename the rules of a projection's input, and add that its columns follow from what they are made of.

    Inner columns keep their rules under names that no column has.
    """
    inner = [(frozenset(_inner(c) for c in needed), _inner(column)) for needed, column in _rules(child)]
    made: list[Rule] = []
    for name, item in items:
        made.append((frozenset(_inner(c) for c in columns_in(item)), name))
        if isinstance(item, exp.Column):
            made.append((frozenset({name}), _inner(item.name)))
    return inner + made


def _inner(column: str) -> str:
    return f"{column}\0"


def _of_join(node: Join) -> list[Rule]:
    left = _rules(node.left)
    if node.kind in ("semi", "anti"):
        return left
    right = _rules(node.right)
    known = {**types.of_node(node.left), **types.of_node(node.right)}
    ties = [rule for a, b in node.keys for rule in _equal(a, b, known)]
    if node.kind == "inner":
        return [*left, *right, *ties, *_equalities(node.condition, known)]
    # Where the keys of a left join fix the right row, so that a left row meets one or none, the left side fixes all.
    # What else the right rows say of each other need not hold for the NULLs beside them.
    needed = frozenset(c for a, _ in node.keys for c in columns_in(a)) | (
        columns_in(node.condition) & set(node.left.columns) if node.condition is not None else frozenset()
    )
    if set(node.right.columns) <= _closed(needed, [*ties, *right]):
        return [*left, *((needed, column) for column in node.right.columns)]
    return left
