"""The project of `project.py` with its sales in a topic, what happens to it in the field, and what must be true."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from sqlrun.engines.delta import table as delta_table
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import relation
from tests.crash import project as project_module
from tests.crash.project import World
from tests.support.script import FIVE, START
from tests.support.servers import jars, topics
from tests.support.servers.kafka import Broker
from tests.support.waiting import HUNG
from tests.support.whole import differences

BY_FILES = "        format: json\n        path: data/orders\n"
MOST_PARTITIONS = 6
BROKEN = ('{"id": "cut', "[1, 2]", '{"id": "x"}', b'{"id": "\xff"}')

TRANSACTION = {"transaction.timeout.ms": 600_000}


class TopicWorld(World):
    """A world whose lines are messages. `sent` has the text of each committed message by its origin."""

    def __init__(self, folder: Path, broker: Broker, engine: str = "duckdb", compacted: bool = False) -> None:
        super().__init__(folder, engine)
        self.broker = broker
        self.topic = topics.create(broker, topics.unique("sales"), 2, topics.COMPACTED if compacted else None)
        self.partitions = 2
        self.sent: dict[str, bytes] = {}
        self.happened: Counter[str] = Counter()
        # One thread for the whole life of the world: a broker dies with the thread that started it.
        self._beside = ThreadPoolExecutor(1)
        self._keys: dict[str, bytes | str | None] = {}
        self._open: list[tuple[Producer, dict[str, bytes]]] = []
        self._declare()

    def _declare(self) -> None:
        file = self.root / "models" / "_sources.yml"
        text = file.read_text()
        assert BY_FILES in text
        limit = "        max_offsets_per_tick: 1000\n"
        file.write_text(text.replace(BY_FILES, f"        format: kafka\n        topic: {self.topic}\n{limit}"))
        profile = self.root / "profiles" / "here.yml"
        more = f"connections: {{kafka: {{bootstrap: {self.broker.address}}}}}\n"
        if self.engine != "duckdb":
            listed = ",".join(map(str, jars.SPARK_KAFKA.files()))
            more += f'settings: {{spark.jars: "{listed}", spark.driver.memory: 1500m}}\n'
        profile.write_text(profile.read_text() + more)

    def arrive(self) -> None:
        """Five minutes pass; sales come by producers of every kind, and things happen to the topic."""
        self.number += 1
        chance = self._chance
        if chance.random() < 0.06 and self.partitions < MOST_PARTITIONS:
            self.partitions += 1
            topics.add_partitions(self.broker, self.topic, self.partitions)
            self.happened["partition added"] += 1
        self.produce(8)
        if chance.random() < 0.4:
            self._transaction(ended="commit")
        if chance.random() < 0.4:
            self._transaction(ended="abort")
        project_module.rename(self.root, self.number)

    def open(self) -> None:
        """Leave a transaction open while a build runs: its messages, and those behind them, aren't to be read yet."""
        self._transaction(ended="")

    def settle(self) -> None:
        """End what is open, and wait until the broker has written the ends."""
        for producer, made in self._open:
            if self._chance.random() < 0.5:
                _resumed(producer.commit_transaction)
                self.sent |= made
            else:
                _resumed(producer.abort_transaction)
        self._open.clear()
        topics.settle(self.broker, self.topic)

    def delete_landed(self) -> None:
        """Delete messages that have landed: retention that loses nothing."""
        ends: dict[int, int] = {}
        for origin in self._landed_origins():
            partition, offset = map(int, origin.split("/")[1:])
            ends[partition] = max(ends.get(partition, 0), offset + 1)
        if ends:
            partition = self._chance.choice(sorted(ends))
            topics.delete_records(self.broker, self.topic, ends[partition], partition)
            self.happened["landed messages deleted"] += 1

    def produce(self, count: int) -> None:
        """Produce messages without a transaction; each is sent once, though the broker may die meanwhile."""
        producer, made = self._producer({}), dict[str, bytes]()
        self._send(producer, made, count)
        assert producer.flush(90) == 0, "messages were not delivered"
        self.sent |= made

    def _transaction(self, ended: str) -> None:
        producer, made = self._producer(TRANSACTION | {"transactional.id": topics.unique("sale")}), dict[str, bytes]()
        _resumed(producer.init_transactions)
        producer.begin_transaction()
        self._send(producer, made, self._chance.randrange(1, 5))
        assert producer.flush(60) == 0
        match ended:
            case "commit":
                _resumed(producer.commit_transaction)
                self.sent |= made
            case "abort":
                _resumed(producer.abort_transaction)
            case _:
                self._open.append((producer, made))
        self.happened[f"transaction {ended or 'left open'}"] += 1

    def _producer(self, more: dict[str, Any]) -> Producer:
        settings = {
            "bootstrap.servers": self.broker.address,
            "enable.idempotence": True,
            "linger.ms": 2,
            "log_level": 0,
        }
        return Producer({**settings, "reconnect.backoff.max.ms": 500, **more})

    def _send(self, producer: Producer, made: dict[str, bytes], count: int) -> None:
        def delivered(error: Any, message: Message) -> None:
            assert error is None, error
            value = message.value()
            assert value is not None
            origin = f"{self.topic}/{message.partition()}/{message.offset()}"
            made[origin], self._keys[origin] = bytes(value), message.key()

        for _ in range(count):
            text = self._text()
            key = json.dumps(self._chance.randrange(12))
            producer.produce(self.topic, text, key, self._chance.randrange(self.partitions), on_delivery=delivered)

    def _text(self) -> bytes:
        chance = self._chance
        if chance.random() < 0.05:
            one = chance.choice(BROKEN)
            return one if isinstance(one, bytes) else one.encode()
        at = START + self.number * FIVE - timedelta(minutes=chance.randrange(-5, 90))
        sale = {
            "id": f"s{chance.randrange(40)}",
            "version": chance.randrange(1, 9),
            "shop": chance.choice("xyz"),
            "amount": f"{chance.randrange(-30, 90)}.00",
            "sold_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return json.dumps(sale).encode()

    @contextmanager
    def meanwhile(self, longest: float) -> Iterator[list[str]]:
        """While a build runs, kill the broker and start it again, or produce; return what happened."""
        incidents: list[str] = []
        kills, produces = self._chance.random() < 0.1, self._chance.random() < 0.3
        moment, pause = self._chance.uniform(0, longest), self._chance.uniform(0, 1)

        def act() -> None:
            if kills:
                time.sleep(moment)
                self.broker.kill()
                incidents.append("broker killed")
                time.sleep(pause)
                self.broker.start()
            if produces:
                self.produce(6)
                incidents.append("messages sent meanwhile")

        acting = self._beside.submit(act)
        try:
            yield incidents
        finally:
            acting.result()
            self.happened.update(incidents)

    def check(self) -> None:
        """Every sent message is one row, landed or quarantined; every table is its whole query's answer."""
        rows = self.rows()
        found = Counter(row["_file"] for row in rows)
        twice = [origin for origin, count in found.items() if count > 1]
        lost, unknown = sorted(self.sent.keys() - found.keys()), sorted(found.keys() - self.sent.keys())
        assert not twice and not lost and not unknown, f"twice {twice}, lost {lost}, never sent {unknown}"
        self.lines = len(rows)
        self._check_rows(rows)

    def check_partial(self) -> None:
        """No message is a row twice, and each row is a message: one that was sent, or that is being sent."""
        rows = self.rows()
        found = Counter(row["_file"] for row in rows)
        twice = [origin for origin, count in found.items() if count > 1]
        unknown = sorted(found.keys() - self.sent.keys())
        assert not twice and not unknown, f"twice {twice}, never sent {unknown}"
        self._check_rows(rows)

    def check_compacted(self) -> int:
        """A message that isn't a row has a newer one of its key; return the number of rows."""
        rows = self.rows()
        found = Counter(row["_file"] for row in rows)
        assert max(found.values()) == 1 and found.keys() <= self.sent.keys()
        newest: dict[tuple[str, bytes | str | None], int] = {}
        for origin in self.sent:
            place, _, offset = origin.rpartition("/")
            key = (place, self._keys.get(origin))
            newest[key] = max(newest.get(key, -1), int(offset))
        last = {f"{place}/{offset}" for (place, _), offset in newest.items()}
        assert last <= found.keys(), f"lost {sorted(last - found.keys())}"
        self._check_rows(rows)
        return len(rows)

    def _check_rows(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            text = self.sent[row["_file"]].decode("utf-8", "replace")
            if row["_reason"] is not None:
                assert row["_raw"] == text, row
                continue
            sale = json.loads(text)
            assert (row["id"], row["version"], row["shop"]) == (sale["id"], sale["version"], sale["shop"]), row
            assert f"{row['amount']}" == sale["amount"], row
        published = Ledger(self.warehouse, "shops").read().published
        assert published is not None
        assert published.as_of == START + self.number * FIVE
        # The files' world compares each tick; here the question is the landing.
        if self.number % 5 == 0:
            assert differences(self.site, published.as_of) == {}

    def rows(self) -> list[dict[str, Any]]:
        """Return the published rows of the landing table, the quarantined ones too."""
        published = self.ledger.read().published
        assert published is not None
        bound = relation(self.warehouse, "stg_lines", published.tables["stg_lines"])
        table = delta_table.open_table(bound.path, bound.version)
        found: list[dict[str, Any]] = table.to_pyarrow_table().to_pylist()
        return found

    def _landed_origins(self) -> list[str]:
        return [row["_file"] for row in self.rows()] if self.published() else []


def _resumed(step: Callable[[float], object]) -> None:
    """Do a step of a transaction; a broker that was killed may take long to answer."""
    end = time.monotonic() + HUNG
    while True:
        try:
            step(20)
            return
        except KafkaException as error:
            if error.args[0].code() != KafkaError._TIMED_OUT or time.monotonic() > end:
                raise
