"""Which columns are fixed once others are: by a grain, by an equality, by a constant. Pure.

An ORDER BY leaves no tie where it fixes the rows' key. `l_orderkey` of lines joined to their orders fixes the order's
date, so `order by revenue desc, l_orderkey` is total over groups of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from sqlrun.incremental import types
from sqlrun.incremental.algebra import Dependency, Node, Type
from sqlrun.incremental.clocks import conjuncts
from sqlrun.incremental.expressions import columns_in


def by(node: Node, columns: Iterable[str]) -> frozenset[str]:
    """Return the names of the columns of a node whose values follow from those of `columns`, these included."""
    return closed(frozenset(columns), node.dependencies()) & set(node.columns)


def closed(known: frozenset[str], rules: list[Dependency]) -> frozenset[str]:
    """Return all columns whose values follow from the known ones, these included."""
    while True:
        found = {column for needed, column in rules if needed <= known}
        if found <= known:
            return known
        known |= found


def keyed(keys: Iterable[str], node: Node) -> list[Dependency]:
    """Return what a key says: it fixes every column, as rows that are equal in it are one row or copies of it."""
    return [(frozenset(keys), column) for column in node.columns]


def equalities(condition: exp.Expr | None, known: Mapping[str, Type]) -> list[Dependency]:
    """Return what the equalities of a condition say of the rows for which it is true."""
    found = [part for part in conjuncts(condition) if isinstance(part, exp.EQ)]
    return [rule for part in found for rule in equal(part.this, part.expression, known)]


def equal(left: exp.Expr, right: exp.Expr, known: Mapping[str, Type]) -> list[Dependency]:
    """Of two that are equal, a column follows from what the other reads, if no cast makes unequal values equal."""
    a, b = types.of(left, known), types.of(right, known)
    pairs = [(left, right, b, a), (right, left, a, b)]
    return [
        (frozenset(columns_in(given)), made.name)
        for given, made, own, other in pairs
        if isinstance(made, exp.Column) and types.keeps_apart(own, other)
    ]


def through(items: Iterable[tuple[str, exp.Expr]], child: Node) -> list[Dependency]:
    """Rename the rules of a projection's input, and add that its columns follow from what they are made of.

    Inner columns keep their rules under names that no column has.
    """
    inner = [(frozenset(_inner(c) for c in needed), _inner(column)) for needed, column in child.dependencies()]
    made: list[Dependency] = []
    for name, item in items:
        made.append((frozenset(_inner(c) for c in columns_in(item)), name))
        if isinstance(item, exp.Column):
            made.append((frozenset({name}), _inner(item.name)))
    return inner + made


def _inner(column: str) -> str:
    return f"{column}\0"
