"""Expected ranges of measures from their history by hour of the week, and unusual values. Pure.

A tick is compared with ticks that covered about as much time (half to twice), because the replay of an hour isn't
comparable with five minutes; counts are scaled by the time. All hours are UTC: daylight saving time moves the rhythm
by an hour.

The expected range is the median, widened by the spread of the values (median absolute deviation), by statistical noise
(few rows vary more than many) and by a minimum share of the median. A value that most past weeks reached is never
unusual: a source that sends every half hour has two levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import NamedTuple

from sqlrun.events import Measure

DAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
NOT_ENOUGH = "not enough history"
# Minimum number of values, of weeks or days, and of recent values for a range; maximum number of recent values.
FEWEST, FEWEST_GROUPS, FEWEST_RECENT, MOST_RECENT = 4, 3, 6, 12
# Minimum number of values for a comparison by quarter of an hour.
ENOUGH = 9
DAYS_BACK, RECENT = timedelta(days=14), timedelta(days=1)
# Of normally distributed values one in 16,000 lies outside; the standard deviation is MAD times 1.48.
DEVIATIONS, OF_MAD = 4.0, 1.4826
# Two ticks are comparable if their durations differ at most by this factor.
ALIKE = 2.0


class Past(NamedTuple):
    """A measure's value in an earlier published tick. `middle`: of the time that the tick covered."""

    middle: datetime
    value: float
    interval_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Band:
    """An expected range; `like` describes the ticks that it comes from: `Sundays 11:00 to 12:00 UTC, 6 weeks`."""

    low: float
    high: float
    like: str


@dataclass(frozen=True, slots=True)
class Kind:
    """How a measure is compared. `check` is the type of its check.

    `scaled`: it grows with the time that a tick covers. `timed`: it is compared only among ticks of similar length.
    `only_more`: only values above the range are unusual. `chance` returns the noise of a value from `rows` rows.
    """

    check: str
    chance: Callable[[float, float], float]
    scaled: bool = False
    timed: bool = True
    only_more: bool = False


def _of_count(value: float, rows: float) -> float:
    """Return the noise of a count (Poisson)."""
    del rows
    return DEVIATIONS * math.sqrt(max(value, 1.0))


def _of_share(value: float, rows: float) -> float:
    """Return the noise of a share of `rows` rows, at least 2 %."""
    rows = max(rows, 1.0)
    near = min(max(value, 1 / rows), 1 - 1 / rows) if rows > 2 else 0.5
    return max(0.02, DEVIATIONS * math.sqrt(near * (1 - near) / rows))


def _of_seconds(value: float, rows: float) -> float:
    """Return the noise of a lateness: a minute, which harms no reader."""
    del value, rows
    return 60.0


KINDS: Mapping[str, Kind] = {
    "rows": Kind("volume", _of_count, scaled=True),
    "quarantined": Kind("quarantined", _of_count, scaled=True, only_more=True),
    "lateness_p95_seconds": Kind("lateness", _of_seconds, only_more=True),
    "null_share": Kind("null_share", _of_share, timed=False),
}


def kind_of(measure: str) -> Kind | None:
    """Return how a measure is compared; None if it isn't compared.

    >>> kind_of("null_share:amount").check
    'null_share'
    """
    return KINDS.get(measure.partition(":")[0])


def judged(measure: Measure, at: datetime, past: Sequence[Past], rows: float = 0.0) -> tuple[Measure, Band | None]:
    """Compare a measure with its history; without enough history there is no band and no verdict.

    `at` is the midpoint of the time that the tick covers; `rows`: number of rows that the value comes from.
    """
    kind = kind_of(measure.measure)
    if kind is None or measure.value is None or not math.isfinite(measure.value):
        return measure, None
    band = expected(kind, at, measure.interval_seconds, past, rows)
    if band is None:
        return replace(measure, detail=NOT_ENOUGH), None
    low = 0.0 if kind.only_more else band.low
    unusual = not low <= measure.value <= band.high
    return replace(measure, low=low, high=band.high, unusual=unusual, detail=band.like), band


def expected(kind: Kind, at: datetime, interval: float | None, past: Iterable[Past], rows: float = 0.0) -> Band | None:
    """Return the range by the same hour of the week, else of the day, else by the last day; None: too few values.

    >>> weeks = [Past(datetime(2026, 3, 15, 11, 30) - timedelta(weeks=n), 100.0, 300.0) for n in range(1, 5)]
    >>> expected(KINDS["rows"], datetime(2026, 3, 15, 11, 30), 300.0, weeks)
    Band(low=60.0, high=140.0, like='Sundays 11:00 to 12:00 UTC, 4 weeks')
    """
    same_hour = [each for each in past if each.middle.hour == at.hour and each.middle.date() < at.date()]
    same_week = [each for each in same_hour if each.middle.weekday() == at.weekday()]
    lately = [each for each in same_hour if at - each.middle <= DAYS_BACK]
    for among, days, what, share in ((same_week, DAYS[at.weekday()], "weeks", 0.25), (lately, "daily", "days", 0.45)):
        found, span = _same_time(_alike(kind, among, interval), at)
        groups = _grouped(found, lambda each: each.middle.date())
        if len(found) >= FEWEST and len(groups) >= FEWEST_GROUPS:
            return _band(kind, groups, share, f"{days} {span}, {len(groups)} {what}", rows)
    recent = _alike(kind, (each for each in past if at - RECENT <= each.middle < at), interval)
    recent = sorted(recent, key=lambda each: each.middle)[-MOST_RECENT:]
    if len(recent) >= FEWEST_RECENT:
        hours = _grouped(recent, lambda each: (each.middle.date(), each.middle.hour))
        return _band(kind, hours, 0.45, f"the last {len(recent)} ticks", rows)
    return None


def _same_time(among: list[Past], at: datetime) -> tuple[list[Past], str]:
    """Return values of the same quarter of an hour if there are enough: volume changes within an hour before lunch."""
    start, minutes = at.replace(minute=at.minute // 15 * 15), 15
    found = [each for each in among if each.middle.minute // 15 == at.minute // 15]
    if len(found) < ENOUGH or len({each.middle.date() for each in found}) < FEWEST_GROUPS:
        start, minutes, found = at.replace(minute=0), 60, among
    return found, f"{start:%H:%M} to {start + timedelta(minutes=minutes):%H:%M} UTC"


def _alike(kind: Kind, past: Iterable[Past], interval: float | None) -> list[Past]:
    """Return the values of ticks of similar length, scaled to this tick's length, without NaN and infinity."""
    known = [each for each in past if math.isfinite(each.value)]
    if not kind.timed:
        return known
    if not interval:
        return []
    found = []
    for each in known:
        ratio = interval / each.interval_seconds if each.interval_seconds else 0.0
        if 1 / ALIKE <= ratio <= ALIKE:
            found.append(Past(each.middle, each.value * ratio, interval) if kind.scaled else each)
    return found


def _grouped(past: Iterable[Past], key: Callable[[Past], object]) -> list[list[float]]:
    found: dict[object, list[float]] = {}
    for each in past:
        found.setdefault(key(each), []).append(each.value)
    return list(found.values())


def _band(kind: Kind, groups: Sequence[Sequence[float]], share: float, like: str, rows: float) -> Band:
    """Return the range around grouped values; a share of the median in one direction is doubled in the other.

    One unusual group of weeks, such as an outage, changes neither the medians nor the level that most groups reach.
    """
    values = [value for group in groups for value in group]
    middle = median(values)
    strays = DEVIATIONS * OF_MAD * median(abs(value - middle) for value in values)
    other_environments = max(strays, kind.chance(middle, rows))
    low, high = (
        middle - max(other_environments, share * middle),
        middle + max(other_environments, share / (1 - share) * middle),
    )
    low = min(low, median(min(group) for group in groups))
    high = max(high, median(max(group) for group in groups))
    return Band(max(0.0, low), high, like)


def message(measure: Measure, band: Band) -> str:
    """Return a message with the measured and the expected values.

    >>> message(Measure("m", "rows", 11.0), Band(239.6, 410.2, "Sundays 11:00 to 12:00 UTC, 6 weeks"))
    '11 rows, 239 to 411 expected (Sundays 11:00 to 12:00 UTC, 6 weeks)'
    """
    value, name = measure.value or 0.0, measure.measure.partition(":")
    low, high = measure.low if measure.low is not None else band.low, band.high
    match name[0]:
        case "rows":
            text = f"{value:,.0f} rows, {math.floor(low):,} to {math.ceil(high):,} expected"
        case "quarantined":
            text = f"{value:,.0f} lines quarantined, at most {math.ceil(high):,} expected"
        case "null_share":
            text = f"{_percent(value)} NULL, {_percent(low)} to {_percent(min(high, 1.0))} expected"
        case _:
            text = f"5 in 100 lines came {duration(value)} late or more, at most {duration(high)} expected"
    return f"{text} ({band.like})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def duration(seconds: float) -> str:
    """Return a time span as text, in its two largest units.

    >>> duration(59), duration(3660), duration(90000), duration(-5)
    ('59 s', '1 h 1 min', '1 d 1 h', '-5 s')
    """
    sign, rest = ("-" if seconds < 0 else ""), round(abs(seconds))
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return sign + " ".join(parts[:2])
