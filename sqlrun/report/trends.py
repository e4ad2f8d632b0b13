"""Many ticks as few columns of a picture: what checks, tables and sources did in them, in words and numbers. Pure.

All pictures of a history page share one grid, so that what stands above each other happened in the same ticks. A column
stands for one tick or, in a long history, for several: it shows the worst of them, never an average that hides it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Literal

from sqlrun.outcome import BLOCKING, RANKED, Outcome
from sqlrun.report.findings import clean, share
from sqlrun.runtime.text_table import counted

# So many columns are drawn at most, and fewer where there are many checks: a page stays small enough to be mailed.
WIDEST, NARROWEST = 336, 168
MANY_CHECKS = 100


@dataclass(frozen=True, slots=True)
class Moment:
    """One tick. `why` it wasn't published, "" where it was; `warned` counts checks that failed and were told."""

    tick: int
    as_of: datetime
    published: bool
    why: str = ""
    warned: int = 0

    @property
    def rank(self) -> int:
        """Return its severity on the scale of check outcomes."""
        like = Outcome.FAIL if not self.published else Outcome.WARN if self.warned else Outcome.PASS
        return like.rank or 0


@dataclass(frozen=True, slots=True)
class Grid:
    """Ticks, the oldest first, and the columns that they fall into: (first, last) places among them."""

    moments: tuple[Moment, ...]
    columns: tuple[tuple[int, int], ...]

    def placed(self) -> dict[int, int]:
        """Return each tick's column."""
        return {
            self.moments[place].tick: column
            for column, (first, last) in enumerate(self.columns)
            for place in range(first, last + 1)
        }

    def label(self, column: int) -> str:
        """Return the name of a column's ticks and their time."""
        first, last = (self.moments[place] for place in self.columns[column])
        at = f"{last.as_of:%Y-%m-%d %H:%M}"
        return f"tick {last.tick}, {at}" if first == last else f"ticks {first.tick}–{last.tick}, until {at}"

    def ranks(self) -> list[int]:
        """Return the rank of the worst tick of each column."""
        return [max(moment.rank for moment in self.moments[first : last + 1]) for first, last in self.columns]


def grid(moments: Sequence[Moment], checks: int = 0) -> Grid:
    """Part ticks into columns of nearly equal size.

    >>> at = datetime(2026, 1, 1)
    >>> grid([Moment(n, at, True) for n in range(5)]).columns
    ((0, 0), (1, 1), (2, 2), (3, 3), (4, 4))
    """
    count = min(len(moments), WIDEST if checks <= MANY_CHECKS else NARROWEST)
    edges = [len(moments) * n // count for n in range(count + 1)] if count else [0]
    return Grid(tuple(moments), tuple((a, b - 1) for a, b in pairwise(edges)))


@dataclass(frozen=True, slots=True)
class CheckPast:
    """What a check said in the grid's ticks. `ranks` and `shares` have a place for each column, None: it did not run.

    `said` counts ticks by outcome; `last` is the outcome in the newest tick in which it ran. Shares are of 0 to 1.
    """

    check_id: str
    model: str
    expectation: str
    columns: tuple[str, ...]
    severity: str
    said: Mapping[Outcome, int]
    last: Outcome
    last_tick: int
    worst_tick: int | None
    unexpected: int
    evaluated: int
    ranks: tuple[int | None, ...] = ()
    shares: tuple[float | None, ...] = ()

    @property
    def bad(self) -> int:
        """Count the ticks in which it didn't pass."""
        return sum(count for outcome, count in self.said.items() if outcome is not Outcome.PASS)

    @property
    def subject(self) -> str:
        """Return the name of what it looks at, as a report does."""
        return f"{self.model}.{', '.join(self.columns)}" if self.columns else self.model

    def summary(self) -> str:
        """Return how often it failed, when last, and in how many rows then."""
        ticks = sum(self.said.values())
        if not self.bad:
            return f"passed in {'the one tick' if ticks == 1 else f'all {ticks:,} ticks'} in which it ran"
        parts = [f"{one.words.told} in {self.said[one]:,}" for one in RANKED if one.rank and self.said[one]]
        text = f"{', '.join(parts)} of {counted(ticks, 'tick')}, last in tick {self.worst_tick}"
        if self.unexpected and self.evaluated:
            text += (
                f": {self.unexpected:,} of {counted(self.evaluated, 'row')} ({share(self.unexpected, self.evaluated)})"
            )
        elif self.unexpected:
            text += f": {counted(self.unexpected, 'row')}"
        return text


def filled(columns: int, cells: Iterable[tuple[int, int, float | None]]) -> tuple[list[int | None], list[float | None]]:
    """Put the outcomes and shares of a check into their columns."""
    ranks: list[int | None] = [None] * columns
    shares: list[float | None] = [None] * columns
    for column, rank, part in cells:
        ranks[column], shares[column] = rank, part
    return ranks, shares


def streak(first: int, ranks: Sequence[int | None]) -> str:
    """Return since which tick a check hasn't passed, and how often before; `first` is the tick of the first.

    >>> streak(7, [0, None, 0, 2, 3])
    'It has not passed since tick 10; it passed in 2 of the 4 ticks since tick 7 in which it ran.'
    >>> streak(7, [None, 3])
    'It ran in no other tick that is kept.'
    """
    ran = [(first + place, rank) for place, rank in enumerate(ranks) if rank is not None]
    if len(ran) < 2:
        return "It ran in no other tick that is kept."
    passed = [tick for tick, rank in ran if rank == 0]
    if not passed:
        return f"It passed in none of the {len(ran):,} ticks since tick {ran[0][0]} in which it ran."
    since = next(tick for tick, _ in ran if tick > passed[-1]) if passed[-1] != ran[-1][0] else 0
    now = f"It has not passed since tick {since}; it" if since else "It"
    return f"{now} passed in {len(passed):,} of the {len(ran):,} ticks since tick {ran[0][0]} in which it ran."


def why(failed: Iterable[tuple[str, Outcome]], ran: bool) -> str:
    """Return why a tick wasn't published, by (model, outcome) of its checks; `ran`: its end was written down.

    >>> why([("orders", Outcome.FAIL), ("orders", Outcome.FAIL), ("slots", Outcome.ERROR)], True)
    '2 checks failed and 1 check could not be evaluated in orders and slots'
    """
    held = [(model, outcome) for model, outcome in failed if outcome.blocks]
    if not held:
        if ran:
            return "no check failed: a table could not be brought up to date"
        return "the build ended before its end"
    tally = Counter(outcome for _, outcome in held)
    parts = [f"{counted(tally[one], 'check')} {one.words.told}" for one in BLOCKING if tally[one]]
    models = list(dict.fromkeys(clean(model) for model, _ in held))
    shown = models[:3] + ([f"{len(models) - 3:,} more"] if len(models) > 3 else [])
    where = " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
    return f"{' and '.join(parts)} in {where}"


# `lines` are added up, of the others no sum means anything.
Unit = Literal["rows", "lines", "seconds", "share"]


@dataclass(frozen=True, slots=True)
class Line:
    """One number of a table or a source over the grid's columns, and the band in which it was expected.

    `places` are the columns in which it was unusual, with what was said of it. None: nothing was written down.
    """

    subject: str
    what: str
    unit: Unit
    values: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    places: tuple[tuple[int, str], ...] = ()

    @property
    def known(self) -> list[float]:
        """List the numbers that there are."""
        return [value for value in self.values if value is not None]

    @property
    def loud(self) -> bool:
        """Return whether it was ever anything but nothing."""
        return bool(any(self.known) or self.places)

    def summary(self, grid: Grid) -> str:
        """Return the last, middle and highest number, and how often it was unusual."""
        known = self.known
        if not known:
            return "no number yet"
        if self.unit == "lines":
            top = max(known)
            text = counted(int(sum(known)), "line")
            return (
                text
                if top == sum(known) == 0
                else f"{text}, {top:,.0f} of them in {grid.label(self.values.index(top))}"
            )
        text = f"last {amount(known[-1], self.unit)}, middle {amount(median(known), self.unit)}"
        top = max(known)
        text += f", highest {amount(top, self.unit)} in {grid.label(self.values.index(top))}"
        if self.places:
            text += f"; unusual {len(self.places):,} times" if len(self.places) > 1 else "; unusual once"
        return text


def amount(value: float, unit: Unit) -> str:
    """Write a number with its unit, short.

    >>> [amount(v, u) for v, u in ((1234.0, "rows"), (0.25, "share"), (0.034, "seconds"), (5400, "seconds"))]
    ['1,234', '25 %', '0.03 s', '1.5 h']
    """
    if unit == "share":
        return f"{100 * value:.2f}".rstrip("0").rstrip(".") + " %"
    if unit == "seconds":
        size = abs(value)
        for length, word in ((86400, "d"), (3600, "h"), (60, "min")):
            if size >= 1.5 * length or (word == "min" and size >= 90):
                return f"{value / length:,.1f}".removesuffix(".0") + f" {word}"
        return f"{value:,.2f}".rstrip("0").rstrip(".") + " s" if size < 10 else f"{value:,.0f} s"
    return f"{value:,.0f}" if value == int(value) or value >= 10 else f"{value:,.2f}"
