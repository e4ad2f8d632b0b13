"""Filter: a change passes if its row does. Pure.

Whether a row passes depends on that row alone, so filter(A + dA) = filter(A) + filter(dA).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from sqlrun.incremental import functional_dependencies
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type, Unary
from sqlrun.incremental.clocks import conjuncts
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators.affected import below
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile.refusals import Reason

# Comparisons that are NULL if a side is.
STRICT = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


@dataclass(frozen=True, slots=True, eq=False)
class Filter(Unary):
    """The rows for which `condition` is true; it doesn't read the clock."""

    condition: exp.Expr

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the input's columns."""
        return self.child.columns

    def rows(self, script: Script, row_set: str) -> str:
        """Return the rows that pass."""
        child = script.rows(self.child, row_set)
        return f"select {script.names(self.columns)} from {child} where {script.expr(self.condition)}"

    def changes(self, script: Script) -> list[str]:
        """Return the changes that pass."""
        child = script.changes(self.child)
        if child is None:
            return []
        columns = script.names(self.columns)
        return [f"select {columns}, {WEIGHT} from {child} where {script.expr(self.condition)}"]

    def types(self) -> dict[str, Type]:
        """Return the input's types; a column that the condition compares isn't NULL in a row that passes."""
        known = self.child.types()
        return known | {name: Type(known[name].text, False) for name in _compared(self.condition) if name in known}

    def grain(self) -> tuple[str, ...] | None:
        """Return the input's grain: columns that are unique among all rows are unique among some."""
        return self.child.grain()

    def has_copies(self) -> bool:
        """Return whether the input has copies: copies pass together."""
        return self.child.has_copies()

    def dependencies(self) -> list[Dependency]:
        """Return the input's dependencies and those of the condition, which holds for every row that passes."""
        return [
            *self.child.dependencies(),
            *functional_dependencies.equalities(self.condition, self.child.types()),
        ]

    def tables(self) -> tuple[str, ...]:
        """Return none of its own."""
        return ()

    def needs_state(self) -> bool:
        """Return False: whether a row passes depends on that row alone."""
        return False

    def keeps_rows(self) -> bool:
        """Return True: the condition doesn't read the clock, so a row that passes always passes."""
        return True

    def reads_clock(self) -> bool:
        """Return False: a condition that reads the clock is a `Temporal` or a `Moving`."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return None."""
        return None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return what the input reads."""
        return self.child.reads_beside_changes(moment)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict the input: two conditions on one row commute."""
        return below(self, relation, keys, keys)

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return the input's affected keys, even keys that don't pass: recomputing an unchanged key is harmless."""
        return self.child.support(keys, script)


def _compared(condition: exp.Expr) -> Iterator[str]:
    """Yield the columns that can't be NULL where a condition is true."""
    for part in conjuncts(condition):
        match part:
            case exp.Not(this=exp.Is(this=exp.Column() as column, expression=exp.Null())):
                yield column.name
            case exp.Binary() if isinstance(part, STRICT):
                yield from (side.name for side in (part.this, part.expression) if isinstance(side, exp.Column))
