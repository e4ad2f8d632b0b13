"""The cheaper way to update a table in a tick, by the number of rows to read. Pure.

Time is proportional to the rows that a query computes with, if there are many. Below `FEW` the fixed cost of a
statement dominates, which is the same for both ways. The number of rows for each changed row is `USUAL`, or less if the
run stats of past ticks say so. They can't say more: they count all rows of opened files, and a change skips most of
these rows by its keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeGuard

from sqlrun.incremental.stages import Method, Stage

Way = Literal["change", "whole"]
# Below this number of rows, both ways cost the same.
FEW = 50_000
# Maximum plausible number of rows; run stats with more are ignored.
MOST_ROWS = 10**13
# Most rows for each changed row: the change, the stored row of its group, its join partners.
USUAL: Mapping[Method, float] = {
    "land": 1.0, "append": 1.0, "additive": 2.0, "newest": 2.0, "rows": 3.0, "keys": 6.0, "partitions": 50.0,
    "history": 6.0,
    "full": 1.0,
}  # fmt: skip
# Append-only tables never gain from the whole query; tables that are always recomputed have no choice.
FIXED: frozenset[Method] = frozenset({"land", "append", "history", "full"})


@dataclass(frozen=True, slots=True)
class Facts:
    """Sizes before a tick: rows changed in the inputs, rows of the inputs, rows of the table itself."""

    changed: int
    inputs: int
    own: int
    amplification: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen way, and the number of rows that each way would read."""

    way: Way
    change: int
    whole: int


def has_choice(stage: Stage) -> bool:
    """Return whether a table may be recomputed from scratch for one tick instead."""
    return stage.method not in FIXED


def choose(stage: Stage, facts: Facts) -> Choice:
    """Return the way that reads fewer rows; the stage's own way if both read few.

    >>> from sqlrun.transpile.refusals import Reason
    >>> totals = Stage("v", "v", "merge", "additive", Reason("SR541", ""), (), None, ())
    >>> choose(totals, Facts(changed=400_000, inputs=500_000, own=100)).way
    'whole'
    >>> choose(totals, Facts(changed=40_000, inputs=500_000, own=100)).way
    'change'
    """
    usual = USUAL[stage.method]
    rate = usual if facts.amplification is None else min(usual, facts.amplification)
    change, whole = round(facts.changed * max(rate, 1.0)), facts.inputs + facts.own
    cheaper = has_choice(stage) and change >= FEW and whole < change
    return Choice("whole" if cheaper else "change", change, whole)


def amplification(receipts: Iterable[tuple[int | None, int | None]]) -> float | None:
    """Return the number of rows read for each changed row: the median over (read, changed) of past ticks.

    Implausible values are ignored. None if there are no others.

    >>> amplification([(300, 100), (1200, 200), (None, 5), (10, 0)])
    4.5
    """
    ratios = [read / changed for read, changed in receipts if _is_count(read) and _is_count(changed) and changed]
    return median(ratios) if ratios else None


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and 0 <= value <= MOST_ROWS


def message(name: str, choice: Choice) -> str:
    """Return the message that a table is recomputed from scratch in this tick."""
    return (
        f"{name} is fully recomputed in this tick (SR548): an incremental update would read about "
        f"{choice.change:,} rows, the whole query reads about {choice.whole:,}"
    )
