"""Measurements of one contender on one history, as values and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.processes import Spent

# The base of comparisons: the first of these contenders that ran.
BASES = ("sqlrun_auto", "sqlrun_duckdb", "sqlrun_spark")


@dataclass(slots=True)
class Figures:
    """One contender at one size: its first tick in a fresh process (`cold`), then the measured ones.

    `wrong` rows of `rows`; None without a result to compare. `error` is the end of a failed contender's output.
    """

    size: str
    orders: int
    new: int
    contender: str
    title: str
    way: str
    at: str
    versions: dict[str, str] = field(default_factory=dict)
    load: float = 0.0
    cold: Spent | None = None
    ticks: list[Spent] = field(default_factory=list)
    rows: int = 0
    wrong: int | None = None
    error: str = ""
    engines: dict[str, str] = field(default_factory=dict)

    def median(self, name: str) -> float | None:
        """Return the median of a figure over the measured ticks."""
        return statistics.median(getattr(tick, name) for tick in self.ticks) if self.ticks else None

    @property
    def memory(self) -> int:
        """Return the peak memory of all ticks."""
        return max((tick.memory for tick in (*self.ticks, *([self.cold] if self.cold else []))), default=0)

    @property
    def key(self) -> tuple[str, str]:
        """Return the key of the contender and size."""
        return self.size, self.contender

    @property
    def is_right(self) -> bool:
        """Return whether it finished with the right rows."""
        return not self.error and self.wrong == 0


def written(figures: Figures) -> dict[str, Any]:
    """Return figures as plain values for JSON."""
    return asdict(figures)


def read(plain: Mapping[str, Any]) -> Figures:
    """Return the figures that `written` converted."""
    found = Figures(**plain)
    found.cold = Spent(**plain["cold"]) if plain["cold"] else None
    found.ticks = [Spent(**tick) for tick in plain["ticks"]]
    return found


def merged(known: Iterable[Figures], new: Figures) -> list[Figures]:
    """Return the known figures, with new ones in place of older ones of the same contender and size."""
    return [*(one for one in known if one.key != new.key), new]


def ratio(one: float | None, base: float | None) -> float | None:
    """Return a ratio, or None if a side is unknown or the base is 0.

    >>> ratio(3.0, 2.0), ratio(None, 2.0), ratio(1.0, 0.0)
    (1.5, None, None)
    """
    return one / base if one is not None and base else None
