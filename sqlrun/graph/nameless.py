"""A query without the names of its columns: two queries that are equal so differ in names alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from sqlglot import exp

from sqlrun.graph.column_names import Resolved, Symbol
from sqlrun.transpile.dialect import DIALECT
from sqlrun.transpile.trees import copied, every


def nameless(tree: exp.Expr, tables: Mapping[str, Sequence[str]]) -> str:
    """Return a qualified query's text with a number for each column: its place among those of its table or query.

    `tables` has the columns of tables, by names such as `ref.orders`. Names of a struct's fields stay: they are values.
    """
    tree = copied(cast(exp.Expression, tree))
    resolved = Resolved(tree)
    order = {owner: [item.alias_or_name.lower() for item in items] for _, owner, items in resolved.outputs()}
    order |= {name: [column.lower() for column in columns] for name, columns in tables.items()}
    found = [(column.this, _numbered(resolved.symbol(column), order)) for column in every(tree, exp.Column)]
    for _, _, items in resolved.outputs():
        aliases = (item.args.get("alias") for item in items if isinstance(item, exp.Alias))
        found += [(alias, f"_{number}") for number, alias in enumerate(aliases)]
    for node, name in found:
        if name and isinstance(node, exp.Identifier):
            node.set("this", name)
            node.set("quoted", False)
    return tree.sql(DIALECT, comments=False)


def _numbered(symbol: Symbol | None, order: Mapping[str, Sequence[str]]) -> str:
    names = order.get(symbol.owner, ()) if symbol is not None else ()
    return f"_{names.index(symbol.column)}" if symbol is not None and symbol.column in names else ""
