"""The oracle itself, on lines written by hand."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from tests.support import oracle

AS_OF = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)
NOON = "2026-11-21T12:00:00Z"


def item(dish_id: str = "d001", quantity: Any = 1, unit_price: Any = "10.00") -> dict[str, Any]:
    return {"dish_id": dish_id, "quantity": quantity, "unit_price": unit_price}


def line(**changes: Any) -> str:
    """Return a valid line with some keys changed; `...` removes a key."""
    event = {
        "event_id": "e1-1",
        "order_id": "o1",
        "version": 1,
        "restaurant_id": "r0001",
        "customer_id": "c000001",
        "ordered_at": NOON,
        "status": "placed",
        "items": [item()],
    } | changes
    return json.dumps({key: value for key, value in event.items() if value is not ...})


def hours_of(*lines: str) -> list[int]:
    return sorted(hours for hours, _ in oracle.mart(lines, AS_OF))


def test_one_order_counts_in_every_window():
    rows = oracle.mart([line(items=[item("d002", 2, "12.50"), item("d001", 1, "0.05")])], AS_OF)

    top = [(1, "d002", 2), (2, "d001", 1)]
    row = {"n_orders": 1, "n_customers": 1, "total_sales": Decimal("25.05"), "top_dishes": top}
    assert rows == {(1, "r0001"): row, (24, "r0001"): row, (168, "r0001"): row}


@pytest.mark.parametrize(
    ("ordered_at", "windows"),
    [
        ("2026-11-21T12:00:01Z", []),
        ("2026-11-21T12:00:00Z", [1, 24, 168]),
        ("2026-11-21T11:00:00.000001Z", [1, 24, 168]),
        ("2026-11-21T11:00:00Z", [24, 168]),
        ("2026-11-20T12:00:00Z", [168]),
        ("2026-11-14T12:00:00Z", []),
        ("2026-11-21 11:30:00", [1, 24, 168]),
        ("2026-11-21T13:30:00+02:00", [1, 24, 168]),
        ("2026-11-21T11:30:00-02:00", []),
    ],
)
def test_a_window_excludes_its_start_and_includes_its_end(ordered_at, windows):
    assert hours_of(line(ordered_at=ordered_at)) == windows


def test_the_latest_version_counts_whatever_the_order_of_arrival():
    first = line(items=[item("d001", 1)])
    second = line(event_id="e1-2", version=2, status="updated", items=[item("d002", 3)])
    tenth = line(event_id="e1-10", version="10", status="delivered", items=[item("d003", 4)])

    for lines in ([first, second, tenth], [tenth, second, first], [second, tenth, first, first]):
        assert oracle.mart(lines, AS_OF)[1, "r0001"]["top_dishes"] == [(1, "d003", 4)]


def test_of_equal_versions_the_higher_event_id_counts():
    lines = [line(event_id="e1-b", items=[item("d002")]), line(event_id="e1-a", items=[item("d001")])]

    assert oracle.mart(lines, AS_OF)[1, "r0001"]["top_dishes"] == [(1, "d002", 1)]


def test_a_repeated_line_counts_once():
    assert oracle.mart([line(), line()], AS_OF)[1, "r0001"]["n_orders"] == 1


def test_a_cancelled_order_is_ignored():
    assert oracle.mart([line(), line(event_id="e1-2", version=2, status="cancelled")], AS_OF) == {}


def test_an_invalid_correction_leaves_the_previous_version():
    broken = line(event_id="e1-2", version=2, status="cancelled", items=[item(quantity="two")])

    assert oracle.mart([line(), broken], AS_OF)[1, "r0001"]["n_orders"] == 1


def test_an_order_can_move_to_another_restaurant():
    moved = line(event_id="e1-2", version=2, status="updated", restaurant_id="r0002")

    assert {restaurant for _, restaurant in oracle.mart([line(), moved], AS_OF)} == {"r0002"}


def test_equal_quantities_rank_by_dish_and_only_three_are_given():
    dishes = [item("d004", 2), item("d003", 2), item("d002", 1), item("d001", 1), item("d003", 1)]

    assert oracle.mart([line(items=dishes)], AS_OF)[1, "r0001"]["top_dishes"] == [
        (1, "d003", 3),
        (2, "d004", 2),
        (3, "d001", 1),
    ]


KEYS = ("event_id", "order_id", "version", "restaurant_id", "customer_id", "ordered_at", "status", "items")


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "null",
        "7",
        "[]",
        "[" * 10_000,
        line()[:-1],
        line().replace('"', "'"),
        *(line(**{key: ...}) for key in KEYS),
        *(line(**{key: None}) for key in KEYS),
        *(line(items=[{**item(), key: None}]) for key in ("dish_id", "quantity", "unit_price")),
        *(line(version=version) for version in ("one", 1.0, "1.0", True, "", " 1", "١", [1])),
        *(line(items=items) for items in ([], {}, "d001", ["d001"], [None], [item(), 7])),
        *(line(items=[item(quantity=quantity)]) for quantity in ("two", 0, -1, "-1", 1.5, "1e3", False)),
        *(line(items=[item(unit_price=price)]) for price in ("free", "-0.01", "1.005", "1e3", "1,50", float("nan"))),
        line(items=[item(), item(quantity=-1)]),
        *(line(status=status) for status in ("PLACED", "lost", "", 1)),
        line(ordered_at="1970-01-01T00:00:00Z"),
        line(ordered_at="2019-12-31T23:59:59Z"),
        line(ordered_at="2050-01-01T00:00:01Z"),
        line(ordered_at="9999-12-31T23:59:59-01:00"),
        line(ordered_at="2026-02-30T12:00:00Z"),
        line(ordered_at="2026-11-21T24:00:00Z"),
        line(ordered_at="2026-11-21"),
        line(ordered_at="2026-11-21T12:00Z"),
        line(ordered_at=1795000000),
        line(restaurant_id=1),
        line(items=[item(dish_id=1)]),
    ],
)
def test_a_broken_line_is_ignored(broken):
    with pytest.raises(oracle.Broken):
        oracle.parse(broken)

    assert oracle.mart([line(), broken], AS_OF) == oracle.mart([line()], AS_OF)


@pytest.mark.parametrize(
    "good",
    [
        line(version="1"),
        line(items=[item(quantity="+1")]),
        line(items=[item(unit_price=10)]),
        line(items=[item(unit_price="10.0")]),
        line(note="a key that nobody asked for"),
        line(ordered_at="2026-11-21T12:00:00.000Z"),
    ],
)
def test_unusual_but_good_lines_count(good):
    assert oracle.mart([good], AS_OF) == oracle.mart([line()], AS_OF)


def test_the_first_and_the_last_possible_moments_are_good():
    assert oracle.parse(line(ordered_at="2020-01-01T00:00:00Z")).ordered_at == oracle.EARLIEST
    assert oracle.parse(line(ordered_at="2050-01-01T00:00:00Z")).ordered_at == oracle.LATEST


def test_files_are_read_line_by_line_and_odd_bytes_break_one_line(tmp_path):
    path = tmp_path / "orders.jsonl"
    separator = line().replace("c000001", "c\u2028").encode()
    path.write_bytes(line().encode() + b"\n\xff\xfe{\n\n" + separator + b"\n")

    assert len(oracle.read_lines([path])) == 3
