"""Times and days outside of Python's range, years 1 to 9999, which models compute and tables store. Pure.

Delta, Spark and DuckDB count microseconds and days from 1970 in 64 and 32 bits. Python's `datetime` ends at year 9999:
`ts + interval 1 day` over the usual sentinel, 9999-12-31, is outside of its range.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EPOCH_DAY = EPOCH.toordinal()
_DAY = 86_400_000_000
# Days in 400 years of the proleptic Gregorian calendar, after which it repeats.
_CYCLE = 146_097


@dataclass(frozen=True, slots=True, order=True)
class FarDay:
    """A day, counted from 1970-01-01; its text is Spark's.

    >>> str(FarDay(2932897)), str(FarDay(-719529))
    ('+10000-01-01', '-0001-12-31')
    """

    days: int

    def __str__(self) -> str:
        """Return Spark's text: a year without exactly four digits has a sign."""
        cycles, rest = divmod(self.days + _EPOCH_DAY - 1, _CYCLE)
        # A cycle starts in year 1 of Python's calendar, and all cycles are alike.
        day = date.fromordinal(rest + 1)
        year = day.year + 400 * cycles
        sign = "-" if year < 0 else "+" if year > 9999 else ""
        return f"{sign}{abs(year):04d}-{day.month:02d}-{day.day:02d}"


@dataclass(frozen=True, slots=True, order=True)
class FarTime:
    """A time, in microseconds from 1970-01-01; in UTC where its column has a zone.

    >>> str(FarTime(253402300800000000)), FarTime(-62135596800000001).text("T")
    ('+10000-01-01 00:00:00', '0000-12-31T23:59:59.999999')
    """

    micros: int

    def text(self, between: str = " ") -> str:
        """Return the text with a separator between day and time."""
        days, rest = divmod(self.micros, _DAY)
        clock = (datetime.min + timedelta(microseconds=rest)).time()
        return f"{FarDay(days)}{between}{clock.isoformat('microseconds' if clock.microsecond else 'seconds')}"

    def __str__(self) -> str:
        """Return the text with a blank between day and time."""
        return self.text()


def moment(micros: int, *, zoned: bool = True) -> datetime | FarTime:
    """Return a time, as Python's `datetime` if possible."""
    try:
        made = EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return FarTime(micros)
    return made if zoned else made.replace(tzinfo=None)


def day(days: int) -> date | FarDay:
    """Return a day, as Python's `date` if possible."""
    try:
        return date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError):
        return FarDay(days)


def micros(value: datetime) -> int:
    """Return the microseconds of a time since 1970; a time without a zone is in UTC."""
    zoned = value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value
    return (zoned - EPOCH) // timedelta(microseconds=1)


def ordered(value: Any) -> Any:
    """Return a value that compares with others of its column: times and days become numbers.

    >>> ordered(FarTime(1)) == ordered(datetime(1970, 1, 1, 0, 0, 0, 1))
    True
    """
    match value:
        case datetime():
            return micros(value)
        case FarTime():
            return value.micros
        case date():
            return value.toordinal() - _EPOCH_DAY
        case FarDay():
            return value.days
        case _:
            return value
