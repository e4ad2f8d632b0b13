"""Refuse IN over a subquery where its NULL result would be visible, unless no compared value is NULL. Pure.

`subqueries.py` checks queries with operators while it translates them. This module checks queries without operators,
whose text the engines run whole: Spark returns false where SQL and DuckDB return NULL.
"""

from __future__ import annotations

from typing import cast

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from sqlrun.incremental.translate.from_clause import Resolve
from sqlrun.parse.scopes import Scopes, scopes_of, selects, source_of
from sqlrun.transpile.refusals import Refusal
from sqlrun.transpile.trees import every, has

SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)
WHY = "the result of IN with NULLs differs between engines, and a compared value may be NULL"
INSTEAD = "Use exists(...), or coalesce() on both sides, so that no value is NULL."


def check(tree: exp.Expr, resolve: Resolve) -> None:
    """Raise SR505 for the first IN of a qualified query whose NULL would be distinguished from false."""
    tests = [test for test in every(tree, exp.In) if isinstance(test.args.get("query"), exp.Query)]
    visible = [test for test in tests if not only_filters(test)]
    if not visible:
        return
    known = _Known(scopes_of(cast(exp.Query, tree)), resolve)
    for test in visible:
        if not known.compares_values(test):
            raise Refusal("SR505", WHY, INSTEAD, test)


def only_filters(test: exp.Expr) -> bool:
    """Return whether a test is a condition of WHERE, HAVING or QUALIFY, or an operand of AND, OR and NOT in one."""
    above = test.parent
    while isinstance(above, exp.And | exp.Or | exp.Not | exp.Paren):
        above = above.parent
    return isinstance(above, exp.Where | exp.Having | exp.Qualify)


class _Known:
    """What contracts and a query's text imply about NULLs."""

    def __init__(self, scopes: Scopes, resolve: Resolve) -> None:
        self.scopes, self.resolve = scopes, resolve

    def compares_values(self, test: exp.In) -> bool:
        """Return whether neither side of an IN is ever NULL."""
        own = test.this.expressions if isinstance(test.this, exp.Tuple) else [test.this]
        select = test.parent_select
        scope = self.scopes.inner.get(id(select))
        inner = test.args["query"]
        while isinstance(inner, exp.Subquery):
            inner = inner.this
        below = self.scopes.inner.get(id(inner))
        if scope is None or below is None:
            return False
        return all(self._has_value(one, scope) for one in own) and all(
            self._gives(below, position) for position in range(len(own))
        )

    def _gives(self, scope: Scope, position: int) -> bool:
        """Return whether a column of a query is never NULL."""
        for part in selects(scope):
            select = part.expression
            if not isinstance(select, exp.Select) or position >= len(select.expressions):
                return False
            group = select.args.get("group")
            if group is not None and has(group, *SETS):
                return False
            if not self._has_value(select.expressions[position].unalias(), part):
                return False
        return True

    def _has_value(self, node: exp.Expr, scope: Scope) -> bool:
        match node:
            case exp.Column():
                return self._column(node, scope)
            case exp.Literal() | exp.Boolean() | exp.Count() | exp.CountIf() | exp.Exists():
                return True
            case exp.Coalesce():
                return any(self._has_value(one, scope) for one in (node.this, *node.expressions))
            case exp.Paren() | exp.Neg():
                return self._has_value(node.this, scope)
            case exp.Cast() if not isinstance(node, exp.TryCast):
                return self._has_value(node.this, scope)
            case exp.Add() | exp.Sub() | exp.Mul():
                return self._has_value(node.this, scope) and self._has_value(node.expression, scope)
            case _:
                return False

    def _column(self, column: exp.Column, scope: Scope) -> bool:
        here: Scope | None = scope
        while here is not None and not any(name == column.table for name, _ in here.references):
            here = here.parent
        if here is None or _is_optional(here.expression, column.table):
            return False
        match source_of(here, column.table):
            case exp.Table() as table:
                kind = self.resolve(table.db, table.name).types().get(column.name)
                return kind is not None and not kind.nullable
            case Scope() as inner if isinstance(inner.expression, exp.Query):
                names = inner.expression.named_selects
                return column.name in names and self._gives(inner, names.index(column.name))
            case _:
                return False


def _is_optional(select: exp.Expr, alias: str) -> bool:
    """Return whether an outer join may replace a table's rows by NULLs."""
    optional, seen = set[str](), set[str]()
    clause = select.args.get("from_")
    if clause is not None:
        seen.add(clause.this.alias_or_name)
    for join in select.args.get("joins") or ():
        name, side = join.this.alias_or_name, (join.side or "").upper()
        # In a chain of joins, RIGHT and FULL make every earlier table optional, LEFT and FULL the one that they add.
        if side in ("RIGHT", "FULL"):
            optional |= seen
        if side in ("LEFT", "FULL"):
            optional.add(name)
        seen.add(name)
    return alias in optional
