"""The history of the same hour decides what is unusual; without enough history there is no verdict."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

import pytest

from sqlrun.events import Measure
from sqlrun.system_tables.anomalies import KINDS, NOT_ENOUGH, Band, Past, expected, judged, kind_of, message

# A Sunday: the middle of a tick of five minutes.
NOW = datetime(2026, 3, 29, 11, 32, 30, tzinfo=timezone.utc)
WEEK, DAY, HOUR, FIVE = timedelta(weeks=1), timedelta(days=1), timedelta(hours=1), timedelta(minutes=5)


def hours(at: datetime, values: list[float], interval: float = 300.0) -> list[Past]:
    """Return ticks of five minutes, from the start of an hour."""
    start = at.replace(minute=2)
    return [Past(start + n * FIVE, value, interval) for n, value in enumerate(values)]


def weeks(values: list[float], count: int = 6) -> list[Past]:
    return [each for n in range(1, count + 1) for each in hours(NOW - n * WEEK, values)]


def rows(value: float | None, past: list[Past], interval: float | None = 300.0) -> Measure:
    measure = Measure("stg", "rows", value, interval_seconds=interval)
    return judged(measure, NOW, past)[0]


WAVY = [90.0, 110.0, 95.0, 105.0, 100.0, 100.0, 98.0, 102.0, 97.0, 103.0, 100.0, 100.0]


def test_half_the_usual_volume_is_unusual() -> None:
    past = weeks(WAVY)

    assert not any(rows(value, past).unusual for value in (90.0, 100.0, 110.0))
    assert rows(50.0, past).unusual and rows(0.0, past).unusual and rows(200.0, past).unusual
    assert rows(50.0, past).detail == "Sundays 11:30 to 11:45 UTC, 6 weeks"
    hourly = [Past(NOW - n * WEEK, 1200.0, 3600.0) for n in range(1, 7)]
    assert rows(600.0, hourly, interval=3600.0).detail == "Sundays 11:00 to 12:00 UTC, 6 weeks"
    assert rows(600.0, hourly, interval=3600.0).unusual


def test_values_are_compared_by_quarter_hour_when_an_hour_has_a_slope() -> None:
    past = weeks([20.0, 20.0, 25.0, 30.0, 40.0, 60.0, 100.0, 105.0, 110.0, 120.0, 130.0, 140.0])

    assert rows(45.0, past).unusual and not rows(105.0, past).unusual


def test_days_that_differ_are_compared_by_hour_of_the_week() -> None:
    """Sundays have a third of other days' volume at that hour, and the neighboring hours are quiet."""
    past = [
        Past(NOW - n * DAY, 100.0 if n % 7 == 0 else 300.0, 300.0) for n in range(1, 43)
    ] + [Past(NOW - n * DAY + HOUR, 5.0, 300.0) for n in range(1, 43)]  # fmt: skip

    assert not rows(100.0, past).unusual
    assert rows(300.0, past).unusual
    assert rows(5.0, past).unusual


def test_fewer_weeks_fall_back_to_the_hour_of_the_day_then_to_recent_ticks_then_to_nothing() -> None:
    daily = [Past(NOW - n * DAY, 100.0, 300.0) for n in range(1, 6)]
    recent = [Past(NOW - n * FIVE, 100.0, 300.0) for n in range(1, 13)]

    assert rows(50.0, daily).detail == "daily 11:00 to 12:00 UTC, 5 days"
    assert rows(50.0, recent).detail == "the last 12 ticks"
    assert rows(50.0, daily).unusual and rows(50.0, recent).unusual
    for past in (recent[:5], daily[:2], []):
        said = rows(50.0, past)
        assert (said.unusual, said.low, said.high, said.detail) == (False, None, None, NOT_ENOUGH)


def test_an_outage_in_one_week_hides_no_other_one() -> None:
    past = [each if (NOW - each.middle) // WEEK != 2 else Past(each.middle, 0.0, 300.0) for each in weeks(WAVY)]

    assert rows(0.0, past).unusual and rows(50.0, past).unusual
    assert not rows(95.0, past).unusual


def test_an_intermittent_source_is_usual_in_both_states() -> None:
    past = weeks([0.0, 0.0, 300.0] * 4)

    assert not rows(0.0, past).unusual and not rows(300.0, past).unusual
    assert rows(900.0, past).unusual


def test_constant_values_leave_some_tolerance() -> None:
    past = weeks([1000.0] * 12)

    assert not rows(1000.0, past).unusual and not rows(900.0, past).unusual
    assert rows(500.0, past).unusual


def test_few_rows_vary_by_statistical_noise() -> None:
    assert not rows(2.0, weeks([8.0] * 12)).unusual
    assert not rows(3.0, weeks([0.0] * 12)).unusual


def test_ticks_are_compared_with_ticks_of_about_their_length() -> None:
    past = weeks(WAVY)

    assert rows(1200.0, past, interval=3600.0).detail == NOT_ENOUGH
    assert rows(100.0, past, interval=None).detail == NOT_ENOUGH
    assert not rows(200.0, past, interval=600.0).unusual
    assert rows(100.0, past, interval=600.0).unusual  # half of the usual volume of ten minutes


@pytest.mark.parametrize("value", [math.nan, math.inf, None])
def test_nan_is_neither_compared_nor_history(value: float | None) -> None:
    past = weeks(WAVY)
    if value is not None:
        past += [Past(each.middle, value, 300.0) for each in past]

    assert rows(value, past).low is None and not rows(value, past).unusual
    assert rows(50.0, past).unusual and not rows(100.0, past).unusual


def test_later_values_are_not_history() -> None:
    later = [Past(NOW + n * WEEK, 100.0, 300.0) for n in range(6)]

    assert rows(50.0, later).detail == NOT_ENOUGH


def test_the_hour_is_utc_whatever_clocks_are_changed() -> None:
    """On 2026-03-29 Europe's clocks go forward at 01:00 UTC; hours in UTC have no gap and no repetition."""
    past = [Past(NOW - n * WEEK, 100.0, 300.0) for n in range(1, 7)]
    past += [Past(NOW - n * WEEK + HOUR, 10.0, 300.0) for n in range(1, 7)]

    assert not rows(100.0, past).unusual and rows(10.0, past).unusual


def test_midnight_has_an_hour_of_its_own() -> None:
    at = datetime(2026, 3, 29, 23, 57, 30, tzinfo=timezone.utc)
    past = [Past(at - n * WEEK, 100.0, 300.0) for n in range(1, 7)]

    band = expected(KINDS["rows"], at, 300.0, past)

    assert band is not None and band.like == "Sundays 23:00 to 00:00 UTC, 6 weeks"


def shares(value: float, past: float, count: float) -> Measure:
    kept = [Past(NOW - n * WEEK, past, None) for n in range(1, 7)]
    return judged(Measure("fct", "null_share:amount", value), NOW, kept, count)[0]


def test_a_share_of_few_rows_has_a_wide_range() -> None:
    assert shares(0.4, 0.01, 1000).unusual
    assert not shares(1.0, 0.1, 1).unusual
    assert not shares(0.02, 0.0, 10_000).unusual
    assert shares(0.0, 0.5, 1000).unusual  # the disappearance of NULLs is a change, too


def test_lateness_and_quarantined_lines_are_unusual_only_upwards() -> None:
    past = [Past(NOW - n * WEEK, 600.0, 300.0) for n in range(1, 7)]
    for name in ("lateness_p95_seconds", "quarantined"):
        little, much = (judged(Measure("stg", name, value, None, 300.0), NOW, past)[0] for value in (0.0, 6000.0))
        assert not little.unusual and little.low == 0.0
        assert much.unusual


def test_messages_name_measured_and_expected_values() -> None:
    band = Band(0.0, 0.0612, "Sundays 11:00 to 12:00 UTC, 6 weeks")

    assert message(Measure("m", "null_share:amount", 0.4), band) == (
        "40 % NULL, 0 % to 6.1 % expected (Sundays 11:00 to 12:00 UTC, 6 weeks)"
    )
    late = message(Measure("m", "lateness_p95_seconds", 7500.0), Band(0.0, 700.0, "the last 12 ticks"))
    assert late == "5 in 100 lines came 2 h 5 min late or more, at most 11 min 40 s expected (the last 12 ticks)"
    quarantined = message(Measure("m", "quarantined", 70.0), Band(0.0, 4.0, "the last 12 ticks"))
    assert quarantined == "70 lines quarantined, at most 4 expected (the last 12 ticks)"
    assert kind_of("files") is None
