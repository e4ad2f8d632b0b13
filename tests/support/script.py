"""Three days of simulated orders with crafted ones, and the ticks that play them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.simulate.orders import events
from sqlrun.simulate.settings import Settings, to_minute
from tests.support import oracle
from tests.support.projects import Site, copy_project
from tests.support.whole import differences

START = datetime(2026, 3, 10, 12, 0, tzinfo=timezone.utc)
FIVE = timedelta(minutes=5)
SETTINGS = Settings(orders_per_day=1200, restaurants=20)


@dataclass(frozen=True)
class Play:
    """One tick: its time and the lines that arrive before it; None means no file."""

    as_of: datetime
    lines: tuple[str, ...] | None
    why: str = ""


def order(
    number: str,
    at: datetime,
    version: int = 1,
    status: str = "placed",
    restaurant: str = "r9001",
    items: tuple[tuple[str, int, str], ...] = (("d001", 2, "10.00"),),
) -> str:
    """Return one crafted event."""
    return json.dumps(
        {
            "event_id": f"x{number}-{version}",
            "order_id": f"x{number}",
            "version": version,
            "restaurant_id": restaurant,
            "customer_id": "c1",
            "ordered_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "status": status,
            "items": [{"dish_id": d, "quantity": q, "unit_price": p} for d, q, p in items],
        }
    )


def crafted(now: datetime) -> list[tuple[int, str, str]]:
    """Return crafted events: minutes until arrival, line, description."""
    minute = timedelta(minutes=1)
    repeated = order("20", now + 3 * minute, restaurant="r9002")
    leaving = now - 52 * minute  # leaves the one-hour window at the tick ten minutes later
    tie = [("d005", 1, "1.00"), ("d003", 1, "1.00"), ("d004", 1, "1.00"), ("d002", 5, "1.00"), ("d001", 9, "1.00")]
    return [
        (5, order("10", now - 30 * minute), "late for the one-hour window"),
        (5, order("11", now - 300 * minute), "late for the one-day window"),
        (10, order("12", now - 4300 * minute), "late for the one-week window"),
        (5, repeated, "sent once"),
        (10, repeated, "sent again, the same line"),
        (5, order("30", now + minute, items=(("d001", 1, "5.00"),)), "to be corrected"),
        (15, order("30", now + minute, 2, "updated", items=(("d002", 3, "6.00"),)), "moves to another dish"),
        (5, order("31", now - 70 * minute), "to move to another hour"),
        (20, order("31", now - 5 * minute, 2, "updated"), "moves to another hour"),
        (5, order("40", now + 2 * minute, restaurant="r9003"), "the only order of its restaurant"),
        (
            15,
            order("40", now + 2 * minute, 2, "cancelled", restaurant="r9003"),
            "the last order of a group is cancelled",
        ),
        (5, order("50", leaving, restaurant="r9004"), "to be corrected as it leaves"),
        (
            10,
            order("50", leaving, 2, "updated", "r9004", (("d001", 7, "3.00"),)),
            "corrected in the tick in which it leaves",
        ),
        (20, order("30", now + minute, 1, items=(("d001", 1, "5.00"),)), "a stale version after a newer one"),
        (5, order("60", now + 27 * minute, restaurant="r9005"), "future-dated"),
        (10, order("70", now + 6 * minute, restaurant="r9006", items=tuple(tie)), "a tie at rank three"),
        (25, '{"event_id": "x80", "order_id": ', "broken"),
        (25, order("81", now, items=(("d001", -1, "5.00"),)), "a negative quantity"),
    ]


def history() -> list[str]:
    """Return the lines of the three days before the first tick."""
    return events(SETTINGS, to_minute(START - timedelta(days=3)), to_minute(START))


def plays(ticks: int) -> Iterator[Play]:
    """Yield two hours of five-minute ticks, one skipped, one empty, one repeated."""
    yield Play(START, tuple(history()), "history")
    waiting = crafted(START)
    pending: list[str] = []
    for number in range(1, ticks + 1):
        as_of = START + number * FIVE
        lines = events(SETTINGS, to_minute(as_of - FIVE), to_minute(as_of))
        lines += [line for after, line, _ in waiting if after == 5 * number]
        if number == 7:  # skipped: the lines wait for the next tick
            pending = lines
            continue
        yield Play(as_of, tuple(pending + lines) if number != 9 else None, "empty" if number == 9 else "")
        pending = lines if number == 9 else []
        if number == 11:
            yield Play(as_of, None, "the same time again")


def mart(site: Site) -> dict[tuple[int, str], dict[str, Any]]:
    """Return the marts in the plain-Python oracle's form."""
    customers = {(r["window_hours"], r["restaurant_id"]): r["n_customers"] for r in site.rows("restaurant_customers")}
    windows = site.rows("restaurant_windows")
    assert customers.keys() == {(row["window_hours"], row["restaurant_id"]) for row in windows}
    return {
        (row["window_hours"], row["restaurant_id"]): {
            "n_orders": row["n_orders"],
            "n_customers": customers[row["window_hours"], row["restaurant_id"]],
            "total_sales": row["total_sales"],
            "top_dishes": [(d["dish_rank"], d["dish_id"], d["quantity"]) for d in row["top_dishes"]],
        }
        for row in windows
    }


def play(site: Site, ticks: int) -> int:
    """Play the script and verify every tick; return the number of ticks."""
    count = 0
    for count, step in enumerate(plays(ticks), 1):
        if step.lines is not None:
            site.write(f"{count:04}.jsonl", list(step.lines))
        verify(site, step, oracle.read_lines(sorted(site.orders.glob("*.jsonl"))))
    return count


def published(site: Site, as_of: datetime) -> None:
    """Run a tick, which must be published."""
    result = site.tick(as_of)

    assert result.published, [(n.name, n.message) for n in result.nodes if n.status == "error"] + [
        c for c in result.checks if c.status.blocks
    ]


def verify(site: Site, step: Play, lines: list[str], compared: bool = True) -> None:
    """Run the tick of a step, after which `lines` are all that has arrived, and verify its mart.

    `compared`: verify each table by its own query, too.
    """
    published(site, step.as_of)
    if compared:
        assert differences(site, step.as_of) == {}, step
    assert mart(site) == oracle.mart(lines, step.as_of), step


def site_of_orders(folder: Path, number: int = 29) -> Site:
    """Return a project on DuckDB with orders of three restaurants, five minutes apart, before any build."""
    made = Site(copy_project(folder), DuckDBEngine())
    made.write("0.jsonl", [order(str(n), START - n * FIVE, restaurant=f"r900{n % 3}") for n in range(1, number + 1)])
    return made
