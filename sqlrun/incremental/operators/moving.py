"""Moving: a filter that reads the clock in any way. Pure.

With P the condition at this tick and at the one before, the change of the filtered rows is
the changes for which both hold; the new rows for which it holds now alone, +; the OLD rows for which it held before
alone, -. Where P compares a column with a moment, files are skipped by their statistics; else all rows are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sqlrun.incremental import clocks, properties
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type, Unary
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators.touched import below
from sqlrun.incremental.operators.touched_keys import of_changes
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True, eq=False)
class Moving(Unary):
    """The rows for which `condition`, which reads the clock in any way, is true."""

    condition: exp.Expr

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the input's columns."""
        return self.child.columns

    def rows(self, script: Script, row_set: str) -> str:
        """Keep the rows for which the condition holds at the tick of that row set."""
        child, time = script.rows(self.child, row_set), script.time_of(row_set)
        return f"select {script.names(self.columns)} from {child} where {script.expr(self.condition, time)}"

    def changes(self, script: Script) -> list[str]:
        """Write the pieces that stay, enter and leave."""
        now, before = script.clock.now, script.clock.before
        columns = script.names(self.columns)
        child = script.changes(self.child)
        if before is None:
            return [f"select {columns}, 1 as {WEIGHT} from {script.rows(self, 'new')}"]
        holds, held = (f"({script.expr(self.condition, time)})" for time in (now, before))
        texts = []
        if child is not None:
            texts.append(f"select {columns}, {WEIGHT} from {child} where {holds} and {held}")
        if now != before:
            # A condition that is unknown doesn't hold: `not` alone would keep it unknown.
            new, old = script.rows(self.child, "new"), script.rows(self.child, "old")
            texts.append(f"select {columns}, 1 as {WEIGHT} from {new} where {holds} and not coalesce({held}, false)")
            texts.append(f"select {columns}, -1 as {WEIGHT} from {old} where {held} and not coalesce({holds}, false)")
        return texts

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
        """Return those of the input, which hold of fewer rows as well."""
        return self.child.dependencies()

    def tables(self) -> tuple[str, ...]:
        """Return none of its own."""
        return ()

    def needs_state(self) -> bool:
        """Return False: which rows the clock lets in or out is read from the input's tables."""
        return False

    def keeps_rows(self) -> bool:
        """Return False: the clock lets rows go."""
        return False

    def reads_clock(self) -> bool:
        """Return True: that is what it is for."""
        return True

    def reads_everything(self) -> Reason | None:
        """Return why all rows are looked at where the condition doesn't narrow them to a moment."""
        return None if clocks.is_narrow(self.condition) else clocks.may_change(self.condition)

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return all rows: no range is worked out for a condition of any form."""
        return properties.all_rows(self)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict the input: two conditions on one row may be asked in either order."""
        return below(self, relation, keys, keys)

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Take the keys of the changes: the clock touches rows that have not changed below."""
        return of_changes(self, keys, script)
