"""A small project in which a tick has every kind of write, and what a life of it looks like from outside."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from pathlib import Path

from sqlrun.publish.ledger import Ledger
from tests.run import test_machine
from tests.support import broken
from tests.support.projects import READER, Site, warehouse_of
from tests.support.script import FIVE, START
from tests.support.whole import differences

MORE = {
    # By partitions: its rows have no key, and a new one may drive others out.
    "fct_best": (
        "select shop, cast(sold_at as date) as day, amount from {{ ref('stg_lines') }}\n"
        "qualify rank() over (partition by shop, cast(sold_at as date) order by amount desc nulls last) <= 5",
        ("shop string", "day date", "amount decimal(9,2)"),
    ),
    "log_refunds": (
        "select id, amount from {{ ref('stg_lines') }} where amount < 0",
        ("id string", "amount decimal(9,2)"),
    ),
    # Whole: nor is there anything to part them by.
    "mart_places": (
        "select shop, amount, rank() over (partition by shop order by amount desc nulls last) as place\n"
        "from {{ ref('stg_lines') }}",
        ("shop string", "amount decimal(9,2)", "place int"),
    ),
    "mart_names": (
        "select n.shop, n.name, count(s.id) as sales from {{ ref('names') }} as n\n"
        "left join {{ ref('stg_sales') }} as s on s.shop = n.shop group by n.shop, n.name",
        ("shop string", "name string", "sales bigint"),
    ),
}
SEED = """\
seeds:
  - name: names
    description: What shops are called.
    grain: [shop]
    columns:
      - {name: shop, data_type: string, description: The shop., nulls: false}
      - {name: name, data_type: string, description: Its name.}
"""
CHECK = """\
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: amount, max_value: 1000}
    severity: critical
    on_fail: fail
    description: Nobody pays that much.
"""
PARTITIONED = "    repeats: true\n    config: {partition_by: [day]}"
PROFILE = "engine: {engine}\nwarehouse: {warehouse}\nthreads: 2\n"


def project(folder: Path, engine: str = "duckdb") -> Path:
    """Write the shops of `test_machine.py`, with a seed, a check and the writes that they lack."""
    test_machine.project(folder)
    files = {
        "pyproject.toml": '[tool.sqlrun]\nname = "shops"\nprofile = "here"\n',
        "profiles/here.yml": PROFILE.format(engine=engine, warehouse=warehouse_of(folder)),
        "seeds/names.yml": SEED,
        "expectations/stg_sales.yml": CHECK,
    }
    for name, (sql, columns) in MORE.items():
        extra = {"fct_best": PARTITIONED, "mart_names": ""}.get(name, "    repeats: true")
        files[f"models/{name}.sql"] = sql + "\n"
        files[f"models/{name}.yml"] = broken.contract(name, *columns, extra=extra)
    broken.write(folder, files)
    rename(folder, 0)
    return folder


def rename(folder: Path, number: int) -> None:
    """Give the shops other names: the seed has to be loaded again."""
    rows = "".join(f"{shop},{shop.upper()} {number}\n" for shop in "xyz")
    (folder / "seeds").mkdir(exist_ok=True)
    (folder / "seeds" / "names.csv").write_text(f"shop,name\n{rows}")


class World:
    """A project, what has been sold in it, and what must be true of its warehouse."""

    def __init__(self, folder: Path, engine: str = "duckdb") -> None:
        self.root, self.engine = project(folder, engine), engine
        self.number, self.lines = 0, 0
        self._chance = random.Random(1)
        # For its questions alone: what is built is built by processes of their own.
        self.site = Site(self.root, READER)

    @property
    def as_of(self) -> str:
        return (START + self.number * FIVE).strftime("%Y-%m-%dT%H:%M")

    @property
    def warehouse(self) -> str:
        return warehouse_of(self.root)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.warehouse, "shops")

    def arrive(self) -> None:
        """Five minutes pass; sales come, late, repeated and corrected ones among them, and names change."""
        self.number += 1
        now = START + self.number * FIVE
        texts = []
        for _ in range(12):
            at = now - timedelta(minutes=self._chance.randrange(-5, 90))
            sale = {
                "id": f"s{self._chance.randrange(40)}",
                "version": self._chance.randrange(1, 9),
                "shop": self._chance.choice("xyz"),
                "amount": f"{self._chance.randrange(-30, 90)}.00",
                "sold_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
            texts.append(json.dumps(sale) + "\n")
        self.lines += len(texts)
        (self.root / "data" / "orders" / f"{self.number:05}.jsonl").write_text("".join(texts))
        rename(self.root, self.number)

    def published(self) -> int:
        """Give the tick that readers see; 0 for none."""
        published = self.ledger.read().published
        return published.tick if published else 0

    def check(self) -> None:
        """Every published table is its whole query's answer, with each line counted once."""
        published = self.ledger.read().published
        assert published is not None
        assert published.as_of == START + self.number * FIVE
        assert len(self.site.rows("stg_lines")) == self.lines
        assert differences(self.site, published.as_of) == {}
