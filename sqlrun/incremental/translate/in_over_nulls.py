"""IN over a subquery where its unknown answer would be seen: refused unless nothing that it compares is NULL. Pure.

Queries with operators are judged as they are translated (`subqueries.py`). This judges those that have none,
and whose text the engines run whole: Spark says false where SQL and DuckDB say NULL.
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
    """Refuse the first IN of a qualified query whose NULL would be told apart from false (SR505)."""
    tests = [test for test in every(tree, exp.In) if isinstance(test.args.get("query"), exp.Query)]
    told = [test for test in tests if not only_filters(test)]
    if not told:
        return
    known = _Known(scopes_of(cast(exp.Query, tree)), resolve)
    for test in told:
        if not known.compares_values(test):
            raise Refusal("SR505", WHY, INSTEAD, test)


def only_filters(test: exp.Expr) -> bool:
    """Return whether a test is a condition of WHERE, HAVING or QUALIFY, or a part that AND, OR and NOT make one of."""
    above = test.parent
    while isinstance(above, exp.And | exp.Or | exp.Not | exp.Paren):
        above = above.parent
    return isinstance(above, exp.Where | exp.Having | exp.Qualify)


class _Known:
    """What can be told of NULLs from contracts and the text of a query."""

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
    """Return whether an outer join may put NULLs in the place of a table's rows."""
    optional, seen = set[str](), set[str]()
    clause = select.args.get("from_")
    if clause is not None:
        seen.add(clause.this.alias_or_name)
    for join in select.args.get("joins") or ():
        name, side = join.this.alias_or_name, (join.side or "").upper()
        # In a chain of joins, RIGHT and FULL make every table before them optional, LEFT and FULL the one they add.
        if side in ("RIGHT", "FULL"):
            optional |= seen
        if side in ("LEFT", "FULL"):
            optional.add(name)
        seen.add(name)
    return alias in optional
