"""The rows that a tick reads of a table in addition to its changes: all, or a range of time. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Range:
    """The rows whose `column` is in [low, high], in UTC."""

    column: str
    low: datetime
    high: datetime


@dataclass(frozen=True, slots=True)
class Read:
    """One read of a table's pre-state (`old`) or post-state (`new`); of all rows if `range` is None."""

    table: str
    row_set: str
    range: Range | None
