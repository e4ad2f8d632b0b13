"""A project over the topics of a database of three tables, whose ticks take whole transactions. Shell: the broker."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from sqlrun.engine_api import Engine
from sqlrun.project import Connection
from tests.support.commits import TABLES, TOPIC, Sent
from tests.support.projects import Site
from tests.support.servers import topics
from tests.support.servers.kafka import Broker
from tests.support.servers.topics import Message

COLUMNS = {"id": "bigint", "amount": "bigint", "op": "string", "position": "string"}
TOTALS = "select 1 as one, count(*) as events, sum(amount) as total from (\n{parts}\n) as e group by 1"


class Databases:
    """Topics under a prefix of their own, and a site that reads them. `Sent.topic` gets the prefix."""

    def __init__(self, folder: Path, broker: Broker, engine: Engine, partitions: int = 1, limit: int = 0) -> None:
        self.broker, self.prefix = broker, topics.unique("db")
        for table in TABLES:
            topics.create(broker, f"{self.prefix}.shop.public.{table}", partitions)
        topics.create(broker, self.marks)
        self.site = self._site(folder, engine, limit)

    @property
    def marks(self) -> str:
        """Return the transaction topic."""
        return f"{self.prefix}.{TOPIC}"

    def _site(self, folder: Path, engine: Engine, limit: int) -> Site:
        texts = {
            "profiles/duckdb.yml": "engine: duckdb\nwarehouse: warehouse\n"
            f"connections:\n  kafka:\n    bootstrap: {self.broker.address}\n",
            "pyproject.toml": '[tool.sqlrun]\nname = "shop"\nprofile = "duckdb"\n',
            "models/_sources.yml": self.declared(limit),
        }
        listed = "".join(f"      - {{name: {n}, data_type: {t}, description: It.}}\n" for n, t in COLUMNS.items())
        for table in TABLES:
            texts[f"models/{table}.sql"] = f"select {', '.join(COLUMNS)} from {{{{ source('shop', '{table}') }}}}\n"
            texts[f"models/{table}.yml"] = (
                f"models:\n  - name: {table}\n    description: It.\n    grain: [id, position]\n    repeats: true\n"
                f"    columns:\n{listed}"
            )
        parts = "\nunion all\n".join(
            f"select amount from (select distinct id, position, amount from {{{{ ref('{table}') }}}}) as {table}"
            for table in TABLES
        )
        texts["models/totals.sql"] = TOTALS.replace("{parts}", parts) + "\n"
        texts["models/totals.yml"] = (
            "models:\n  - name: totals\n    description: It.\n    grain: [one]\n    columns:\n"
            "      - {name: one, data_type: int, description: It.}\n"
            "      - {name: events, data_type: bigint, description: It.}\n"
            "      - {name: total, data_type: bigint, description: It.}\n"
        )
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        site = Site(folder, engine)
        site.connections = {"kafka": Connection(self.broker.address)}
        return site

    def declared(self, limit: int = 0, transactions: bool = True) -> str:
        """Return the declaration of the sources."""
        text = "sources:\n  - name: shop\n    tables:\n"
        for table in TABLES:
            whole = f", transactions: {self.marks}" if transactions else ""
            columns = ""
            for name, of_type in COLUMNS.items():
                comes = f", from: {name}" * (name in ("op", "position"))
                columns += f"          - {{name: {name}, data_type: {of_type}, description: It.{comes}}}\n"
            text += (
                f"      - name: {table}\n        format: kafka\n        topic: {self.prefix}.shop.public.{table}\n"
                + f"        max_offsets_per_tick: {limit}\n" * bool(limit)
                + f"        cdc: {{format: debezium, key: [id], table: public.{table}{whole}}}\n"
                + f"        columns:\n{columns}"
            )
        return text

    def send(self, messages: Iterable[Sent]) -> None:
        """Send messages, in their order in each partition."""
        by_topic: dict[str, list[Message]] = {}
        for one in messages:
            message = Message(json.dumps(one.value).encode(), one.key.encode(), partition=one.partition)
            by_topic.setdefault(one.topic, []).append(message)
        for name, found in by_topic.items():
            topics.produce(self.broker, f"{self.prefix}.{name}", found)

    def landed(self) -> set[tuple[str, int]]:
        """Return the landed events: the topic without its prefix, and the number in the database's log."""
        return {
            (f"shop.public.{table}", int(row["position"].partition("/")[0]))
            for table in TABLES
            for row in self.site.rows(table)
        }

    def totals(self) -> tuple[int, int]:
        """Return the number of events and the sum of their amounts."""
        rows = self.site.rows("totals")
        return (rows[0]["events"], rows[0]["total"]) if rows else (0, 0)
