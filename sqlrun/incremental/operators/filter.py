"""Filter: a change passes where its row does. Pure.

Whether a row passes depends on nothing but the row, so filter(A + dA) = filter(A) + filter(dA).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sqlrun.incremental import functional_dependencies
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type, Unary
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators.touched import below
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True, eq=False)
class Filter(Unary):
    """The rows for which `condition`, which reads no clock, is true."""

    condition: exp.Expr

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the input's columns."""
        return self.child.columns

    def rows(self, script: Script, row_set: str) -> str:
        """Filter the rows."""
        child = script.rows(self.child, row_set)
        return f"select {script.names(self.columns)} from {child} where {script.expr(self.condition)}"

    def changes(self, script: Script) -> list[str]:
        """Filter the changes."""
        child = script.changes(self.child)
        if child is None:
            return []
        columns = script.names(self.columns)
        return [f"select {columns}, {WEIGHT} from {child} where {script.expr(self.condition)}"]

    def types(self) -> dict[str, Type]:
        """Return the input's types."""
        return self.child.types()

    def grain(self) -> tuple[str, ...] | None:
        """Return the input's grain: what is unique among more rows is unique among fewer."""
        return self.child.grain()

    def has_copies(self) -> bool:
        """Return whether the input has copies: copies pass together."""
        return self.child.has_copies()

    def dependencies(self) -> list[Dependency]:
        """Return the input's, and what the condition's equalities fix: it is true for every row that is left."""
        return [
            *self.child.dependencies(),
            *functional_dependencies.equalities(self.condition, self.child.types()),
        ]

    def tables(self) -> tuple[str, ...]:
        """Return none of its own."""
        return ()

    def needs_state(self) -> bool:
        """Return False: a row passes or not, whatever stands beside it."""
        return False

    def keeps_rows(self) -> bool:
        """Return True: a row that passes today passes tomorrow, as the condition reads no clock."""
        return True

    def reads_clock(self) -> bool:
        """Return False: a condition that does is `Temporal` or `Moving`."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return None."""
        return None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return what the input reads."""
        return self.child.reads_beside_changes(moment)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict the input: two conditions on one row may be asked in either order."""
        return below(self, relation, keys, keys)

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Take the input's, some of which do not pass: computing a key again that has not changed does no harm."""
        return self.child.support(keys, script)
