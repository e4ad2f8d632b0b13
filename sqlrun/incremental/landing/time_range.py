"""The range of dates and times that Python, Delta, Parquet and both engines can write and read. Pure.

DuckDB and Spark count far beyond it, into years that no `datetime` has. A value outside never lands. Where an engine's
own arithmetic leaves the range, the reader of the value checks it here.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

FIRST_DATE, LAST_DATE = date.min, date.max
FIRST_TIME, LAST_TIME = (end.replace(tzinfo=timezone.utc) for end in (datetime.min, datetime.max))
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROSECOND = timedelta(microseconds=1)
# The bounds as counts from 1970, as Parquet, Arrow and both engines store them.
FIRST_DAY, LAST_DAY = (FIRST_DATE - EPOCH.date()).days, (LAST_DATE - EPOCH.date()).days
FIRST_MICROSECOND, LAST_MICROSECOND = ((end - EPOCH) // MICROSECOND for end in (FIRST_TIME, LAST_TIME))


def day(count: int) -> date | None:
    """Return the date `count` days after 1970-01-01; None if it is out of range.

    >>> day(0), day(LAST_DAY), day(LAST_DAY + 1)
    (datetime.date(1970, 1, 1), datetime.date(9999, 12, 31), None)
    """
    return EPOCH.date() + timedelta(days=count) if FIRST_DAY <= count <= LAST_DAY else None


def moment(count: int) -> datetime | None:
    """Return the UTC time `count` microseconds after 1970-01-01; None if it is out of range.

    >>> moment(1), moment(FIRST_MICROSECOND - 1)
    (datetime.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=datetime.timezone.utc), None)
    """
    inside = FIRST_MICROSECOND <= count <= LAST_MICROSECOND
    return EPOCH + timedelta(microseconds=count) if inside else None


def shifted(time: datetime, by: timedelta) -> datetime:
    """Return `time` moved by a span, clamped to the range.

    >>> shifted(LAST_TIME, timedelta(seconds=1)) == LAST_TIME
    True
    """
    try:
        return time + by
    except OverflowError:
        return LAST_TIME if by > timedelta(0) else FIRST_TIME
