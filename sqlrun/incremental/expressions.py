"""Expressions over an operator's input: columns by name, without a table. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlrun.transpile.trees import copied, every


def column(name: str) -> exp.Column:
    """Return a reference to a column of the input."""
    return exp.Column(this=exp.Identifier(this=name, quoted=True))


def columns_in(expression: exp.Expr) -> frozenset[str]:
    """Return the names of the input columns that an expression reads."""
    return frozenset([c.name for c in every(expression, exp.Column)])


def substitute(expression: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return a copy of an expression with columns replaced by `values`; other columns stay."""

    def swap(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in values:
            value = values[node.name].copy()
            needs_parens = isinstance(value, exp.Binary | exp.Case)
            return exp.paren(value, copy=False) if needs_parens else value
        return node

    return copied(expression).transform(swap, copy=False)
