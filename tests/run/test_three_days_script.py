"""The script of the three days is as described: the plain-Python oracle alone proves each crafted event."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import pytest

from tests.support import oracle
from tests.support.script import FIVE, START, Play, crafted, order, plays

pytestmark = pytest.mark.slow  # like the test that plays it
HOUR, DAY, WEEK = oracle.WINDOW_HOURS


@cache
def script() -> tuple[Play, ...]:
    return tuple(plays(24))


@cache
def until(number: int) -> tuple[str, ...]:
    """Return all lines that have arrived by the tick with this place in the script."""
    return tuple(line.strip() for play in script()[: number + 1] for line in play.lines or () if line.strip())


@cache
def mart(number: int) -> dict[tuple[int, str], dict[str, Any]]:
    return oracle.mart(until(number), script()[number].as_of)


def arrivals(order_id: str, version: int) -> list[int]:
    """Return the places in the script at which an event arrives."""
    found = []
    for number, play in enumerate(script()):
        for line in play.lines or ():
            if f'"event_id": "{order_id}-{version}"' in line:
                found.append(number)
    return found


def event(order_id: str, version: int) -> dict[str, Any]:
    number = arrivals(order_id, version)[0]
    line = next(one for one in script()[number].lines or () if f'"event_id": "{order_id}-{version}"' in one)
    made: dict[str, Any] = json.loads(line)
    return made


def ordered_at(order_id: str, version: int) -> datetime:
    return oracle.timestamp(event(order_id, version), "ordered_at")


def inside(moment: datetime, hours: int, as_of: datetime) -> bool:
    return as_of - timedelta(hours=hours) < moment <= as_of


@pytest.mark.parametrize(
    ("order_id", "late_by", "hours", "not_in"),
    [
        ("x10", timedelta(minutes=30), HOUR, 0),
        ("x11", timedelta(hours=5), DAY, HOUR),
        ("x12", timedelta(days=2.9), WEEK, DAY),
    ],
    ids=["hour", "day", "week"],
)
def test_an_order_is_late_for_each_window(order_id: str, late_by: timedelta, hours: int, not_in: int) -> None:
    """It belongs to windows that were published without it, and to no narrower one."""
    number = arrivals(order_id, 1)[0]
    as_of, moment = script()[number].as_of, ordered_at(order_id, 1)

    assert as_of - moment >= late_by
    assert inside(moment, hours, script()[number - 1].as_of) and inside(moment, hours, as_of)
    assert not_in == 0 or not inside(moment, not_in, as_of)


def test_a_line_comes_twice_in_two_ticks() -> None:
    """The repeated line is the same text, and its restaurant still has one order."""
    first, second = arrivals("x20", 1)

    assert first < second
    assert mart(first)[HOUR, "r9002"] == mart(second)[HOUR, "r9002"]
    assert mart(second)[HOUR, "r9002"]["n_orders"] == 1
    assert Counter(until(second))[order("20", ordered_at("x20", 1), restaurant="r9002")] == 2


def test_a_correction_moves_an_order_to_another_dish() -> None:
    """The dishes before and after have none in common, and both were published."""
    dishes = [{item["dish_id"] for item in event("x30", version)["items"]} for version in (1, 2)]

    assert arrivals("x30", 1)[0] < arrivals("x30", 2)[0]
    assert not dishes[0] & dishes[1]


def test_a_correction_moves_an_order_to_another_hour() -> None:
    """It was outside the one-hour window, and is inside after the correction."""
    before, after = ordered_at("x31", 1), ordered_at("x31", 2)
    first, second = arrivals("x31", 1)[0], arrivals("x31", 2)[0]

    assert before.replace(minute=0) != after.replace(minute=0)
    assert not inside(before, HOUR, script()[first].as_of)
    assert inside(after, HOUR, script()[second].as_of)


def test_the_last_order_of_a_restaurant_is_cancelled() -> None:
    """The restaurant is in the mart, and is gone from all windows in the tick of the cancellation."""
    cancelled = arrivals("x40", 2)[0]

    assert mart(cancelled - 1)[HOUR, "r9003"]["n_orders"] == 1
    assert not [key for key in mart(cancelled) if key[1] == "r9003"]


def test_an_order_is_corrected_in_the_tick_in_which_it_leaves() -> None:
    """In the window with its old value one tick before; in the next, corrected and outside of it."""
    number = arrivals("x50", 2)[0]
    before, after = script()[number - 1].as_of, script()[number].as_of

    assert arrivals("x50", 1)[0] < number
    assert inside(ordered_at("x50", 1), HOUR, before) and (HOUR, "r9004") in mart(number - 1)
    assert not inside(ordered_at("x50", 2), HOUR, after) and (HOUR, "r9004") not in mart(number)
    assert mart(number - 1)[DAY, "r9004"] != mart(number)[DAY, "r9004"]


def test_a_stale_version_comes_after_a_newer_one() -> None:
    """The first version arrives again after the second one, which stays."""
    newer, stale = arrivals("x30", 2)[0], arrivals("x30", 1)[-1]

    assert newer < stale
    assert oracle.latest_versions(until(stale))["x30"].version == 2


def test_a_future_dated_order_enters_later() -> None:
    """It has arrived before a tick that doesn't count it; a later tick does, without a new event."""
    came, moment = arrivals("x60", 1)[0], ordered_at("x60", 1)
    entered = next(number for number, play in enumerate(script()) if play.as_of >= moment)

    assert entered > came + 1 and arrivals("x60", 1) == [came]
    assert not [key for key in mart(entered - 1) if key[1] == "r9005"]
    assert mart(entered)[HOUR, "r9005"]["n_orders"] == 1


def test_dishes_tie_at_rank_three() -> None:
    """The third dish has an equal one below it."""
    number = arrivals("x70", 1)[0]
    quantities = sorted((item["quantity"] for item in event("x70", 1)["items"]), reverse=True)

    assert quantities[2] == quantities[3]
    assert mart(number)[HOUR, "r9006"]["top_dishes"][2] == (3, "d003", 1)


def steps() -> Iterator[tuple[Play, timedelta]]:
    for before, after in zip(script(), script()[1:], strict=False):
        yield after, after.as_of - before.as_of


def test_ticks_are_skipped_empty_and_repeated() -> None:
    """Ten minutes between two ticks, a tick without a file, the same time twice; no line is lost."""
    gaps = Counter(gap for _, gap in steps())

    assert gaps == {FIVE: 22, 2 * FIVE: 1, timedelta(0): 1}
    assert [play.as_of for play, gap in steps() if play.lines is None and gap == FIVE] == [START + 9 * FIVE]
    assert Counter(line.strip() for _, line, _ in crafted(START)) <= Counter(until(len(script()) - 1))


def test_broken_lines_are_ignored() -> None:
    """One line that isn't JSON and one with a negative quantity."""
    broken = [line for line in until(len(script()) - 1) if '"x80"' in line or '"x81"' in line]

    assert len(broken) == 2
    for line in broken:
        with pytest.raises(oracle.Broken):
            oracle.parse(line)
