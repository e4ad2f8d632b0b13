"""Functional dependencies: columns that a grain, an equality or a constant determines. Pure.

An ORDER BY leaves no tie if it determines the rows' key. In lines joined to their orders, `l_orderkey` determines the
date of the order, so `order by revenue desc, l_orderkey` is a total order over groups of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from sqlrun.incremental import types
from sqlrun.incremental.algebra import Dependency, Node, Type
from sqlrun.incremental.clocks import conjuncts
from sqlrun.incremental.expressions import columns_in


def by(node: Node, columns: Iterable[str]) -> frozenset[str]:
    """Return the columns of a node that `columns` determine, `columns` included."""
    return closed(frozenset(columns), node.dependencies()) & set(node.columns)


def closed(known: frozenset[str], rules: list[Dependency]) -> frozenset[str]:
    """Return all columns that `known` determines by these rules, `known` included.

    This is the attribute closure of relational design theory: apply the rules until nothing is added.
    """
    while True:
        found = {column for needed, column in rules if needed <= known}
        if found <= known:
            return known
        known |= found


def keyed(keys: Iterable[str], node: Node) -> list[Dependency]:
    """Return the dependencies of a key: it determines every column, since rows with equal keys are copies."""
    return [(frozenset(keys), column) for column in node.columns]


def equalities(condition: exp.Expr | None, known: Mapping[str, Type]) -> list[Dependency]:
    """Return the dependencies that a condition's equalities imply for rows where the condition is true."""
    found = [part for part in conjuncts(condition) if isinstance(part, exp.EQ)]
    return [rule for part in found for rule in equal(part.this, part.expression, known)]


def equal(left: exp.Expr, right: exp.Expr, known: Mapping[str, Type]) -> list[Dependency]:
    """Return the dependencies of `left = right`: each bare column depends on what the other side reads.

    A side counts only if the comparison's implicit cast maps no two of its values to one.
    """
    a, b = types.of(left, known), types.of(right, known)
    pairs = [(left, right, b, a), (right, left, a, b)]
    return [
        (frozenset(columns_in(given)), made.name)
        for given, made, own, other in pairs
        if isinstance(made, exp.Column) and types.keeps_apart(own, other)
    ]


def through(items: Iterable[tuple[str, exp.Expr]], child: Node) -> list[Dependency]:
    """Return the dependencies of a projection: the input's under new names, and each column on what it reads.

    Columns of the input keep their dependencies under names that no column can have.
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
