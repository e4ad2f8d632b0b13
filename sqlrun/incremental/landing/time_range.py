"""The dates and times that a table may hold: those that Python, Delta, Parquet and both engines write and read. Pure.

DuckDB and Spark both count far beyond, into years that no `datetime` has. What lies outside never lands; where an
engine's own arithmetic leads out of the range, whoever reads the value asks here.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

FIRST_DATE, LAST_DATE = date.min, date.max
FIRST_TIME, LAST_TIME = (end.replace(tzinfo=timezone.utc) for end in (datetime.min, datetime.max))
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROSECOND = timedelta(microseconds=1)
# The same ends as counts from 1970 on, as Parquet, Arrow and both engines store them.
FIRST_DAY, LAST_DAY = (FIRST_DATE - EPOCH.date()).days, (LAST_DATE - EPOCH.date()).days
FIRST_MICROSECOND, LAST_MICROSECOND = ((end - EPOCH) // MICROSECOND for end in (FIRST_TIME, LAST_TIME))


def day(count: int) -> date | None:
    """Return the date so many days from 1970; None where it lies outside of the range.

    >>> day(0), day(LAST_DAY), day(LAST_DAY + 1)
    (datetime.date(1970, 1, 1), datetime.date(9999, 12, 31), None)
    """
    return EPOCH.date() + timedelta(days=count) if FIRST_DAY <= count <= LAST_DAY else None


def moment(count: int) -> datetime | None:
    """Return the UTC time so many microseconds from 1970; None where it lies outside of the range.

    >>> moment(1), moment(FIRST_MICROSECOND - 1)
    (datetime.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=datetime.timezone.utc), None)
    """
    inside = FIRST_MICROSECOND <= count <= LAST_MICROSECOND
    return EPOCH + timedelta(microseconds=count) if inside else None


def shifted(time: datetime, by: timedelta) -> datetime:
    """Return a time moved by a span; where that leads out of the range, its end.

    >>> shifted(LAST_TIME, timedelta(seconds=1)) == LAST_TIME
    True
    """
    try:
        return time + by
    except OverflowError:
        return LAST_TIME if by > timedelta(0) else FIRST_TIME
