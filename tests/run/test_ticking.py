"""Options on times are parsed, or rejected before anything runs."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from sqlrun.errors import UsageError
from sqlrun.run.session import Times, step_of, time_of, times_of

NOTHING = {"as_of": None, "every": None, "replay": (), "step": "5m"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"as_of": "yesterday"}, "`yesterday` isn't a valid time"),
        ({"as_of": "2026-02-30T00:00"}, "isn't a valid time"),
        ({"every": "0m"}, "`0m` isn't a valid step"),
        ({"every": "five minutes"}, "isn't a valid step"),
        ({"step": "-5m"}, "isn't a valid step"),
        ({"replay": ("2026-01-02", "2026-01-01")}, "FROM must be before TO"),
        ({"replay": ("2026-01-02", "soon")}, "`soon` isn't a valid time"),
        ({"every": "5m", "as_of": "2026-01-01"}, "can't be combined"),
        ({"replay": ("2026-01-01", "2026-01-02"), "as_of": "2026-01-01"}, "can't be combined"),
    ],
)
def test_invalid_times_are_rejected(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        times_of({**NOTHING, **options})


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("options", "times"),
    [
        ({}, Times(timedelta(minutes=5))),
        ({"as_of": "2026-01-31T12:05"}, Times(timedelta(minutes=5), as_of=at("2026-01-31T12:05"))),
        ({"every": "30s"}, Times(timedelta(seconds=30), is_endless=True)),
        (
            {"replay": ("2026-01-01", "2026-01-01"), "step": "1h"},
            Times(timedelta(hours=1), replay=(at("2026-01-01"), at("2026-01-01"))),
        ),
    ],
)
def test_valid_times_are_parsed_once(options: dict[str, Any], times: Times) -> None:
    assert times_of({**NOTHING, **options}) == times


def test_times_are_utc_and_steps_have_units() -> None:
    noon = datetime(2026, 1, 31, 12, 0, tzinfo=timezone.utc)

    assert time_of("2026-01-31T12:00") == time_of("2026-01-31T12:00Z") == time_of("2026-01-31T13:00+01:00") == noon
    assert [step_of(text) for text in ("30s", "5m", "1h", "1d")] == [
        timedelta(seconds=30), timedelta(minutes=5), timedelta(hours=1), timedelta(days=1),
    ]  # fmt: skip
