"""A year of five-minute ticks (105,120): ticks of a small project, one after the other, in a time of their own.

Each tick lands a file of sales, current and late ones, maintains three tables and publishes; the vacuum runs when it is
due. At every mark it times ticks, as the median CPU seconds of nine ticks in a row, and compares them with those of a
new warehouse. `--real N --counts FILE` runs N ticks only, and writes what the warehouse has after each vacuum, beside
what `log_simulator.py` expects.

Time passes as the ticks say: the process runs with a library that moves its clock (`virtual_clock.c`), and new files
get the time of their tick. It needs a C compiler.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from benchmarks.log_simulator import LATER, Keyed, Rules, Warehouse

START = Rules().start
FIVE = Rules().step
A_WEEK = 2016
ROOT = Path(__file__).parent.parent
CLOCK = "VIRTUAL_CLOCK"
FILES = {
    "pyproject.toml": '[tool.sqlrun]\nname = "year"\n',
    "profiles/local.yml": "engine: duckdb\nwarehouse: warehouse\n",
    "models/_sources.yml": """\
sources:
  - name: shop
    description: What a shop sells.
    tables:
      - name: sales
        description: Sales.
        format: json
        path: data
        columns:
          - {name: id, data_type: bigint, description: The sale., nulls: false}
          - {name: shop, data_type: string, description: The shop., nulls: false}
          - {name: amount, data_type: "decimal(9,2)", description: What was paid., unit: EUR}
          - {name: sold_at, data_type: timestamp, description: When., unit: UTC, nulls: false}
""",
    "models/stg_sales.sql": "select id, shop, amount, sold_at from {{ source('shop', 'sales') }}\n",
    "models/stg_sales.yml": """\
models:
  - name: stg_sales
    description: Sales.
    repeats: true
    columns:
      - {name: id, data_type: bigint, description: The sale.}
      - {name: shop, data_type: string, description: The shop.}
      - {name: amount, data_type: "decimal(9,2)", description: What was paid., unit: EUR}
      - {name: sold_at, data_type: timestamp, description: When., unit: UTC}
""",
    "models/fct_hours.sql": """\
select
    shop,
    date_trunc('hour', sold_at) as hour_at,
    cast(sold_at as date) as hour_date,
    count(*) as sales,
    sum(amount) as total
from {{ ref('stg_sales') }}
group by shop, date_trunc('hour', sold_at), cast(sold_at as date)
""",
    "models/fct_hours.yml": """\
models:
  - name: fct_hours
    description: Sales by hour.
    config: {partition_by: [hour_date]}
    columns:
      - {name: shop, data_type: string, description: The shop.}
      - {name: hour_at, data_type: timestamp, description: The hour., unit: UTC}
      - {name: hour_date, data_type: date, description: The hour's day., unit: UTC day}
      - {name: sales, data_type: bigint, description: Sales., unit: sales}
      - {name: total, data_type: "decimal(19,2)", description: What was paid., unit: EUR}
""",
    "models/mart_day.sql": """\
select shop, cast(sum(sales) as bigint) as sales, sum(total) as total
from {{ ref('fct_hours') }}
where hour_at > current_timestamp() - interval 24 hours and hour_at <= current_timestamp()
group by shop
""",
    "models/mart_day.yml": """\
models:
  - name: mart_day
    description: Sales of a day.
    columns:
      - {name: shop, data_type: string, description: The shop.}
      - {name: sales, data_type: bigint, description: Sales., unit: sales}
      - {name: total, data_type: "decimal(29,2)", description: What was paid., unit: EUR}
""",
}


@dataclass(frozen=True, slots=True)
class Sale:
    """A sale, in cents."""

    shop: int
    at: datetime
    cents: int = 150


def sales_of(number: int, old: int, late: int) -> list[Sale]:
    """Return the sales that arrive in a tick: two current ones, and `late` ones of the two days before the first tick.

    The first tick also has one of each of `old` shops on both days, which late ones hit.
    """
    draw, at = random.Random(number), START + number * FIVE
    found = [Sale(n, at - timedelta(minutes=1)) for n in (0, 1)]
    days = [START - timedelta(days=back) for back in (1, 2)]
    if number == 1:
        found += [Sale(shop, day) for day in days for shop in range(old)]
    return found + [Sale(draw.randrange(old), draw.choice(days)) for _ in range(late if old else 0)]


class Clock:
    """The time of this process, moved by the library that it was started with."""

    def __init__(self) -> None:
        with Path(os.environ[CLOCK]).open("r+b") as file:
            self._ahead = mmap.mmap(file.fileno(), 8)

    def set(self, moment: datetime) -> None:
        """Let it be this time."""
        (ahead,) = struct.unpack("q", self._ahead[:8])
        self._ahead[:8] = struct.pack("q", ahead + round(moment.timestamp() - time.time()))
        assert abs(time.time() - moment.timestamp()) < 5, "the clock can't be moved"


class Year:
    """A warehouse and its ticks."""

    def __init__(self, root: Path, every: int, keep: int, old: int, late: int) -> None:
        from sqlrun.engines.duckdb.engine import DuckDBEngine
        from sqlrun.pipeline import prepare
        from sqlrun.publish.ledger import Ledger

        for name, text in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        (root / "data").mkdir()
        (root / "warehouse").mkdir()
        self.root, self.every, self.keep, self.old, self.late = root, every, keep, old, late
        self.prepared = prepare(root)
        self.ledger = Ledger(str(root / "warehouse"), "year")
        self.engine = DuckDBEngine()
        self.clock = Clock()
        self.count = 0
        self._dated: set[str] = set()

    def tick(self) -> float:
        """Run one tick, as a build does; return its CPU seconds, without the maintenance of files."""
        from sqlrun.operations import maintenance
        from sqlrun.run.tick import Request, tick
        from sqlrun.storage import lock
        from sqlrun.system_tables import measures, receipts

        self.count += 1
        at = START + self.count * FIVE
        self.clock.set(at)
        self._arrive()
        began = time.process_time()
        clock = lambda: datetime.now(timezone.utc)  # noqa: E731
        names = tuple(n for n in self.prepared.graph.order if not n.startswith("source:"))
        request = Request(
            warehouse=self.ledger.warehouse,
            as_of=at,
            selected=names,
            refresh=False,
            threads=2,
            holder="{}",
            clock=clock,
        )
        result = tick(self.prepared.workspace, self.engine, self.ledger, request, lambda _: None)
        receipts.write(self.ledger.warehouse, result, "duckdb", clock())
        measures.write(self.ledger.warehouse, result, clock())
        spent = time.process_time() - began
        assert result.published, result
        self._date(at)
        self.vacuumed = maintenance.due(self.ledger, result.tick, self.every)
        if self.vacuumed:
            # Later than anything in a tick, however long it took: the real run and the simulator agree on each hour.
            self.clock.set(at + LATER)
            with lock.hold(self.ledger.warehouse, clock()) as holder:
                maintenance.vacuum_held(self.ledger, self.keep, clock(), holder, lambda _: None)
            self._date(at + LATER)
        return spent

    def _arrive(self) -> None:
        rows = [
            {
                "id": n,
                "shop": f"s{sale.shop}",
                "amount": f"{sale.cents / 100:.2f}",
                "sold_at": f"{sale.at:%Y-%m-%dT%H:%M:%SZ}",
            }
            for n, sale in enumerate(sales_of(self.count, self.old, self.late))
        ]
        file = self.root / "data" / f"{self.count:06}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        # A minute old, so that it isn't taken for one that is still being written.
        moment = (START + self.count * FIVE - timedelta(minutes=1)).timestamp()
        os.utime(file, (moment, moment))
        # Their writers move landed files away after a week.
        (self.root / "data" / f"{self.count - A_WEEK:06}.jsonl").unlink(missing_ok=True)

    def _date(self, at: datetime) -> None:
        """Date new files by their tick: the disk knows nothing of the moved clock."""
        for folder, _, names in os.walk(self.root / "warehouse"):
            for name in names:
                file = f"{folder}/{name}"
                if file not in self._dated:
                    self._dated.add(file)
                    os.utime(file, (at.timestamp(), at.timestamp()))

    def counts(self) -> dict[str, dict[str, int]]:
        """Return what each table has, by its name, as `log_simulator.Counts` has it."""
        from benchmarks import log_counts

        published = self.ledger.read().published
        assert published is not None
        warehouse = self.root / "warehouse"
        tables = {name: warehouse / state.path for name, state in published.tables.items()}
        tables |= {f"_{log.parent.name}": log.parent for log in (warehouse / "_sqlrun").glob("*/_delta_log")}
        return {name: log_counts.of(path) for name, path in sorted(tables.items())}

    def sizes(self) -> dict[str, int]:
        """Return the sizes that may grow."""
        home = self.root / "warehouse"
        return {
            "ledger rows": len(self.ledger.entries()),
            "log files": sum(1 for _ in home.rglob("_delta_log/*")),
            "files": sum(1 for _ in home.rglob("*.parquet")),
        }


class Simulated(Warehouse):
    """The same ticks without a warehouse. A row of `fct_hours` is an hour of a shop."""

    def __init__(self, every: int, keep: int, old: int, late: int) -> None:
        inputs = {"stg_sales": (), "fct_hours": ("stg_sales",), "mart_day": ("fct_hours",)}
        super().__init__(Rules(every, keep), inputs, {})
        self._old, self._late = old, late
        self._keyed = {name: Keyed(self.tables[name]) for name in ("fct_hours", "mart_day")}

    def change(self, at: datetime) -> None:
        sales = sales_of(self.count, self._old, self._late)
        days: dict[str, list[str]] = {}
        for sale in sales:
            days.setdefault(f"{sale.at:%Y-%m-%d}", []).append(f"{sale.shop} {sale.at:%H}")
        self.tables["stg_sales"].append(at, len(sales))
        self._keyed["fct_hours"].merge(at, days)
        # Old sales are on no day that ends in a tick's window.
        self._keyed["mart_day"].merge(at, {"": {str(sale.shop) for sale in sales if sale.at > at - FIVE}})

    def compact(self, name: str, at: datetime) -> None:
        keyed = self._keyed.get(name)
        if keyed is None:
            super().compact(name, at)
        else:
            keyed.compact(at)


def simulated_counts(every: int, keep: int, old: int, late: int, ticks: int) -> Iterator[dict[str, Any]]:
    """Yield what `real_counts` yields."""
    simulated = Simulated(every, keep, old, late)
    while simulated.count < ticks:
        before = simulated.vacuumed
        simulated.tick()
        if simulated.vacuumed != before or simulated.count == ticks:
            yield {"tick": simulated.count, "tables": {name: asdict(one) for name, one in simulated.counts().items()}}


def real_counts(year: Year, ticks: int) -> Iterator[dict[str, Any]]:
    """Run ticks, and yield the counts after each vacuum, and after the last tick."""
    while year.count < ticks:
        year.tick()
        if year.vacuumed or year.count == ticks:
            yield {"tick": year.count, "tables": year.counts()}


def slower(year: Year, marks: list[int]) -> None:
    """Print whether later ticks take longer than the first ones."""
    first = 0.0
    print("| ticks | CPU s a tick | ratio | reading the ledger, s | ledger rows | log files | Parquet files |")
    print("|---|---|---|---|---|---|---|")
    for mark in marks:
        while year.count < mark - 9:
            year.tick()
        spent = statistics.median(year.tick() for _ in range(9))
        first = first or spent
        began = time.process_time()
        for _ in range(5):
            year.ledger.read()
        read = (time.process_time() - began) / 5
        sizes = year.sizes()
        print(
            f"| {year.count:,} | {spent:.3f} | {spent / first:.2f} | {read:.4f} | {sizes['ledger rows']:,} "
            f"| {sizes['log files']:,} | {sizes['files']:,} |",
            flush=True,
        )


def with_moved_clock(arguments: list[str]) -> int:
    """Start this program again, in a process whose clock can be moved."""
    with tempfile.TemporaryDirectory() as name:
        library, clock = Path(name) / "clock.so", Path(name) / "ahead"
        source = Path(__file__).with_name("virtual_clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        clock.write_bytes(struct.pack("q", 0))
        environment = {**os.environ, CLOCK: str(clock), "LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT)}
        return subprocess.run([sys.executable, "-m", "benchmarks.year", *arguments], env=environment).returncode


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--marks", type=int, nargs="*", default=[20, 300, 1000, 2600, 5000, 10000])
    parser.add_argument("--real", type=int, default=0, help="run so many ticks, and write counts")
    parser.add_argument("--counts", type=Path, help="the file for the counts, JSON")
    parser.add_argument("--every", type=int, default=288)
    parser.add_argument("--keep", type=int, default=A_WEEK)
    parser.add_argument("--old", type=int, default=0, help="shops with old sales, of which late ones come")
    parser.add_argument("--late", type=int, default=30, help="late sales a tick")
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args(arguments)
    if CLOCK not in os.environ:
        return with_moved_clock(arguments)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        year = Year(Path(folder), chosen.every, chosen.keep, chosen.old, chosen.late)
        if chosen.real:
            found = list(real_counts(year, chosen.real))
            (chosen.counts or Path("/dev/stdout")).write_text(json.dumps(found, indent=1))
        else:
            slower(year, chosen.marks)
        year.engine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
