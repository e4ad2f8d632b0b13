"""What was measured of one contender on one history, as values and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.processes import Spent

# What the others are compared with: the first of these that took part.
BASES = ("sqlrun_auto", "sqlrun_duckdb", "sqlrun_spark")


@dataclass(slots=True)
class Figures:
    """One contender at one size: its first tick in a fresh process (`cold`), then the measured ones.

    `wrong` rows of `rows`; None where nothing came to compare. `error` is the end of what a failed contender said.
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
        """Give the median of a figure over the measured ticks."""
        return statistics.median(getattr(tick, name) for tick in self.ticks) if self.ticks else None

    @property
    def memory(self) -> int:
        """Give the most memory of all ticks."""
        return max((tick.memory for tick in (*self.ticks, *([self.cold] if self.cold else []))), default=0)

    @property
    def key(self) -> tuple[str, str]:
        """Tell one from another."""
        return self.size, self.contender

    @property
    def is_right(self) -> bool:
        """Tell whether it came to its end with the right rows."""
        return not self.error and self.wrong == 0


def written(figures: Figures) -> dict[str, Any]:
    """Turn figures into what JSON takes."""
    return asdict(figures)


def read(plain: Mapping[str, Any]) -> Figures:
    """Read what `written` gave."""
    found = Figures(**plain)
    found.cold = Spent(**plain["cold"]) if plain["cold"] else None
    found.ticks = [Spent(**tick) for tick in plain["ticks"]]
    return found


def merged(known: Iterable[Figures], new: Figures) -> list[Figures]:
    """Put new figures in the place of older ones of the same contender and size."""
    return [*(one for one in known if one.key != new.key), new]


def ratio(one: float | None, base: float | None) -> float | None:
    """Divide where both are known.

    >>> ratio(3.0, 2.0), ratio(None, 2.0), ratio(1.0, 0.0)
    (1.5, None, None)
    """
    return one / base if one is not None and base else None
