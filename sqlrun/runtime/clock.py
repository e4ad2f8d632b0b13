"""Times and durations as texts. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from sqlrun.errors import UsageError


def floor(moment: datetime, step: timedelta) -> datetime:
    """Return a time rounded down to a multiple of `step`.

    >>> floor(datetime(2026, 1, 1, 12, 7, tzinfo=timezone.utc), timedelta(minutes=5)).minute
    5
    """
    start = datetime(2000, 1, 1, tzinfo=timezone.utc)
    return start + (moment - start) // step * step


_FRACTION = re.compile(r"\.[0-9]{1,6}(?![0-9])")


def parse_time(text: str) -> datetime:
    """Return the UTC time of an ISO text. A zone is optional, a fraction of a second has up to 6 digits.

    Raises: ValueError for any other text.

    >>> parse_time("2026-01-01T12:00:00.9999").microsecond
    999900
    """
    # Python 3.10 reads fractions of 3 and of 6 digits only.
    padded = _FRACTION.sub(lambda found: f"{found[0]:0<7}", text.strip())
    moment = datetime.fromisoformat(padded.replace("Z", "+00:00"))
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)


MINUTES_PER_DAY = 24 * 60


_UNITS = {"m": 1, "h": 60, "d": MINUTES_PER_DAY}


def parse_duration(text: str) -> int:
    """Return the minutes of `5m`, `1h` or `1d`.

    Raises: UsageError for other text, and for a duration that doesn't divide a day: the times of files must be the
    same every day.

    >>> parse_duration("1h")
    60
    """
    match = re.fullmatch(r"([0-9]{1,6})([mhd])", text)
    minutes = int(match[1]) * _UNITS[match[2]] if match else 0
    if not minutes or MINUTES_PER_DAY % minutes:
        raise UsageError(f"`{text}` isn't a valid step. Write a duration that divides a day, such as 5m, 1h or 1d.")
    return minutes
