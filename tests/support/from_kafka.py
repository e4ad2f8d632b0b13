"""The reference project with its orders in a topic, and the three days' script played through it."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

from sqlrun.engine_api import Engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.project import Connection
from tests.support.projects import Site, copy_project
from tests.support.script import plays, published, verify
from tests.support.servers import topics
from tests.support.servers.kafka import Broker

SOURCE = "models/staging/orders/_sources.yml"
BY_FILES = "        format: json\n        path: data/orders\n"
PARTITIONS = 4


def read_from_kafka(root: Path, topic: str, more: str = "") -> None:
    """Change the two lines of the project's source that say where the orders are."""
    file = root / SOURCE
    text = file.read_text()
    assert BY_FILES in text
    file.write_text(text.replace(BY_FILES, f"        format: kafka\n        topic: {topic}\n{more}"))


def kafka_site(root: Path, engine: Engine, broker: Broker, topic: str) -> Site:
    """Return the reference project over a topic."""
    copy_project(root)
    read_from_kafka(root, topic)
    return Site(root, engine, connections={"kafka": Connection(broker.address)})


def send(broker: Broker, topic: str, lines: list[str], chance: random.Random) -> None:
    """Send lines as they come in the field: with an order's id as the key, some in transactions, others aborted."""
    made = []
    for line in lines:
        found = re.search('"order_id" ?: ?"([^"]*)"', line)
        key = found[1].encode() if found else b""
        made.append(topics.Message(line.rstrip("\n").encode(), key or None, partition=sum(key) % PARTITIONS))
    cut = len(made) // 2
    if chance.random() < 0.5:
        topics.abort(broker, topic, made[: cut + 1])
    topics.commit(broker, topic, made[:cut])
    topics.produce(broker, topic, made[cut:])
    topics.settle(broker, topic)


def played(folder: Path, engine: Engine, broker: Broker, ticks: int) -> int:
    """Play the script through a topic and by files, and verify every tick; return the number of ticks.

    Each mart is the plain-Python oracle's, and each table has the same rows as by files.
    """
    topic = topics.create(broker, topics.unique("orders"), PARTITIONS)
    through = kafka_site(folder / "kafka", engine, broker, topic)
    by_files = Site(copy_project(folder / "files"), DuckDBEngine())
    chance, sent, count = random.Random(1), list[str](), 0
    for count, step in enumerate(plays(ticks), 1):
        if step.lines is not None:
            by_files.write(f"{count:04}.jsonl", list(step.lines))
            send(broker, topic, list(step.lines), chance)
            sent += [line for text in step.lines for line in text.splitlines() if line]
        published(by_files, step.as_of)
        verify(through, step, sent, compared=False)
        assert tables(through) == tables(by_files), step
    return count


def tables(site: Site) -> dict[str, Counter[str]]:
    """Return the rows of every public table without what says where a line was, and when it landed."""
    newest = site.ledger.read().published
    assert newest is not None
    names = [name for name in newest.tables if "__state_" not in name]
    return {
        name: Counter(str({key: value for key, value in row.items() if key not in OWN}) for row in site.rows(name))
        for name in names
    }


OWN = ("_file", "_landed_at")
