"""A reader that never pauses while ticks, rollbacks and vacuums go on: it sees whole ticks and no error."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import sqlrun
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import tick_of
from tests.crash.lives import Lives, build
from tests.crash.project import World


class Reader(threading.Thread):
    """Reads until it is told to stop; `reads` counts the times, `error` is what went wrong first."""

    def __init__(self, warehouse: str) -> None:
        super().__init__(daemon=True)
        self.warehouse = warehouse
        self.reads, self.error = 0, ""
        self.ticks: set[int] = set()
        self._seen: dict[int, Counter[str]] = {}
        self._enough = threading.Event()

    def run(self) -> None:
        try:
            while not self._enough.is_set():
                self._look()
                self.reads += 1
                self._enough.wait(0.1)
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"

    def stop(self) -> None:
        self._enough.set()
        self.join()

    def _look(self) -> None:
        """Ask for three tables at one tick, and for one of them as it is now."""
        tick = tick_of(Ledger(self.warehouse, "")).tick
        sales = self._rows("stg_sales", tick)
        slots = self._rows("fct_slots", tick)
        names = self._rows("mart_names", tick)
        assert sum(row["sales"] for row in slots) == len(sales), f"tick {tick}: half of it in fct_slots"
        assert sum(row["sales"] for row in names) == len(sales), f"tick {tick}: half of it in mart_names"
        found = Counter(map(str, (*sales, *slots, *names)))
        assert self._seen.setdefault(tick, found) == found, f"tick {tick} has changed"
        assert sqlrun.published("mart_names", self.warehouse).num_rows == 3
        assert tick >= max(self.ticks, default=0), f"tick {tick} came after {max(self.ticks)}"
        self.ticks.add(tick)

    def _rows(self, name: str, tick: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = sqlrun.published(name, self.warehouse, tick).to_pylist()
        return rows


def hammer(lives: Lives, world: World, ticks: int) -> Reader:
    """Tick under the eyes of a reader, with a rollback after every seventh tick and a vacuum after every fifth."""
    world.arrive()
    assert build(lives, world.root, world.as_of).code == 0
    reader = Reader(world.warehouse)
    reader.start()
    try:
        for number in range(1, ticks + 1):
            world.arrive()
            steps = [lambda: build(lives, world.root, world.as_of)]
            if number % 5 == 0:
                steps.append(lambda: lives.live(world.root, "vacuum", "--keep-ticks", "4"))
            if number % 7 == 0:
                back = str(world.ledger.newest(2)[1].tick)
                steps.append(lambda back=back: lives.live(world.root, "rollback", "--to", back))  # type: ignore[misc]
            for step in steps:
                life = step()
                assert life.code == 0, life.said
            assert not reader.error, reader.error
    finally:
        reader.stop()
    assert not reader.error, reader.error
    return reader
