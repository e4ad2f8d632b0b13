"""Texts that Spark reads by its own clock are refused as literals, and aren't times as data."""

from __future__ import annotations

from datetime import date, datetime

import duckdb
import pytest

from sqlrun.errors import ProjectError
from tests.support import memory
from tests.support.memory import Memory, Table, View

pytestmark = pytest.mark.slow

T = Table("t0", (("k", "int"), ("s", "string"), ("at", "timestamp"), ("day", "date")), ("k",))


@pytest.mark.parametrize("word", ["now", "today", "Tomorrow", " YESTERDAY ", "epoch", "12:30", "T04:05:06"])
@pytest.mark.parametrize(
    "text",
    [
        "timestamp({0})", "date {0}", "cast({0} as timestamp)", "{0}::date", "to_timestamp({0})", "to_date({0})",
        "try_cast({0} as timestamp)", "cast(trim({0}) as timestamp)", "at > {0}", "{0} <= day", "at in ({0})",
        "at between {0} and current_timestamp()", "coalesce(at, {0})", "date_trunc('hour', {0})", "hour({0})",
        "datediff(day, {0})", "case when k > 1 then at else {0} end", "nullif(at, {0})", "unix_timestamp({0})",
    ],
)  # fmt: skip
def test_a_special_time_is_refused(word: str, text: str) -> None:
    """With SR501, for any conversion to a time."""
    with pytest.raises(ProjectError) as caught:
        Memory([T], [View("v1", f"select k, {text.format(repr(word))} as x from t0")])

    assert {problem.code for problem in caught.value.problems} == {"SR501"}


def test_a_computed_constant_is_refused() -> None:
    """Spark computes it before it reads the time."""
    with pytest.raises(ProjectError) as caught:
        Memory([T], [View("v1", "select k, cast(concat('n', 'ow') as timestamp) as x from t0")])

    assert {problem.code for problem in caught.value.problems} == {"SR501"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cast(from_utc_timestamp(current_timestamp(), 'America/New_York') as date)", date(2025, 12, 31)),
        (
            "to_timestamp(timestampadd(day, -1, to_date(from_utc_timestamp(now(), 'Asia/Tokyo'))))",
            datetime(2025, 12, 31),
        ),
    ],
)
def test_a_time_computed_from_the_ticks_is_accepted(text: str, expected: date) -> None:
    """A text in it names a zone or a unit; the tick is of midnight UTC."""
    made = Memory([T], [View("v1", f"select k, {text} as x from t0")])
    made.change("t0", [(1, ("1", "a", None, None))])
    made.step(memory.START)

    ((_, found),) = set(made.kept("v1"))
    assert (found.replace(tzinfo=None) if isinstance(found, datetime) else found) == expected


@pytest.mark.parametrize("text", ["concat('n', 'ow', current_date())", "substr('now', 1, 3)"])
def test_a_text_is_refused_although_the_ticks_time_is_in_it(text: str) -> None:
    with pytest.raises(ProjectError) as caught:
        Memory([T], [View("v1", f"select k, cast({text} as timestamp) as x from t0")])

    assert {problem.code for problem in caught.value.problems} == {"SR501"}


@pytest.mark.parametrize(
    "text", ["s = 'now'", "concat('now', s)", "s in ('today', 'epoch')", "case s when 'now' then 1 end"]
)
def test_a_special_text_that_stays_text_is_accepted(text: str) -> None:
    Memory([T], [View("v1", f"select k, {text} as x from t0")])


@pytest.mark.parametrize("word", ["now", "today", "epoch", "infinity", "-infinity", " Epoch"])
@pytest.mark.parametrize("kind", ["timestamp", "date"])
def test_a_special_value_in_data_is_not_a_time(word: str, kind: str) -> None:
    """Spark calls it malformed, and try_cast returns NULL; DuckDB would read some."""
    tried = Memory([T], [View("v1", f"select k, try_cast(s as {kind}) as x from t0")])
    tried.change("t0", [(1, ("1", word, None, None))])
    tried.step(memory.START)
    assert set(tried.kept("v1")) == {(1, None)}

    cast = Memory([T], [View("v1", f"select k, cast(s as {kind}) as x from t0")])
    cast.change("t0", [(1, ("1", word, None, None))])
    with pytest.raises(duckdb.Error):
        cast.step(memory.START)
