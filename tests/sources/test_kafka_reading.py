"""Ranges of a topic as lines: exactly the committed messages of the range, with their origins, whatever their bytes."""

from __future__ import annotations

import json
import pickle
import time
from collections import Counter
from typing import Any

import pytest

from sqlrun.errors import Place, SourceError
from sqlrun.project import Column, Connection, Topic
from sqlrun.source_api import Extent
from sqlrun.sources import kafka_client
from sqlrun.sources.kafka import TOMBSTONE, Kafka
from sqlrun.sources.kafka_client import Client, Offsets
from tests.support.servers import topics
from tests.support.servers.kafka import Broker
from tests.support.servers.topics import Message


@pytest.fixture
def topic(broker: Broker) -> str:
    return topics.create(broker, topics.unique(), 3)


def source(broker: Broker, topic: str, *columns: Column, **more: str) -> Kafka:
    return Kafka(Topic(topic=topic, **more), columns, Client("kafka", Connection(broker.address)))  # type: ignore[arg-type]


def read(one: Kafka, ranges: dict[str, tuple[int, int]]) -> tuple[Counter[tuple[str, str]], dict[str, Extent]]:
    """Return each line's origin and text with their number, and the extents; parts are named without the topic's id."""
    names = {name.partition("@")[0]: name for name in one.pending({}).ready}
    reading = one.read({names[name]: position for name, position in ranges.items()})
    found = Counter((row["file"], row["value"]) for table in reading.tables() for row in table.to_pylist())
    return found, {name.partition("@")[0]: extent for name, extent in reading.extents.items()}


def test_bytes_that_are_not_utf_8_are_replaced_in_their_own_message(broker: Broker, topic: str) -> None:
    """Half a letter at the end of a message isn't completed by the beginning of the next."""
    values = ["é".encode()[:1], "é".encode()[1:], "käse".encode(), b"\xff{}", b"plain"]
    topics.produce(broker, topic, [Message(value) for value in values])

    found, _ = read(source(broker, topic), {f"{topic}/0": (0, 5)})

    assert found == Counter({(f"{topic}/0/{n}", text): 1 for n, text in enumerate(["�", "�", "käse", "�{}", "plain"])})


def test_a_range_ends_where_it_was_asked_to(broker: Broker, topic: str) -> None:
    for partition in range(3):
        topics.produce(broker, topic, [Message(str(n).encode(), partition=partition) for n in range(30)])

    ranges = {f"{topic}/0": (5, 9), f"{topic}/1": (0, 30), f"{topic}/2": (29, 30)}
    found, extents = read(source(broker, topic), ranges)

    wanted = {(f"{name}/{n}", str(n)) for name, (since, until) in ranges.items() for n in range(since, until)}
    assert found == Counter(dict.fromkeys(wanted, 1))
    assert extents == {f"{topic}/0": Extent(4), f"{topic}/1": Extent(30), f"{topic}/2": Extent(1)}


def test_ends_of_transactions_are_gaps_also_at_the_end_of_a_range(broker: Broker, topic: str) -> None:
    topics.commit(broker, topic, [Message(b"a"), Message(b"b")])
    topics.abort(broker, topic, [Message(b"never"), Message(b"never")])
    topics.settle(broker, topic)

    found, extents = read(source(broker, topic), {f"{topic}/0": (0, 6)})

    assert found == Counter({(f"{topic}/0/0", "a"): 1, (f"{topic}/0/1", "b"): 1})
    assert extents == {f"{topic}/0": Extent(2)}


@pytest.mark.parametrize("tombstones", ["rows", "drop"])
def test_a_tombstone_is_a_row_or_none(broker: Broker, topic: str, tombstones: str) -> None:
    topics.produce(broker, topic, [Message(b'{"a":1}', b"k"), Message(None, b"k")])
    key = Column("key", "string", "", Place("sources.yml"), comes_from="key")

    found, extents = read(source(broker, topic, key, tombstones=tombstones), {f"{topic}/0": (0, 2)})

    texts = {text: origin for origin, text in found}
    assert json.loads(next(text for text in texts if "a" in text)) == {"a": 1, "key": "k"}
    assert (('{"key":"k"}' in texts) == (tombstones == "rows")) and len(found) == (2 if tombstones == "rows" else 1)
    assert extents == {f"{topic}/0": Extent(2, {} if tombstones == "rows" else {TOMBSTONE: 1})}


def test_few_messages_take_no_longer_than_many(broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library waits for as many messages as it is asked for; a small range must not wait for all of them."""
    monkeypatch.setattr(kafka_client, "POLL", 30.0)
    topics.produce(broker, topic, [Message(b"1"), Message(b"2")])

    begun = time.monotonic()
    found, _ = read(source(broker, topic), {f"{topic}/0": (0, 2)})

    assert found.total() == 2 and time.monotonic() - begun < 20


def test_another_process_connects_by_itself(broker: Broker, topic: str) -> None:
    one = source(broker, topic)
    one.pending({})

    again = pickle.loads(pickle.dumps(one))

    assert again == one and again.pending({}).ready == one.pending({}).ready


@pytest.mark.parametrize(("failures", "code"), [(2, "NOT_LEADER_FOR_PARTITION"), (1, "INVALID_REQUEST")])
def test_offsets_are_asked_for_again_while_a_partition_gets_a_leader(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch, failures: int, code: str
) -> None:
    """A partition whose leader changes answers with an error that passes; any other error ends the tick."""
    library = kafka_client.kafka_library()
    topics.produce(broker, topic, [Message(b"{}")])
    client = Client("kafka", Connection(broker.address))
    real, asked = Client._offsets, 0

    def flaky(self: Client, *arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked <= failures:
            raise library.KafkaException(library.KafkaError(getattr(library.KafkaError, code)))
        return real(self, *arguments)

    monkeypatch.setattr(Client, "_offsets", flaky)
    if code == "INVALID_REQUEST":
        with pytest.raises(SourceError, match="SR748"):
            client.offsets([(topic, 0)])
    else:
        assert client.offsets([(topic, 0)]) == {(topic, 0): Offsets(0, 1)}
