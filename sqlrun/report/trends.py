"""Trends over many ticks as the columns of a chart: checks, tables and sources, in words and numbers. Pure.

All charts of a history page share one grid, so values above each other belong to the same ticks. A column covers one
tick or, in a long history, several: it shows the worst of them, never an average that hides it.
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

# Maximum number of columns, and the maximum with many checks: the page stays small enough for an email.
WIDEST, NARROWEST = 336, 168
MANY_CHECKS = 100


@dataclass(frozen=True, slots=True)
class Moment:
    """One tick. `why` is the reason if it was not published, else ""; `warned` counts warnings."""

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
    """Ticks, oldest first, and the columns that cover them, as (first, last) indexes."""

    moments: tuple[Moment, ...]
    columns: tuple[tuple[int, int], ...]

    def placed(self) -> dict[int, int]:
        """Return the column of each tick, by tick number."""
        return {
            self.moments[place].tick: column
            for column, (first, last) in enumerate(self.columns)
            for place in range(first, last + 1)
        }

    def label(self, column: int) -> str:
        """Return a column's label: its ticks and their time."""
        first, last = (self.moments[place] for place in self.columns[column])
        at = f"{last.as_of:%Y-%m-%d %H:%M}"
        return f"tick {last.tick}, {at}" if first == last else f"ticks {first.tick}–{last.tick}, until {at}"

    def ranks(self) -> list[int]:
        """Return the rank of the worst tick of each column."""
        return [max(moment.rank for moment in self.moments[first : last + 1]) for first, last in self.columns]


def grid(moments: Sequence[Moment], checks: int = 0) -> Grid:
    """Split ticks into columns of nearly equal size.

    >>> at = datetime(2026, 1, 1)
    >>> grid([Moment(n, at, True) for n in range(5)]).columns
    ((0, 0), (1, 1), (2, 2), (3, 3), (4, 4))
    """
    count = min(len(moments), WIDEST if checks <= MANY_CHECKS else NARROWEST)
    edges = [len(moments) * n // count for n in range(count + 1)] if count else [0]
    return Grid(tuple(moments), tuple((a, b - 1) for a, b in pairwise(edges)))


@dataclass(frozen=True, slots=True)
class CheckPast:
    """Outcomes of a check in the grid's ticks. `ranks` and `shares` have a value for each column, None: it did not run.

    `ticks` counts ticks by outcome; `last` is the outcome in the newest tick in which it ran. Shares are from 0 to 1.
    """

    check_id: str
    model: str
    expectation: str
    columns: tuple[str, ...]
    severity: str
    ticks: Mapping[Outcome, int]
    last: Outcome
    last_tick: int
    worst_tick: int | None
    unexpected: int
    evaluated: int
    ranks: tuple[int | None, ...] = ()
    shares: tuple[float | None, ...] = ()

    @property
    def bad(self) -> int:
        """Return the number of ticks in which it did not pass."""
        return sum(count for outcome, count in self.ticks.items() if outcome is not Outcome.PASS)

    @property
    def subject(self) -> str:
        """Return the table or columns that it checks."""
        return f"{self.model}.{', '.join(self.columns)}" if self.columns else self.model

    def summary(self) -> str:
        """Return how often it failed, when it failed last, and in how many rows."""
        ticks = sum(self.ticks.values())
        if not self.bad:
            return f"passed in {'the one tick' if ticks == 1 else f'all {ticks:,} ticks'} in which it ran"
        parts = [f"{one.words.verb} in {self.ticks[one]:,}" for one in RANKED if one.rank and self.ticks[one]]
        text = f"{', '.join(parts)} of {counted(ticks, 'tick')}, last in tick {self.worst_tick}"
        if self.unexpected and self.evaluated:
            text += (
                f": {self.unexpected:,} of {counted(self.evaluated, 'row')} ({share(self.unexpected, self.evaluated)})"
            )
        elif self.unexpected:
            text += f": {counted(self.unexpected, 'row')}"
        return text


def filled(columns: int, cells: Iterable[tuple[int, int, float | None]]) -> tuple[list[int | None], list[float | None]]:
    """Return the ranks and shares of a check by column, from cells (column, rank, share); None without a cell."""
    ranks: list[int | None] = [None] * columns
    shares: list[float | None] = [None] * columns
    for column, rank, part in cells:
        ranks[column], shares[column] = rank, part
    return ranks, shares


def streak(first: int, ranks: Sequence[int | None]) -> str:
    """Return since when a check has failed, and how often it passed before; `first` is the tick of `ranks[0]`.

    >>> streak(7, [0, None, 0, 2, 3])
    'It has not passed since tick 10; it passed in 2 of the 4 ticks since tick 7 in which it ran.'
    >>> streak(7, [None, 3])
    'It ran in no other retained tick.'
    """
    ran = [(first + place, rank) for place, rank in enumerate(ranks) if rank is not None]
    if len(ran) < 2:
        return "It ran in no other retained tick."
    passed = [tick for tick, rank in ran if rank == 0]
    if not passed:
        return f"It passed in none of the {len(ran):,} ticks since tick {ran[0][0]} in which it ran."
    since = next(tick for tick, _ in ran if tick > passed[-1]) if passed[-1] != ran[-1][0] else 0
    now = f"It has not passed since tick {since}; it" if since else "It"
    return f"{now} passed in {len(passed):,} of the {len(ran):,} ticks since tick {ran[0][0]} in which it ran."


def why(failed: Iterable[tuple[str, Outcome]], ran: bool) -> str:
    """Return why a tick was not published, from the (model, outcome) of its checks; `ran`: its end was recorded.

    >>> why([("orders", Outcome.FAIL), ("orders", Outcome.FAIL), ("slots", Outcome.ERROR)], True)
    '2 checks failed and 1 check could not be evaluated in orders and slots'
    """
    held = [(model, outcome) for model, outcome in failed if outcome.blocks]
    if not held:
        if ran:
            return "no check failed; a table could not be updated"
        return "the build ended early"
    tally = Counter(outcome for _, outcome in held)
    parts = [f"{counted(tally[one], 'check')} {one.words.verb}" for one in BLOCKING if tally[one]]
    models = list(dict.fromkeys(clean(model) for model, _ in held))
    shown = models[:3] + ([f"{len(models) - 3:,} more"] if len(models) > 3 else [])
    where = " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
    return f"{' and '.join(parts)} in {where}"


# Only `lines` can be summed.
Unit = Literal["rows", "lines", "seconds", "share"]


@dataclass(frozen=True, slots=True)
class Line:
    """A measure of a table or source over the grid's columns, and its expected band. None: no value was recorded.

    `places` are the columns in which it was unusual, with the message.
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
        """Return the values that are not None."""
        return [value for value in self.values if value is not None]

    @property
    def loud(self) -> bool:
        """Return whether it was ever other than 0, or unusual."""
        return bool(any(self.known) or self.places)

    def summary(self, grid: Grid) -> str:
        """Return the last, median and highest value, and how often it was unusual."""
        known = self.known
        if not known:
            return "no value yet"
        if self.unit == "lines":
            top = max(known)
            text = counted(int(sum(known)), "line")
            return (
                text
                if top == sum(known) == 0
                else f"{text}, {top:,.0f} of them in {grid.label(self.values.index(top))}"
            )
        text = f"last {amount(known[-1], self.unit)}, median {amount(median(known), self.unit)}"
        top = max(known)
        text += f", highest {amount(top, self.unit)} in {grid.label(self.values.index(top))}"
        if self.places:
            text += f"; unusual {len(self.places):,} times" if len(self.places) > 1 else "; unusual once"
        return text


def amount(value: float, unit: Unit) -> str:
    """Return a number with its unit, rounded.

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
