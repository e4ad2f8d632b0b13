"""Sums over the accounting of landed lines: the same for the command, the page, the report and the metrics. Pure.

A row is one of `system_tables/intake.py`: a mapping that has at least `NUMBERS`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlrun.runtime.text_table import counted

Row = Mapping[str, Any]
NUMBERS = ("read", "landed", "quarantined", "dropped", "gaps", "lost", "unexplained")
# Lines that were read are in one of these: their sum is `read`.
SIDES = ("landed", "quarantined", "dropped", "unexplained")


@dataclass(frozen=True, slots=True)
class LostLines:
    """An accepted loss: what was lost, by whose decision and when. `lines` is None if the number is unknown."""

    source: str
    part: str
    tick: int
    what: str
    lines: int | None
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class LineSums:
    """Sums of rows; a number is None if no row knows it. `reasons` are of dropped lines, in alphabetical order."""

    read: int | None = None
    landed: int | None = None
    quarantined: int | None = None
    dropped: int | None = None
    gaps: int | None = None
    lost: int | None = None
    unexplained: int | None = None
    reasons: Mapping[str, int] = field(default_factory=dict)
    losses: tuple[LostLines, ...] = ()

    @property
    def numbers(self) -> Mapping[str, int | None]:
        """Return the sums by name, in the order of `NUMBERS`."""
        return {name: getattr(self, name) for name in NUMBERS}

    @property
    def is_nothing(self) -> bool:
        """Return whether there was no line and no loss."""
        return not self.losses and not any(self.numbers.values())

    def arithmetic(self) -> str:
        """Return the sums as one line of arithmetic.

        >>> LineSums(read=7, landed=5, quarantined=1, dropped=1, unexplained=0).arithmetic()
        '7 lines read = 5 landed + 1 quarantined + 1 dropped + 0 unexplained; 0 lost'
        """
        sides = " + ".join(f"{self.numbers[name] or 0:,} {name}" for name in SIDES)
        read = "an unknown number of lines" if self.read is None and self.landed else counted(self.read or 0, "line")
        return f"{read} read = {sides}; {self.lost or 0:,} lost"

    def exceptions(self) -> str:
        """Return the numbers of lines that neither landed nor were left out by a rule; "" if there are none.

        >>> LineSums(lost=2, gaps=1, unexplained=0).exceptions()
        '1 gap, 2 lost'
        """
        found = [counted(self.gaps, "gap")] if self.gaps else []
        found += [f"{self.lost:,} lost"] if self.lost else []
        found += ["lines lost"] if self.losses and not self.lost else []
        found += [f"{self.unexplained:,} unexplained"] if self.unexplained else []
        return ", ".join(found)


NOTHING = LineSums()


def of(rows: Sequence[Row]) -> LineSums:
    """Return the sums of rows."""
    reasons: dict[str, int] = {}
    for row in rows:
        for reason, count in json.loads(row["dropped_because"] or "{}").items():
            reasons[reason] = reasons.get(reason, 0) + count
    numbers = {name: _total(rows, name) for name in NUMBERS}
    return LineSums(**numbers, reasons=dict(sorted(reasons.items())), losses=tuple(losses(rows)))


def by(rows: Iterable[Row], keys: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows grouped by some of their columns, in the order of their first ones."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def losses(rows: Iterable[Row]) -> list[LostLines]:
    """Return the accepted losses of rows, in their order."""
    found = []
    for row in rows:
        if row["lost_because"]:
            who, _, when = (row["accepted_by"] or "").rpartition(", ")
            found.append(
                LostLines(row["source"], row["part"], row["tick"], row["lost_because"], row["lost"], who, when)
            )
    return found


def _total(rows: Sequence[Row], number: str) -> int | None:
    known = [row[number] for row in rows if row[number] is not None]
    return sum(known) if known else None
