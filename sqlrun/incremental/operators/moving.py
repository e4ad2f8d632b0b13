"""Moving: a filter over any condition that reads the clock, a non-monotone temporal filter. Pure.

With P1 the condition at this tick and P0 at the previous tick, the change of the filtered rows has three pieces:
    staying: the changes for which both conditions hold;
    entering: rows of the post-state for which P1 holds and P0 doesn't, with +1;
    leaving: rows of the pre-state for which P0 holds and P1 doesn't, with -1.
If P compares a column with a moment, statistics skip files. Otherwise the tick reads all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sqlrun.incremental import clocks, properties
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type, Unary
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators.affected import below
from sqlrun.incremental.operators.affected_keys import of_changes
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True, eq=False)
class Moving(Unary):
    """The rows for which `condition` is true; it reads the clock in any way."""

    condition: exp.Expr

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the input's columns."""
        return self.child.columns

    def rows(self, script: Script, row_set: str) -> str:
        """Return the rows for which the condition holds at the tick of that row set."""
        child, time = script.rows(self.child, row_set), script.time_of(row_set)
        return f"select {script.names(self.columns)} from {child} where {script.expr(self.condition, time)}"

    def changes(self, script: Script) -> list[str]:
        """Return the rows that stay, enter and leave."""
        now, before = script.clock.now, script.clock.before
        columns = script.names(self.columns)
        child = script.changes(self.child)
        if before is None:
            return [f"select {columns}, 1 as {WEIGHT} from {script.rows(self, 'new')}"]
        holds_now, held_before = (f"({script.expr(self.condition, time)})" for time in (now, before))
        texts = []
        if child is not None:
            texts.append(f"select {columns}, {WEIGHT} from {child} where {holds_now} and {held_before}")
        if now != before:
            # A condition that is NULL doesn't hold, but `not` leaves it NULL. Hence the coalesce.
            new, old = script.rows(self.child, "new"), script.rows(self.child, "old")
            texts.append(
                f"select {columns}, 1 as {WEIGHT} from {new} where {holds_now} and not coalesce({held_before}, false)"
            )
            texts.append(
                f"select {columns}, -1 as {WEIGHT} from {old} where {held_before} and not coalesce({holds_now}, false)"
            )
        return texts

    def types(self) -> dict[str, Type]:
        """Return the input's types."""
        return self.child.types()

    def grain(self) -> tuple[str, ...] | None:
        """Return the input's grain: columns that are unique among all rows are unique among some."""
        return self.child.grain()

    def has_copies(self) -> bool:
        """Return whether the input has copies: copies pass together."""
        return self.child.has_copies()

    def dependencies(self) -> list[Dependency]:
        """Return the input's dependencies, which hold for fewer rows, too."""
        return self.child.dependencies()

    def tables(self) -> tuple[str, ...]:
        """Return none of its own."""
        return ()

    def needs_state(self) -> bool:
        """Return False: rows that the clock lets in or out are read from the input's tables."""
        return False

    def keeps_rows(self) -> bool:
        """Return False: the clock lets rows leave."""
        return False

    def reads_clock(self) -> bool:
        """Return True: its condition reads the clock."""
        return True

    def reads_everything(self) -> Reason | None:
        """Return why the tick reads all rows, unless the condition narrows them to a moment."""
        return None if clocks.is_narrow(self.condition) else clocks.may_change(self.condition)

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return all rows: no range is derived from a condition of any form."""
        return properties.all_rows(self)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict the input: two conditions on one row commute."""
        return below(self, relation, keys, keys)

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return the keys of the changes: the clock affects rows that haven't changed below."""
        return of_changes(self, keys, script)
