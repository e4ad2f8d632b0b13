"""Which rows of a table a tick reads beside its changes: all of them, or those of a range of time. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Range:
    """The rows whose `column` lies in [low, high], times in UTC."""

    column: str
    low: datetime
    high: datetime


@dataclass(frozen=True, slots=True)
class Read:
    """One read of a table's `old` or `new` rows; without a `range` it needs all of them."""

    table: str
    row_set: str
    range: Range | None
