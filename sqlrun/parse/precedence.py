"""Refuse operators without brackets where Spark and the parser disagree about precedence. Pure.

In Spark a predicate, such as `a in (1)` or `a is null`, binds less tightly than a comparison, and no second predicate
may follow it. In the parser it binds more tightly, and any number may follow. Spark also has its own precedence of
operators on bits, texts and sums.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlrun.transpile.dialect import SPELLED
from sqlrun.transpile.trees import COMPARISONS, every

_PREDICATES = (
    *COMPARISONS, exp.In, exp.Is, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Not, exp.Exists, exp.Escape,
)  # fmt: skip
_OF_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.DPipe)
HINT = "Put parentheses around the part to evaluate first."


def found(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str, str]]:
    """Yield operators that Spark parses in another order, or not at all: (node, why, what to write instead)."""
    for node in every(tree, *_PREDICATES):
        if _is_operator(node) and not isinstance(node, exp.Not | exp.Exists):
            for part in _beside(node):
                if isinstance(part, _PREDICATES) and _is_operator(part):
                    yield part, "two predicates without parentheses, which Spark reads in another order", HINT
                    break
    for node in every(tree, *_OF_BITS):
        if _is_operator(node) and any(_is_looser(part, node) for part in (node.this, node.expression)):
            yield node, "operators without parentheses, which Spark reads in another order", HINT


def _is_operator(node: exp.Expr) -> bool:
    """Return whether a node was written as an operator; a call needs no brackets."""
    if isinstance(node, exp.Exists):
        return node.args.get("expression") is None
    return not node.meta.get(SPELLED)


def _beside(node: exp.Expr) -> list[exp.Expr]:
    parts = [node.args.get(key) for key in ("this", "expression", "low", "high")]
    if isinstance(node, exp.Like | exp.ILike) and isinstance(node.expression, exp.Any | exp.All):
        parts = [node.this]
    # `like .. escape` is one predicate, and NOT belongs to the predicate that it negates.
    own = node.this.this if isinstance(node, exp.Escape) else None
    return [part for part in ([own] if own is not None else parts) if isinstance(part, exp.Expr)]


def _is_looser(part: exp.Expr, node: exp.Expr) -> bool:
    if isinstance(node, exp.DPipe) and part is node.expression and isinstance(part, exp.Add | exp.Sub):
        return True
    return isinstance(part, _OF_BITS) and type(part) is not type(node) and _is_operator(part)
