"""A small project that lands a Kafka topic: one source, its staging model, a count by shop. Shell: files, broker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from sqlrun.cli.main import main
from sqlrun.engine_api import Engine
from sqlrun.events import TickResult
from sqlrun.project import Connection
from sqlrun.system_tables import intake
from tests.support.projects import Site
from tests.support.servers import topics
from tests.support.servers.kafka import Broker
from tests.support.servers.topics import Message

START = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)
FIVE = timedelta(minutes=5)
COLUMNS = (("id", "string"), ("shop", "string"), ("n", "int"))
CONTRACT = """models:
  - name: {name}
    description: A row.
    grain: [{grain}]
    columns:
{columns}
"""


@dataclass
class Topic:
    """A topic, and the project that lands it."""

    broker: Broker
    name: str
    site: Site
    ticks: int = 0

    def send(self, *lines: str | None, partition: int = 0, **more: Any) -> None:
        """Produce messages with these values; None is a tombstone."""
        made = [Message(None if v is None else v.encode(), partition=partition, **more) for v in lines]
        topics.produce(self.broker, self.name, made)

    def tick(self) -> TickResult:
        """Build the whole project five minutes later."""
        self.ticks += 1
        return self.site.tick(START + FIVE * self.ticks)

    def landed(self) -> list[str]:
        """Return the ids of the published rows of the staging model, in order."""
        return sorted(row["id"] for row in self.site.rows("stg"))

    def problem(self) -> str:
        """Return the message of a tick whose landing fails."""
        result = self.tick()
        assert not result.published
        return next(node.message for node in result.nodes if node.name == "stg")

    def intake(self) -> list[dict[str, Any]]:
        """Return the accounting of all batches."""
        return intake.read(self.site.warehouse, "")

    def command(self, *words: str) -> Result:
        """Run a command of sqlrun on the project."""
        return CliRunner().invoke(main, ["--project-dir", str(self.site.root), *words])


def made(
    folder: Path,
    broker: Broker,
    engine: Engine,
    *,
    declared: str = "",
    columns: str = "",
    select: str = "",
    partitions: int = 1,
    settings: dict[str, str] | None = None,
) -> Topic:
    """Create a topic and a project that lands it; `declared` are more keys of the source, `columns` more columns."""
    name = topics.create(broker, topics.unique(), partitions, settings)
    project(folder, f"topic: {name}\n        {declared}", columns, select, broker.address)
    site = Site(folder, engine, connections={"kafka": Connection(broker.address)})
    return Topic(broker, name, site)


def project(folder: Path, declared: str, columns: str, select: str, address: str) -> None:
    """Write the project's files."""
    own = "".join(f"          - {{name: {n}, data_type: {t}, description: It.}}\n" for n, t in COLUMNS)
    texts = {
        "pyproject.toml": '[tool.sqlrun]\nname = "shop"\nprofile = "duckdb"\n',
        "profiles/duckdb.yml": (
            f"engine: duckdb\nwarehouse: warehouse\nconnections:\n  kafka:\n    bootstrap: {address}\n"
        ),
        "models/_sources.yml": (
            "sources:\n  - name: a\n    tables:\n      - name: b\n        format: kafka\n"
            f"        {declared}\n        columns:\n{own}{columns}"
        ),
        "models/stg.sql": f"select id, shop, n{select} from {{{{ source('a', 'b') }}}}\n",
        "models/stg.yml": CONTRACT.format(name="stg", grain="id", columns=_contract(columns)),
        "models/shops.sql": "select shop, count(*) as orders, sum(n) as total from {{ ref('stg') }} group by shop\n",
        "models/shops.yml": CONTRACT.format(
            name="shops",
            grain="shop",
            columns="".join(
                f"      - {{name: {n}, data_type: {t}, description: It.}}\n"
                for n, t in (("shop", "string"), ("orders", "bigint"), ("total", "bigint"))
            ),
        ),
    }
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def _contract(columns: str) -> str:
    own = "".join(f"      - {{name: {n}, data_type: {t}, description: It.}}\n" for n, t in COLUMNS)
    more = [line.split(", from:")[0].strip().rstrip("}") + "}" for line in columns.splitlines() if line.strip()]
    return own + "".join(f"      {line}\n" for line in more)


def line(number: int, shop: str = "s") -> str:
    """Return an order's line."""
    return f'{{"id":"o{number}","shop":"{shop}","n":{number}}}'
