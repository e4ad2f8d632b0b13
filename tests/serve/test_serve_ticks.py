"""Answers while builds publish ticks: each comes from one tick, with the numbers that readers see in that tick."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sqlrun.publish.reader import find, tick_of
from sqlrun.serve import dashboard
from tests.support import projects, served
from tests.support.projects import rows_of
from tests.support.script import FIVE, START, order, site_of_orders
from tests.support.waiting import HUNG

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]
TICKS = 6
IDS = ("r9000", "r9001", "r9002")
HOURS = (1, 24, 168)


class Asker(threading.Thread):
    """A thread that sends requests without a pause, and collects the distinct answers."""

    def __init__(self, asked: Any) -> None:
        super().__init__(daemon=True)
        self.asked, self.found, self.stopped = asked, {}, threading.Event()
        self.wrong: list[str] = []

    def run(self) -> None:
        headers = served.bearer(*IDS)
        while not self.stopped.is_set():
            for which in IDS:
                for hours in HOURS:
                    answer = self.asked.get(f"/api/v1/restaurants/{which}/windows?hours={hours}", headers=headers)
                    if answer.status_code != 200:
                        self.wrong.append(answer.text)
                        continue
                    body = answer.json()
                    self.found.setdefault((body["tick"], which, hours), set()).add(answer.text)
                    if answer.headers["sqlrun-tick"] != str(body["tick"]):
                        self.wrong.append("the header is of another tick")


def in_span(slots: list[dict[str, Any]], which: str, start: datetime, end: datetime) -> tuple[int, Decimal]:
    """Return the sums over a span's slots, which the server computes from full and partial hours."""
    inside = [row for row in slots if row["restaurant_id"] == which and start < row["slot_at"] <= end]
    return sum(row["n_orders"] for row in inside), sum((row["total_sales"] for row in inside), Decimal("0.00"))


@pytest.mark.long
def test_each_answer_is_of_exactly_one_tick_while_builds_publish(tmp_path: Path) -> None:
    made = site_of_orders(tmp_path / "project")
    old = [order(f"o{n}", START - timedelta(hours=n, minutes=7 * n % 60), restaurant=IDS[n % 3]) for n in range(1, 400)]
    made.write("old.jsonl", old)
    assert made.tick(START).published
    site, watcher = served.site(
        SimpleNamespace(project=made.prepared.project, folder=made.warehouse, ledger=made.ledger),
        clock=lambda: START,  # type: ignore[arg-type]
    )
    watcher.look()
    with served.client(site) as asked:
        asker = Asker(asked)
        watcher.start()
        asker.start()
        for tick in range(1, TICKS):
            lines = [
                order(f"t{tick}-{n}", START + tick * FIVE - n * 61 * FIVE, restaurant=IDS[n % 3]) for n in range(9)
            ]
            made.write(f"t{tick}.jsonl", lines)
            assert made.tick(START + tick * FIVE).published
            published = made.ledger.read().published
            seen, end = site.live.snapshot, time.monotonic() + HUNG
            while seen is None or seen.published != published:
                assert time.monotonic() < end, "the tick never showed"
                time.sleep(0.02)
                seen = site.live.snapshot
        time.sleep(0.3)
        asker.stopped.set()
        asker.join()
        watcher.stop()

    assert asker.wrong == []
    assert len({tick for tick, _, _ in asker.found}) == TICKS
    assert {len(texts) for texts in asker.found.values()} == {1}, "two answers of one tick"
    _as_readers_see(made, asker.found)


def _as_readers_see(made: projects.Site, found: dict[tuple[int, str, int], set[str]]) -> None:
    import json

    for number in {tick for tick, _, _ in found}:
        published = tick_of(made.ledger, number)
        rows = {
            (row["restaurant_id"], row["window_hours"]): row
            for row in rows_of(find(published, made.warehouse, "restaurant_windows"))
        }
        slots = rows_of(find(published, made.warehouse, "fct_restaurant_slots"))
        for (tick, which, hours), texts in found.items():
            if tick != number:
                continue
            body, row = json.loads(next(iter(texts))), rows.get((which, hours))
            assert body["as_of"] == dashboard.iso(published.as_of)
            assert body["n_orders"] == (row["n_orders"] if row else 0)
            assert Decimal(body["total_sales"]) == (row["total_sales"] if row else 0)
            assert body["top_dishes"] == (row["top_dishes"] if row else [])
            for span in dashboard.spans(published.as_of, [hours]):
                numbers = body[span.name]
                if numbers is not None:
                    counted = numbers["n_orders"], Decimal(numbers["total_sales"])
                    assert counted == in_span(slots, which, span.start, span.end), (tick, which, span)
            assert hours > 24 or body["before"] is not None
