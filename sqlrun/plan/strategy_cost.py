"""Which way of keeping a table is the cheaper one in a tick, by the rows that it would read. Pure.

Time goes with rows read once there are many of them; below `FEW` the fixed cost of a statement decides, which is the
same for both ways, so the question is not asked. How many rows a way reads for each changed one is taken from the
receipts of past ticks, and from `USUAL` until there are some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeGuard

from sqlrun.incremental.stages import Method, Stage

Way = Literal["change", "whole"]
# Below so many rows to read one way costs as much as the other.
FEW = 50_000
# More than any table has: a receipt that says so is none.
MOST_ROWS = 10**13
# Rows read for each changed row before there are receipts: the change, its group's stored row, its partners in joins.
USUAL: Mapping[Method, float] = {
    "land": 1.0, "append": 1.0, "additive": 2.0, "newest": 2.0, "rows": 3.0, "keys": 6.0, "partitions": 50.0,
    "full": 1.0,
}  # fmt: skip
# A table that only grows never gains from the whole query; one that is always computed whole has no choice.
FIXED: frozenset[Method] = frozenset({"land", "append", "full"})


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known before a tick: rows changed in the inputs, rows of the inputs and of the table itself."""

    changed: int
    inputs: int
    own: int
    amplification: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The way chosen, and the rows that each would read."""

    way: Way
    change: int
    whole: int


def has_choice(stage: Stage) -> bool:
    """Return whether a table may be computed whole for one tick instead."""
    return stage.method not in FIXED


def choose(stage: Stage, facts: Facts) -> Choice:
    """Take the way that reads fewer rows; the stage's own where both read few.

    >>> from sqlrun.transpile.refusals import Reason
    >>> totals = Stage("v", "v", "merge", "additive", Reason("SR541", ""), (), None, ())
    >>> choose(totals, Facts(changed=400_000, inputs=500_000, own=100)).way
    'whole'
    >>> choose(totals, Facts(changed=40_000, inputs=500_000, own=100)).way
    'change'
    """
    rate = facts.amplification if facts.amplification is not None else USUAL[stage.method]
    change, whole = round(facts.changed * max(rate, 1.0)), facts.inputs + facts.own
    cheaper = has_choice(stage) and change >= FEW and whole < change
    return Choice("whole" if cheaper else "change", change, whole)


def amplification(receipts: Iterable[tuple[int | None, int | None]]) -> float | None:
    """Return how many rows were read for each changed one, as a median over (read, changed) of past ticks.

    What can't be true counts for nothing.

    >>> amplification([(300, 100), (1200, 200), (None, 5), (10, 0)])
    4.5
    """
    ratios = [read / changed for read, changed in receipts if _is_count(read) and _is_count(changed) and changed]
    return median(ratios) if ratios else None


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and 0 <= value <= MOST_ROWS


def message(name: str, choice: Choice) -> str:
    """Return the text why a table is computed whole in this tick."""
    return (
        f"{name} is computed whole in this tick (SR548): maintaining it by its changes would read about "
        f"{choice.change:,} rows, the whole query reads about {choice.whole:,}"
    )
