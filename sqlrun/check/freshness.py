"""The outcome of an age by declared limits, as text and as a value. Pure."""

from __future__ import annotations

from datetime import datetime

from sqlrun.outcome import Outcome
from sqlrun.project import Freshness
from sqlrun.system_tables.anomalies import duration


def outcome(age: float | None, declared: Freshness) -> Outcome:
    """Return the outcome for an age in seconds; a table without any event fails every limit."""
    if declared.error_after is not None and (age is None or age > declared.error_after):
        return Outcome.FAIL
    if declared.warn_after is not None and (age is None or age > declared.warn_after):
        return Outcome.WARN
    return Outcome.PASS


def message(newest: datetime | None, age: float | None, declared: Freshness) -> str:
    """Return what a tick says about the newest event before it."""
    allowed = limits(declared)
    if newest is None or age is None:
        return f"no event up to the time of the tick ({allowed})"
    return f"the newest event is from {newest:%Y-%m-%d %H:%M} UTC, {duration(age)} before the tick ({allowed})"


def limits(declared: Freshness) -> str:
    """Return the limits as text."""
    both = (("warning", declared.warn_after), ("error", declared.error_after))
    return ", ".join(f"{word} after {duration(limit)}" for word, limit in both if limit is not None)
