"""Break ties between rows that should be copies but aren't, by their content. Pure.

A table whose rows may repeat promises that rows of one grain are exact copies, so a window function's ORDER BY over the
grain leaves no ties that matter. A source may break that promise with two lines of one key and version and different
content. Then the winner would depend on an engine's order of reading. Here the columns that the query uses are appended
to the ORDER BY, so that the result depends on the set of rows alone, in each tick and in the whole query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from sqlrun.incremental.window_orders import needs_total_order
from sqlrun.parse.parse import REF, Query
from sqlrun.project import Model


def settled(query: Query, models: Mapping[str, Model], views: Mapping[str, Query]) -> exp.Expr:
    """Return a query's tree with ties decided by content; the original tree if no rows may repeat."""
    read = list(_read(query, models, views))
    if not any(model.repeats for model in read):
        return query.tree
    # Types without an order can't decide; a column's name is enough to leave it out.
    unordered = {c.name for model in read for c in model.columns if "map<" in c.type or "variant" in c.type}
    tree = query.tree.copy()
    for window in list(tree.find_all(exp.Window)):
        _settle(window, unordered)
    return tree


def _read(query: Query, models: Mapping[str, Model], views: Mapping[str, Query]) -> Iterator[Model]:
    """Yield the models whose rows a query reads, through views."""
    for table in query.tree.find_all(exp.Table):
        if table.db == REF and table.name in models:
            yield models[table.name]
        if table.db == REF and table.name in views:
            yield from _read(views[table.name], models, views)


def _settle(window: exp.Window, unordered: set[str]) -> None:
    order, select = window.args.get("order"), window.parent_select
    if order is None or select is None or select.args.get("group") is not None or not needs_total_order(window):
        return
    spec = window.args.get("spec")
    if spec is not None and (spec.args.get("kind") or "").upper() == "RANGE":
        return  # the frame's bounds are distances in the one column of its order
    fixed = {_name(o.this) for o in order.expressions} | {_name(p) for p in window.args.get("partition_by") or ()}
    used = {_name(c): c for c in select.find_all(exp.Column) if c.table and c.parent_select is select}
    for name, column in used.items():
        if name not in fixed and column.name not in unordered:
            order.append("expressions", exp.Ordered(this=column.copy(), desc=True, nulls_first=False))


def _name(column: exp.Expr) -> tuple[str, str] | None:
    return (column.table, column.name) if isinstance(column, exp.Column) else None
