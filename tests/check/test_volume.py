"""Volume of landed rows against the same hour of past weeks: within declared shares, and never a silent pass."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from sqlrun.check import great_expectations
from sqlrun.check.volume import Usual, breach, usual
from sqlrun.errors import EngineError
from sqlrun.events import Measure
from sqlrun.expectations.catalogue import CATALOGUE, VOLUME
from sqlrun.system_tables import measures
from sqlrun.system_tables.anomalies import Past
from sqlrun.system_tables.measure_history import History

ROOT = Path(__file__).parents[2]
WEEK = timedelta(weeks=1)
SUNDAY = datetime(2026, 3, 15, 11, 30, tzinfo=timezone.utc)


def test_a_rate_covers_all_ticks_of_the_hour() -> None:
    """Ticks of 5 minutes and one of 20; other hours, days and weeks don't count."""
    ago = SUNDAY - WEEK
    past = [Past(ago, 100.0, 300.0), Past(ago + timedelta(minutes=10), 200.0, 1200.0)]
    others = [ago + timedelta(hours=1), ago - timedelta(days=1), ago - WEEK, SUNDAY - timedelta(minutes=5)]
    past += [Past(at, 9e9, 300.0) for at in others]

    found = usual(past, SUNDAY, 300.0)

    assert found == Usual(60.0, "Sunday 11:00 to 12:00 UTC, 1 week ago")
    two = usual([*past[:2], Past(ago - WEEK, 0.0, 1500.0)], SUNDAY, 300.0, 2)
    assert two == Usual(30.0, "Sunday 11:00 to 12:00 UTC, 1 to 2 weeks ago")


@pytest.mark.parametrize(
    ("past", "interval", "said"),
    [
        ([], 300.0, "no history yet"),
        ([Past(SUNDAY - WEEK, 7.0, None)], 300.0, "no history yet"),
        ([Past(SUNDAY - WEEK, 0.0, 300.0)], 300.0, "no rows landed in that period"),
        ([Past(SUNDAY - WEEK, 7.0, 300.0)], None, "this is the first tick of the table"),
    ],
)
def test_an_unknown_usual_volume_has_a_reason(past: list[Past], interval: float | None, said: str) -> None:
    found = usual(past, SUNDAY, interval)

    assert isinstance(found, str) and found.startswith(said)


def test_shares_include_their_bounds() -> None:
    hour = Usual(400.0, "Sunday")

    kept = [count for count in (0, 199, 200, 600, 601) if not breach(count, hour, 0.5, 1.5)]
    assert kept == [200, 600]
    assert [breach(count, hour, None, 1.5) == "" for count in (0, 601)] == [True, False]


def test_an_unreadable_history_is_never_taken_for_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a declared check it is reported once; a declared check is an error each time."""

    def fail(*_: object, **__: object) -> None:
        raise EngineError("torn")

    monkeypatch.setattr(measures, "table", fail)
    history, measure = History(str(tmp_path), "", SUNDAY), Measure("stg", "rows", 1.0, None, 300.0)

    with pytest.raises(EngineError):
        history.same_hour(measure, SUNDAY)
    assert history.same_hour(measure, SUNDAY) == []
    for _ in range(2):
        with pytest.raises(EngineError, match="torn"):
            history.same_hour_or_error(measure, SUNDAY)


@pytest.mark.slow  # Great Expectations is imported
def test_great_expectations_loads_every_suite_except_sqlruns_own_types() -> None:
    import yaml

    gx = great_expectations._great_expectations()
    for file in (ROOT / "expectations").rglob("*.yml"):
        declared = yaml.safe_load(file.read_text())["expectations"]
        keys = ("type", "kwargs", "severity", "description")
        asked = [{key: one[key] for key in keys if key in one} for one in declared]
        suite = gx.ExpectationSuite(name=file.stem, expectations=asked)
        assert [one.expectation_type for one in suite.expectations] == [
            one["type"] for one in declared if one["type"] != VOLUME
        ]
    assert CATALOGUE[VOLUME].scope == "past"
