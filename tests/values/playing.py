"""A project whose values are hostile, ticked many times, and held to plain Python after each tick."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.engine_api import Engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.operations import maintenance
from sqlrun.operations.verify import verify
from tests.support import broken
from tests.support.projects import Site, now
from tests.values import pool

START = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
STEP = timedelta(minutes=5)
SOURCES = """\
sources:
  - name: shops
    description: What shops say.
    tables:
      - name: sales
        description: Sales.
        format: json
        path: data/orders
        columns:
          - {name: id, data_type: string, description: The sale., nulls: false}
          - {name: version, data_type: bigint, description: Which one., nulls: false}
          - {name: city, data_type: string, description: Where.}
          - {name: dish, data_type: string, description: What.}
          - {name: at, data_type: timestamp, description: When.}
          - {name: amount, data_type: "decimal(18,2)", description: How much.}
          - {name: tags, data_type: "array<string>", description: Words.}
"""
# Each model: its query, its columns, what else its contract says.
MODELS = {
    "stg_sales": (
        "select id, version, city, dish, at, amount, tags from {{ source('shops', 'sales') }}",
        (
            "id string", "version bigint", "city string", "dish string", "at timestamp", "amount decimal(18,2)",
            "tags array<string>",
        ),
        "    grain: [id, version]\n    event_time: at\n    config: {partition_by: [city]}",
    ),
    "sales": (
        "select id, city, dish, at, amount from (select id, city, dish, at, amount, row_number() over "
        "(partition by id order by version desc) as n from {{ ref('stg_sales') }}) where n = 1",
        ("id string", "city string", "dish string", "at timestamp", "amount decimal(18,2)"),
        "    grain: [id]\n    event_time: at",
    ),
    "by_city": (
        "select city, count(*) as n, sum(amount) as total, min(at) as first_at, max(at) as last_at from "
        "{{ ref('sales') }} group by city",
        ("city string", "n bigint", "total decimal(28,2)", "first_at timestamp", "last_at timestamp"),
        "    grain: [city]\n    config: {partition_by: [city]}",
    ),
    "by_dish": (
        "select city, dish, count(*) as n, sum(amount) as total from {{ ref('sales') }} group by city, dish",
        ("city string", "dish string", "n bigint", "total decimal(28,2)"),
        "    grain: [city, dish]\n    config: {partition_by: [city]}",
    ),
    "ranked": (
        "select city, id, dish, amount, row_number() over (partition by city order by amount desc, id) as place from "
        "{{ ref('sales') }}",
        ("city string", "id string", "dish string", "amount decimal(18,2)", "place int"),
        "    config: {partition_by: [city]}",
    ),
    "by_day": (
        "select cast(at as date) as day, count(*) as n, min(id) as least from {{ ref('sales') }} "
        "where cast(at as date) between date '0001-01-01' and date '9999-12-31' or at is null group by "
        "cast(at as date)",
        ("day date", "n bigint", "least string"),
        "    grain: [day]\n    config: {partition_by: [day]}",
    ),
    "by_time": (
        "select at, city, count(*) as n from {{ ref('sales') }} group by at, city",
        ("at timestamp", "city string", "n bigint"),
        "    grain: [at, city]\n    config: {partition_by: [at]}",
    ),
    "moved": (
        "select id, at + interval 2 days as later, at - interval 2 days as sooner, "
        "date_add(cast(at as date), 3) as day from {{ ref('sales') }}",
        ("id string", "later timestamp", "sooner timestamp", "day date"),
        "    grain: [id]\n    event_time: later",
    ),
    "by_later": (
        "select later, day, count(*) as n from {{ ref('moved') }} group by later, day",
        ("later timestamp", "day date", "n bigint"),
        "    grain: [later, day]",
    ),
    "words": (
        "select id, word, city from {{ ref('stg_sales') }} lateral view explode(tags) t as word",
        ("id string", "word string", "city string"),
        "    repeats: true",
    ),
}  # fmt: skip
Line = dict[str, Any]


def files() -> dict[str, str]:
    """Write the project."""
    found = {
        "models/_sources.yml": SOURCES,
        "expectations/stg_sales.yml": "max_quarantined: 100%\nexpectations: []\n",
        "profiles/local.yml": "engine: duckdb\nwarehouse: warehouse\n",
        "pyproject.toml": '[tool.sqlrun]\nname = "hostile_values"\nprofile = "local"\n',
    }
    for name, (query, columns, extra) in MODELS.items():
        found[f"models/{name}.sql"] = query + "\n"
        found[f"models/{name}.yml"] = contract(name, columns, extra)
    return found


def contract(name: str, columns: tuple[str, ...], extra: str) -> str:
    """Write a model's contract; types may have commas."""
    lines = ["models:", f"  - name: {name}", "    description: A row.", *extra.split("\n"), "    columns:"]
    for column in columns:
        named, _, kind = column.partition(" ")
        lines.append(f"      - {{name: {named}, data_type: '{kind}', description: It.}}")
    return "\n".join(lines) + "\n"


@dataclass
class Play:
    """A project, what was sent to it, and how to say that it is right."""

    site: Site
    chance: random.Random
    texts: list[str]
    times: tuple[str, ...] = pool.TIMES
    sent: list[Line] = field(default_factory=list)
    ticks: int = 0

    def line(self) -> Line:
        """Make a line, of a new sale or of one that was sent."""
        chance, texts = self.chance, self.texts
        known = self.sent and chance.random() < 0.3
        made: Line = {
            "id": chance.choice(self.sent)["id"] if known else f"{chance.choice(texts)}{len(self.sent)}",
            "version": len(self.sent) + 1,
            "city": chance.choice(texts),
            "dish": chance.choice(texts),
            "at": pool.moment(chance, self.times),
            "amount": chance.choice(pool.AMOUNTS),
            "tags": [chance.choice(texts) for _ in range(chance.randrange(3))],
        }
        for name in ("city", "dish", "at", "amount"):
            if chance.random() < 0.05:
                made[name] = None
        return made

    def tick(self, lines: int) -> None:
        """Send lines, tick, and require that all is well."""
        made = []
        for _ in range(lines):
            made.append(self.line())
            self.sent.append(made[-1])
        as_text = self.chance.random() < 0.5
        self.site.write(f"{self.ticks:05}.jsonl", [json.dumps(line, ensure_ascii=as_text) for line in made])
        self.ticks += 1
        done = self.site.tick(START + self.ticks * STEP)
        assert done.published, self.errors()

    def errors(self) -> str:
        """Give the errors of the last tick."""
        return "\n".join(str(getattr(event, "error", "")) for event in self.site.events[-60:])[-3000:]

    def require_true(self) -> None:
        """Compare every table with its query, and some with plain Python."""
        now_published = self.site.ledger.read().published
        assert now_published is not None
        names = tuple(MODELS)
        for verdict in verify(self.site.prepared.workspace, self.site.warehouse, now_published, names, 3):
            assert verdict.ok, verdict
        landed = self.site.rows("stg_sales")
        wanted = Counter((line["id"], line["city"], line["dish"]) for line in self.kept(landed))
        assert Counter((row["id"], row["city"], row["dish"]) for row in landed) == wanted
        sales = self.site.rows("sales")
        for name, keys in {"by_city": ("city",), "by_dish": ("city", "dish")}.items():
            held = {tuple(row[key] for key in keys): (row["n"], row["total"]) for row in self.site.rows(name)}
            assert held == sums(sales, keys)
        assert Counter((row["city"], row["id"]) for row in self.site.rows("ranked")) == Counter(
            (row["city"], row["id"]) for row in sales
        )

    def kept(self, landed: list[Line]) -> list[Line]:
        """List the lines that had to land: all of them, where all times are of those that a line may hold."""
        return self.sent if set(self.times) <= set(pool.TIMES) else landed

    def maintain(self) -> None:
        """Put small files together and delete old ones."""
        maintenance.vacuum(self.site.ledger, 2, now(), lambda _: None)

    def require_shown(self) -> None:
        """Require that commands show each table, in each form, without a traceback."""
        for name in (*MODELS, "stg_sales__quarantine"):
            for form in ("table", "json", "csv"):
                self.command("show", name, "--output", form, "--limit", "500")
        self.command("verify", "--checksums")
        self.command("doctor")
        self.command("check")

    def command(self, *words: str) -> str:
        """Run a command in the project."""
        result = CliRunner().invoke(main, ["--project-dir", str(self.site.root), *words])
        assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.exception)
        assert result.exit_code == 0, (words, result.output[-2000:])
        return result.output


def sums(sales: list[Line], keys: tuple[str, ...]) -> Mapping[tuple[Any, ...], tuple[int, Decimal | None]]:
    """Count and add up sales by keys."""
    found: dict[tuple[Any, ...], tuple[int, Decimal | None]] = {}
    for sale in sales:
        key, amount = tuple(sale[name] for name in keys), sale["amount"]
        count, total = found.get(key, (0, None))
        found[key] = count + 1, total if amount is None else (total or Decimal(0)) + amount
    return found


def play(folder: Path, seed: int, texts: list[str] | None = None, engine: Engine | None = None) -> Play:
    """Make a project in a folder."""
    chance = random.Random(seed)
    (folder / "data" / "orders").mkdir(parents=True, exist_ok=True)
    site = Site(broken.write(folder, files()), engine or DuckDBEngine())
    return Play(site, chance, texts or pool.some(chance, 40))
