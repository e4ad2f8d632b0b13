"""Does a year of five-minute ticks (105,120) slow down the next one? Ticks of a small project, one after the other.

Each tick lands a file of two sales, maintains three tables and publishes; landed files are moved away after a week, as
their writers would do. At every mark it times ticks, as the median CPU seconds of nine ticks in a row, and compares
them with those of a new warehouse. Opening a project and reading a ledger are timed separately.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.operations import maintenance
from sqlrun.pipeline import Prepared, prepare
from sqlrun.publish.ledger import Ledger
from sqlrun.run.tick import Request, tick
from sqlrun.storage import lock
from sqlrun.system_tables.receipts import write as write_receipts

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
FIVE = timedelta(minutes=5)
A_WEEK = 2016
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
select shop, date_trunc('hour', sold_at) as hour_at, count(*) as sales, sum(amount) as total
from {{ ref('stg_sales') }}
group by shop, date_trunc('hour', sold_at)
""",
    "models/fct_hours.yml": """\
models:
  - name: fct_hours
    description: Sales by hour.
    columns:
      - {name: shop, data_type: string, description: The shop.}
      - {name: hour_at, data_type: timestamp, description: The hour., unit: UTC}
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


class Year:
    """A warehouse and its ticks."""

    def __init__(self, root: Path, every: int, keep: int) -> None:
        for name, text in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        (root / "data").mkdir()
        (root / "warehouse").mkdir()
        self.root, self.every, self.keep = root, every, keep
        self.prepared: Prepared = prepare(root)
        self.ledger = Ledger(str(root / "warehouse"), "year")
        self.engine = DuckDBEngine()
        self.count = 0

    def tick(self) -> float:
        """Run one tick, as a build does; return its CPU seconds, without the maintenance of files."""
        self.count += 1
        at = START + self.count * FIVE
        rows = [
            {"id": 2 * self.count + n, "shop": f"s{n}", "amount": "1.50", "sold_at": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
            for n in (0, 1)
        ]
        (self.root / "data" / f"{self.count:06}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.root / "data" / f"{self.count - A_WEEK:06}.jsonl").unlink(missing_ok=True)
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
        write_receipts(self.ledger.warehouse, result, "duckdb", clock())
        spent = time.process_time() - began
        assert result.published, result
        if maintenance.due(self.ledger, result.tick, self.every):
            # Time passes faster here: the later clock skips the hour that protects new files.
            with lock.hold(self.ledger.warehouse, clock()) as holder:
                maintenance.vacuum_held(self.ledger, self.keep, clock() + timedelta(hours=2), holder, lambda _: None)
        return spent

    def sizes(self) -> dict[str, int]:
        """Return the sizes that may grow."""
        home = self.root / "warehouse"
        return {
            "ledger rows": len(self.ledger.entries()),
            "ledger files": sum(1 for _ in Path(self.ledger.path).rglob("*")),
            "log files": sum(1 for _ in home.rglob("_delta_log/*")),
            "files": sum(1 for _ in home.rglob("*.parquet")),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--marks", type=int, nargs="*", default=[20, 300, 1000, 2600, 5000, 10000])
    parser.add_argument("--every", type=int, default=288)
    parser.add_argument("--keep", type=int, default=A_WEEK)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        year = Year(Path(folder), chosen.every, chosen.keep)
        first = 0.0
        print("| ticks | CPU s a tick | ratio | reading the ledger, s | ledger rows | log files | Parquet files |")
        print("|---|---|---|---|---|---|---|")
        for mark in chosen.marks:
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
        year.engine.close()


if __name__ == "__main__":
    main()
