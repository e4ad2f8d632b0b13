"""Walk, copy and search syntax trees: like sqlglot, without its generators and deep copies. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import TypeVar

from sqlglot import exp

E = TypeVar("E", bound=exp.Expr)
COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
# Aggregates that sqlglot has no class for.
AGGREGATES = frozenset(
    {
        "every", "some", "try_sum", "try_avg", "hll_sketch_agg", "hll_union_agg", "count_min_sketch",
        "histogram_numeric",
        "bitmap_or_agg", "bitmap_construct_agg",
    }
)  # fmt: skip


def nodes(tree: exp.Expr) -> list[exp.Expr]:
    """Return a tree's nodes, parents before children."""
    found = [tree]
    for node in found:  # grows during the loop
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                found.append(value)
            elif type(value) is list:
                found += [part for part in value if isinstance(part, exp.Expr)]
    return found


def every(tree: exp.Expr, *kinds: type[E]) -> list[E]:
    """Return a tree's nodes of some classes, parents before children."""
    return [node for node in nodes(tree) if isinstance(node, kinds)]


def has(tree: exp.Expr, *kinds: type[exp.Expr]) -> bool:
    """Return whether a tree has a node of some class."""
    if isinstance(tree, exp.Column):  # most trees are columns, with identifiers alone below them
        return isinstance(tree, kinds)
    return any(isinstance(node, kinds) for node in nodes(tree))


def chained(tree: exp.Expr, *operators: type[exp.Binary]) -> Iterator[exp.Expr]:
    """Yield the operands of a chain such as `a + b - c`, the last one first.

    A chain is as deep as it is long, and the parser accepts any length: a recursive function can't follow it.

    >>> from sqlglot import parse_one
    >>> [operand.sql() for operand in chained(parse_one("a + 2 * b - c"), exp.Add, exp.Sub)]
    ['c', '2 * b', 'a']
    """
    while isinstance(tree, operators):
        yield tree.expression
        tree = tree.this
    yield tree


def may_be_variable(identifier: exp.Expr) -> bool:
    """Return whether an identifier in a lambda's body can be a variable: not a column's, field's or type's name."""
    match identifier.parent:
        case exp.Dot() | exp.Alias() as above:
            return above.this is identifier
        case exp.PropertyEQ() as above:
            return above.this is not identifier
        case above:
            return not isinstance(above, exp.Column | exp.DataType)


def copied(tree: E) -> E:
    """Return a copy of a tree. The nodes' meta has plain values, which a deep copy would traverse one by one."""
    root = tree.__class__()
    waiting: list[tuple[exp.Expr, exp.Expr]] = [(tree, root)]
    while waiting:
        node, made = waiting.pop()
        if node.comments is not None:
            made.comments = list(node.comments)
        if node._type is not None:
            made._type = deepcopy(node._type)
        if node._meta is not None:
            made._meta = dict(node._meta)
        made._hash = node._hash
        for key, value in node.args.items():
            if isinstance(value, exp.Expr):
                made.args[key] = _below(value, made, key, None, waiting)
            elif type(value) is list:
                made.args[key] = [
                    _below(part, made, key, index, waiting) if isinstance(part, exp.Expr) else part
                    for index, part in enumerate(value)
                ]
            else:
                made.args[key] = value
    return root


def _below(
    node: exp.Expr, above: exp.Expr, key: str, index: int | None, waiting: list[tuple[exp.Expr, exp.Expr]]
) -> exp.Expr:
    """Start the copy of a child node."""
    made = node.__class__()
    made.parent, made.arg_key, made.index = above, key, index
    waiting.append((node, made))
    return made


def place_of(expression: exp.Expr | None) -> tuple[int, int]:
    """Return line and column (from 1) of an expression in the parsed SQL; (0, 0) if unknown."""
    if expression is not None:
        for node in expression.walk(bfs=False):
            if "line" in node.meta:
                # sqlglot's column is that of the last character.
                length = node.meta.get("end", 0) - node.meta.get("start", 0)
                return node.meta["line"], max(node.meta["col"] - length, 1)
    return 0, 0


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is a call of an aggregate function."""
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES)
