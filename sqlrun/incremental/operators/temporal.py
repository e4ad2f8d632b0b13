"""Temporal filter: the three-piece rule of windows that move with as_of. Pure.

From the tick at p to the tick at t the window moves from (L0, U0] to (L1, U1]. With W0 and W1 the two windows as
filters, the change is
    W1 new - W0 old = W0 W1 dA + (W1 - W0 W1) new - (W0 - W0 W1) old
that is, three pieces:
    overlap (in both windows): the input's changes;
    entering (in the new window alone): rows of the post-state, with +1;
    leaving (in the old window alone): rows of the pre-state, with -1 and the values that they had at p.
The pieces are conditions on the four bounds. So a window that jumps past itself (an outage longer than its width) and
rows dated in the future need no special case. Materialize calls such conditions temporal filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from sqlglot import exp

from sqlrun.incremental import properties
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type, Unary
from sqlrun.incremental.file_ranges import Range, Read
from sqlrun.incremental.operators.affected import below
from sqlrun.incremental.operators.affected_keys import of_changes
from sqlrun.incremental.operators.filter import Filter
from sqlrun.incremental.operators.moving import Moving
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.operators.scan import Scan
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile import parameters
from sqlrun.transpile.refusals import Reason

SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 604800}


@dataclass(frozen=True, slots=True)
class Bound:
    """One side of a temporal filter: `column <op> as_of + sign * shift`.

    `shift` is an interval expression, None for 0; `sign` is +1 or -1.
    """

    op: Literal[">", ">=", "<", "<="]
    shift: exp.Expr | None = None
    sign: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Temporal(Unary):
    """The rows whose `time` is in a range that moves with as_of; a bound that is None doesn't limit."""

    time: exp.Expr
    lower: Bound | None
    upper: Bound | None

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the input's columns."""
        return self.child.columns

    def rows(self, script: Script, row_set: str) -> str:
        """Return the rows inside the window at the tick of that row set."""
        child = script.rows(self.child, row_set)
        time = script.clock.now if row_set == "new" else script.clock.before
        columns = script.names(self.columns)
        if time is None:  # before the first tick every window is empty
            return f"select {columns} from {child} where false"
        return f"select {columns} from {child} where {self._inside(script, time)}"

    def changes(self, script: Script) -> list[str]:
        """Return the pieces overlap, entering and leaving."""
        now, before = script.clock.now, script.clock.before
        columns = script.names(self.columns)
        child = script.changes(self.child)
        # First tick: the pre-state is empty, so the change is the whole window.
        if before is None:
            return [f"select {columns}, 1 as {WEIGHT} from {script.rows(self, 'new')}"]
        texts = []
        inside_now, inside_before = self._inside(script, now), self._inside(script, before)
        if child is not None:
            both = f"{inside_now} and {inside_before}"
            texts.append(f"select {columns}, {WEIGHT} from {child} where {both}")
        # The clock only moves forward, so rows enter across the upper bound and leave across the lower one.
        if now != before and self.upper is not None:
            new = script.rows(self.child, "new")
            entering = f"{inside_now} and not ({self._side(self.upper, script, before)})"
            texts.append(f"select {columns}, 1 as {WEIGHT} from {new} where {entering}")
        if now != before and self.lower is not None:
            old = script.rows(self.child, "old")
            leaving = f"{inside_before} and not ({self._side(self.lower, script, now)})"
            texts.append(f"select {columns}, -1 as {WEIGHT} from {old} where {leaving}")
        return texts

    def _inside(self, script: Script, time: parameters.Name) -> str:
        sides = [bound for bound in (self.lower, self.upper) if bound is not None]
        return " and ".join(self._side(bound, script, time) for bound in sides)

    def _side(self, bound: Bound, script: Script, moment: parameters.Name) -> str:
        at = parameters.timestamp(moment, script.dialect)
        if bound.shift is not None:
            sign = "+" if bound.sign > 0 else "-"
            at = f"({at} {sign} {script.expr(bound.shift)})"
        time = exp.paren(self.time) if isinstance(self.time, exp.Binary) else self.time
        return f"{script.expr(time)} {bound.op} {at}"

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
        """Return False: rows that enter and leave are read from the input's tables."""
        return False

    def keeps_rows(self) -> bool:
        """Return False: rows leave the window."""
        return False

    def reads_clock(self) -> bool:
        """Return True: the window moves with the clock."""
        return True

    def reads_everything(self) -> Reason | None:
        """Return None: only rows between the previous and the current bounds enter or leave."""
        return None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return what the input reads, and the rows between the previous and the current place of each bound."""
        return [*self.child.reads_beside_changes(moment), *self._pieces(moment)]

    def _pieces(self, moment: Moment) -> list[Read]:
        scan, column = _source(self.child, self.time)
        if scan is None:
            return properties.all_rows(self.child)
        sides = (("new", self.upper), ("old", self.lower))
        return [Read(scan.table, row_set, _between(column, side, moment)) for row_set, side in sides if side]

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict the input: two conditions on one row commute."""
        return below(self, relation, keys, keys)

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return the keys of the changes: the clock affects rows that haven't changed below."""
        return of_changes(self, keys, script)


def _source(node: Node, time: exp.Expr) -> tuple[Scan | None, str]:
    """Return the table that a time column comes from and its name there; (None, "") if an operator computes it."""
    if not isinstance(time, exp.Column):
        return None, ""
    match node:
        case Scan():
            return node, time.name
        case Filter() | Temporal() | Moving():
            return _source(node.child, time)
        case Project():
            return _source(node.child, dict(node.items)[time.name])
        case _:
            return None, ""


def _between(column: str, bound: Bound, moment: Moment) -> Range | None:
    """Return the range over which a bound moves; None if it isn't known."""
    assert moment.previous is not None
    low, high = _at(bound, moment.previous), _at(bound, moment.as_of)
    return Range(column, low, high) if low and high else None


def _at(bound: Bound, moment: datetime) -> datetime | None:
    """Return the place of a bound at a moment; None for an interval of months or of a computed length."""
    if bound.shift is None:
        return moment
    unit = bound.shift.args.get("unit")
    amount = bound.shift.this
    name = unit.name.upper().rstrip("S") if unit is not None else ""
    if name not in SECONDS or not isinstance(amount, exp.Literal) or not amount.name.lstrip("-").isdigit():
        return None
    return moment + bound.sign * timedelta(seconds=SECONDS[name] * int(amount.name))
