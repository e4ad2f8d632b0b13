"""Transactions of a database over several tables, the messages that a connector sends, and brokers that lag. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

TABLES = ("customers", "orders", "items")
TOPIC = "shop.transaction"
# Milliseconds since 1970 of the first transaction.
START = 1_777_896_000_000


@dataclass(frozen=True)
class Sent:
    """A message: topic, partition, key, value, and the number of its transaction (0: a snapshot's row)."""

    topic: str
    partition: int
    key: str
    value: dict[str, Any]
    transaction: int


@dataclass
class Commits:
    """Random transactions. Each adds amounts to rows of some tables, and the amounts of a transaction add up to 0."""

    seed: int
    partitions: int = 1
    lsn: int = 1_000
    number: int = 0
    time: int = START
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def transaction(self) -> list[Sent]:
        """Return the messages of the next transaction: the begin, the events in their order, the end."""
        self.number += 1
        self.time += self.random.choice((0, 1, 700))
        tables = self.random.sample(TABLES, self.random.randint(1, 3))
        amounts = [self.random.randint(-9, 9) for _ in range(self.random.randint(1, 5))]
        amounts.append(-sum(amounts))
        begin = self._mark("BEGIN", None)
        counts = dict.fromkeys(tables, 0)
        events = []
        for place, amount in enumerate(amounts, 1):
            table = self.random.choice(tables)
            counts[table] += 1
            events.append(self._event(table, amount, place, counts[table]))
        end = self._mark("END", {table: count for table, count in counts.items() if count})
        return [begin, *events, end]

    def _event(self, table: str, amount: int, place: int, of_table: int) -> Sent:
        self.lsn += 8
        key = self.random.randint(1, 6)
        source = {"schema": "public", "table": table, "txId": self.number, "lsn": self.lsn, "ts_ms": self.time}
        transaction = {"id": f"{self.number}:{self.lsn}", "total_order": place, "data_collection_order": of_table}
        row = {"id": key, "amount": amount}
        value = {"before": None, "after": row, "source": source, "transaction": transaction, "op": "u"}
        return Sent(f"shop.public.{table}", key % self.partitions, json.dumps({"id": key}), value, self.number)

    def _mark(self, status: str, counts: dict[str, int] | None) -> Sent:
        self.lsn += 8
        tables = counts and [{"data_collection": f"public.{name}", "event_count": n} for name, n in counts.items()]
        identity = f"{self.number}:{self.lsn}"
        value = {
            "status": status, "id": identity, "event_count": counts and sum(counts.values()),
            "data_collections": tables, "ts_ms": self.time,
        }  # fmt: skip
        return Sent(TOPIC, 0, json.dumps({"id": identity}), value, self.number)


def events(log: Sequence[Sent], until: int) -> set[tuple[str, int]]:
    """Return the events of the transactions up to a number: topic and position in the database's log."""
    return {(one.topic, one.value["source"]["lsn"]) for one in log if one.topic != TOPIC and one.transaction <= until}


def with_crashes(log: Sequence[Sent], random: Random, chance: float) -> Iterator[Sent]:
    """Yield the messages of a connector that dies now and then, and begins again at an earlier message.

    What it had sent stays. From some message on, those under way to some partitions never arrive.
    """
    place = 0
    while place < len(log):
        if random.random() < chance:
            dropped = {(one.topic, one.partition) for one in log if random.random() < 0.3}
            yield from (one for one in log[place : place + random.randint(0, 6)] if _place(one) not in dropped)
            first = max(log[place].transaction - random.randint(0, 3), 1)
            place = random.choice((place, next(n for n, one in enumerate(log) if one.transaction == first)))
        yield log[place]
        place += 1


def _place(sent: Sent) -> tuple[str, int]:
    return sent.topic, sent.partition


@dataclass
class Lagging:
    """A broker whose partitions lag behind the connector, each by itself; `logs` have what arrived."""

    messages: Sequence[Sent]
    random: Random
    logs: dict[tuple[str, int], list[Sent]] = field(default_factory=dict)
    _left: dict[tuple[str, int], list[tuple[int, Sent]]] = field(init=False)
    _sent: int = 0

    def __post_init__(self) -> None:
        self._left = {}
        for number, one in enumerate(self.messages):
            self._left.setdefault((one.topic, one.partition), []).append((number, one))

    @property
    def is_done(self) -> bool:
        """Return whether everything has arrived."""
        return not any(self._left.values())

    def go_on(self, most: int) -> list[Sent]:
        """Let the connector send some more messages; return what arrives, in an order of each partition's own."""
        self._sent += self.random.randint(0, most)
        arrived = []
        for place, waiting in self._left.items():
            due = [one for number, one in waiting if number < self._sent]
            some = due if self.random.random() < 0.4 else due[: self.random.randint(0, len(due))]
            del waiting[: len(some)]
            self.logs.setdefault(place, []).extend(some)
            arrived += some
        return arrived
