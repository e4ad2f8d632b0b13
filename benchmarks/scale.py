"""A year of a platform's ticks, simulated: `python -m benchmarks.scale --orders 1.67m --restaurants 230000`.

It prints, for each table of the reference project, what is on the disk after each quarter: commits, files, checkpoints
and their bytes, marks, and what the vacuum left. `log_simulator.py` has the rules; this module says what a tick changes.
A tick's changes are means: so many new rows, and so many changed rows of a partition, spread evenly over its files.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from benchmarks.log_simulator import Checkpoint, Rules, Table, Warehouse
from benchmarks.world import size_of

# Shares of orders that are delivered, corrected or cancelled later, and of events that come up to three days late.
FOLLOWED, CHANGED_LATER, LATE, LATE_DAYS = 0.30, 0.015, 0.02, 3
# Dishes on an order, and dishes on a restaurant's menu.
DISHES, MENU = 1.83, 12
WINDOWS, TICKS_A_DAY, SLOTS_AN_HOUR = 3, 288, 12
# Bytes of a row in a file, as measured: 23,000 restaurants after a day with 167,040 orders, on DuckDB (docs/scale.md).
ROW_BYTES = {
    "stg_order_events": 34.0,
    "stg_orders": 36.0,
    "fct_restaurant_slots": 13.0,
    "fct_restaurant_hours": 14.5,
    "fct_restaurant_dish_slots": 13.0,
    "restaurant_windows__state_1": 17.0,
    "restaurant_windows__state_2": 7.0,
    "restaurant_windows": 22.0,
}
INPUTS: Mapping[str, tuple[str, ...]] = {
    "stg_order_events": (),
    "stg_orders": ("stg_order_events",),
    "fct_restaurant_slots": ("stg_orders",),
    "fct_restaurant_hours": ("fct_restaurant_slots",),
    "fct_restaurant_dish_slots": ("stg_orders",),
    "restaurant_windows__state_1": ("fct_restaurant_slots",),
    "restaurant_windows__state_2": ("fct_restaurant_dish_slots",),
    "restaurant_windows": ("restaurant_windows__state_1", "restaurant_windows__state_2"),
}


@dataclass(frozen=True, slots=True)
class Size:
    """A platform: orders a day, restaurants."""

    orders: float
    restaurants: int

    @property
    def orders_a_tick(self) -> float:
        """Return the orders in a tick, in the mean."""
        return self.orders / TICKS_A_DAY

    def distinct(self, draws: float, kinds: float) -> float:
        """Return the number of different ones among some draws.

        >>> round(Size(1.67e6, 230_000).distinct(5_800, 230_000))
        5727
        """
        return kinds * -math.expm1(-draws / kinds)


class Platform(Warehouse):
    """The reference project's tables, at the mean of a tick."""

    def __init__(self, size: Size, rules: Rules, remembered: timedelta | None = None) -> None:
        super().__init__(rules, INPUTS, ROW_BYTES)
        self.size = size
        if remembered is not None:
            for table in self.tables.values():
                table.remembered = remembered
        self._left: dict[tuple[str, str], float] = {}
        self._parts: dict[str, dict[str, tuple[int, int]]] = {}

    def change(self, at: datetime) -> None:
        """Land a tick's lines, and change the tables above."""
        size, n = self.size, self.size.orders_a_tick
        restaurants = float(size.restaurants)
        self.tables["stg_order_events"].append(at, round(n * (1 + FOLLOWED + CHANGED_LATER)))
        today, days = f"{at:%Y-%m-%d}", [f"{at - timedelta(days=back):%Y-%m-%d}" for back in range(1, LATE_DAYS + 1)]
        self._merge("stg_orders", today, n * (1 - LATE), n * FOLLOWED)
        # A slot's rows are there if some order of it came in time.
        slots = size.distinct(n, restaurants)
        dishes = size.distinct(n * DISHES, restaurants * MENU)
        seen = -math.expm1(-n * (at.minute / 5 % SLOTS_AN_HOUR) / restaurants)
        self._merge("fct_restaurant_slots", today, slots, slots * CHANGED_LATER)
        self._merge("fct_restaurant_hours", today, slots * (1 - seen), slots * seen)
        self._merge("fct_restaurant_dish_slots", today, dishes, dishes * CHANGED_LATER)
        # Half of the later changes come within the hour.
        late, later = n * LATE / LATE_DAYS, n * CHANGED_LATER / 2 / LATE_DAYS
        for day in days:
            self._merge("stg_orders", day, late, later)
            for name, share in (
                ("fct_restaurant_slots", slots / restaurants),
                ("fct_restaurant_hours", -math.expm1(-n * SLOTS_AN_HOUR / restaurants)),
                ("fct_restaurant_dish_slots", dishes / (restaurants * MENU)),
            ):
                rows = DISHES if name.endswith("dish_slots") else 1.0
                self._merge(name, day, rows * late * (1 - share), rows * (late * share + later))
        # Each window takes rows in at one end, and drops rows at the other.
        for name, kinds, rows in (
            ("restaurant_windows__state_1", restaurants, n),
            ("restaurant_windows__state_2", restaurants * MENU, n * DISHES),
            ("restaurant_windows", restaurants, n),
        ):
            there = sum(file.live for file in self.tables[name].files.get("", ()))
            affected = WINDOWS * size.distinct(2 * rows, kinds)
            new = min(affected, max(0.0, WINDOWS * kinds - there))
            self._merge(name, "", new, min(there, affected - new))
        self._commit(at)

    def _merge(self, name: str, partition: str, new: float, changed: float) -> None:
        """Note a partition's part of a table's merge: new rows and changed ones, in whole numbers over time."""
        fresh, hit = self._whole(name, f"{partition} new", new), self._whole(name, f"{partition} changed", changed)
        self._parts.setdefault(name, {})[partition] = (fresh, hit)

    def _whole(self, name: str, what: str, value: float) -> int:
        """Return a whole number; the rest is carried over to the next tick."""
        value += self._left.get((name, what), 0.0)
        self._left[name, what] = value - int(value)
        return int(value)

    def _commit(self, at: datetime) -> None:
        """Merge each table once."""
        for name, parts in self._parts.items():
            table = self.tables[name]
            hits = {partition: spread(table, partition, hit) for partition, (_, hit) in parts.items()}
            new = {partition: fresh + sum(hits[partition].values()) for partition, (fresh, _) in parts.items()}
            wanted = {partition for partition in new if new[partition] or hits[partition]}
            table.merge(at, {p: hits[p] for p in wanted}, {p: new[p] for p in wanted})
        self._parts.clear()
        if at.hour == 0 and at.minute == 0:
            oldest = f"{at - timedelta(days=5):%Y-%m-%d}"
            self._left = {key: rest for key, rest in self._left.items() if key[1][:1] == " " or key[1] >= oldest}


def spread(table: Table, partition: str, changed: int) -> dict[int, int]:
    """Return how many rows of each file are hit, in proportion to its live rows."""
    files = table.files.get(partition, [])
    total = sum(file.live for file in files)
    changed = min(changed, total)
    found: dict[int, int] = {}
    seen = done = 0
    for place, file in enumerate(files):
        seen += file.live
        share = changed * seen // total - done if total else 0
        if share:
            found[place] = share
            done += share
    return found


def row(table: Table) -> str:
    """Return a table's row of the report."""
    found, last = table.counts(), table.checkpoints[-1] if table.checkpoints else Checkpoint(0, Rules().start, 0, 0)
    return (
        f"| {table.name} | {found.version:,} | {found.commits:,} | {found.live:,} | {found.most_in_a_partition} "
        f"| {found.stored:,} | {table.bytes_stored / 1e9:,.1f} | {found.vectors:,} | {found.removals:,} "
        f"| {last.vectors / 1e6:,.2f} | {last.size / 1e6:,.2f} | {found.tail} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", default="1.67m", help="orders a day")
    parser.add_argument("--restaurants", type=int, default=230_000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--remembered", type=int, help="days for which checkpoints list removals, if not sqlrun's")
    options = parser.parse_args()
    remembered = None if options.remembered is None else timedelta(days=options.remembered)
    platform = Platform(Size(size_of(options.orders), options.restaurants), Rules(), remembered)
    began = time.perf_counter()
    while platform.count < options.days * TICKS_A_DAY:
        platform.tick()
        if platform.count % (TICKS_A_DAY * max(1, options.days // 4)) == 0:
            print(f"\nafter {platform.count // TICKS_A_DAY} days ({time.perf_counter() - began:.0f} s)\n")
            print(
                "| table | version | commits | live files | most in a partition | stored files | GB | marked files "
                "| removals | vectors, MB | checkpoint, MB | tail |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
            )
            logs = [platform.ledger.table, *(log.table for log in platform.logs.values())]
            for table in (*platform.tables.values(), *logs):
                print(row(table), flush=True)
            print(f"\nledger: {platform.ledger.rows():,} rows")


if __name__ == "__main__":
    main()
