"""Scope of an expression: a row, its group, its windows, the row of the outer query."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from tests.support.evaluator.values import Unknown, Value

if TYPE_CHECKING:
    from tests.support.evaluator.queries import Relation

Row = dict[tuple[str, str], Value]


@dataclass(slots=True)
class World:
    """One evaluation: the tables by name and the tick's time."""

    tables: dict[str, Relation]
    as_of: datetime


@dataclass(slots=True)
class Group:
    """The rows of a group; `keys` has the value of each grouping key, by its node's id.

    `columns` are the keys that are plain columns. `absent` has the ids of keys that the grouping set leaves out, `bits`
    the value of grouping_id() for it.
    """

    rows: list[Scope]
    keys: dict[int, Value]
    columns: Row
    absent: set[int] = field(default_factory=set)
    bits: int = 0


@dataclass(slots=True)
class Scope:
    """One row, as an expression reads it."""

    world: World
    ctes: dict[str, Relation]
    row: Row
    outer: Scope | None = None
    group: Group | None = None
    windows: dict[int, Value] = field(default_factory=dict)
    names: dict[str, Value] = field(default_factory=dict)  # lambda variables, and output columns in ORDER BY

    def column(self, table: str, name: str) -> Value:
        """Return a column's value, of this query or, for a correlated subquery, of an outer one."""
        scope: Scope | None = self
        while scope is not None:
            row = scope.group.columns if scope.group is not None else scope.row
            if (table, name) in row:
                return row[table, name]
            if not table:
                if name in scope.names:
                    return scope.names[name]
                found = [value for (_, n), value in row.items() if n == name]
                if len(found) == 1:
                    return found[0]
            scope = scope.outer
        raise Unknown(f"column {table}.{name} (or it is neither grouped nor aggregated)")

    def with_names(self, names: dict[str, Value]) -> Scope:
        """Return a scope with further names, those of a lambda's arguments."""
        return Scope(self.world, self.ctes, self.row, self.outer, self.group, self.windows, {**self.names, **names})
