"""Kafka topics land on Spark as they do on DuckDB, and the engines take turns on one landing table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from tests.sources.test_kafka import numbers
from tests.support.kafka_site import Topic, line, made
from tests.support.servers import jars, topics
from tests.support.servers.kafka import Broker
from tests.support.servers.topics import Message

pytestmark = pytest.mark.spark

ATTACHED = (
    "          - {name: sent_key, data_type: string, description: It., from: key}\n"
    "          - {name: place, data_type: bigint, description: It., from: offset}\n"
    "          - {name: number, data_type: int, description: It., from: partition}\n"
    "          - {name: topic, data_type: string, description: It., from: topic}\n"
    "          - {name: at, data_type: timestamp, description: It., from: timestamp}\n"
    "          - {name: trace, data_type: string, description: It., from: 'header:trace-id'}\n"
    "          - {name: gone, data_type: boolean, description: It., from: tombstone}\n"
    "          - {name: heads, data_type: 'array<struct<key:string,value:string>>', description: It., from: headers}\n"
)
SELECT = ", sent_key, place, number, topic, at, trace, gone, heads"
HOSTILE = (
    Message(line(1).encode(), b'k"1\x01', [("trace-id", b"first"), ("trace-id", b't"\\ 1')], 1_777_896_000_123),
    Message(b" \t{ }", None, (), 1_777_896_000_000),
    Message(b'{"sent_key":"forged","id":"o2"}', b"k2", (), 1_777_896_000_000),
    Message(None, b"o3", [("trace-id", None)], 1_777_896_000_001, 1),
    Message(b"", b"blank", (), 1_777_896_000_000),
    Message(b"[1]", b"list", (), 1_777_896_000_000),
    Message(b'{"id":"o\xff4","shop":"s","n":4}', b"\xff\xfe", (), 1_777_896_000_002),
    Message('{"id":"ö5","shop":"\u2028","n":5.0}'.encode(), "ключ\x7f".encode(), (), 1_777_896_000_003, 1),
)


def test_messages_land_on_spark_as_on_duckdb(tmp_path: Path, broker: Broker, engine: SparkEngine) -> None:
    jars.needed(jars.SPARK_KAFKA)
    one = made(tmp_path / "one", broker, engine, columns=ATTACHED, select=SELECT, partitions=2)
    other = made(tmp_path / "other", broker, DuckDBEngine(), columns=ATTACHED, select=SELECT, partitions=2)
    for site in (one, other):
        topics.produce(broker, site.name, HOSTILE)
        topics.abort(broker, site.name, [Message(line(9).encode())])
        topics.commit(broker, site.name, [Message(line(8).encode(), b"k", (), 1_777_896_000_009)])
        assert site.tick().published

    def rows(topic: Topic) -> list[str]:
        return sorted(str({**row, "topic": ""}) for row in topic.site.rows("stg"))

    assert rows(one) == rows(other)
    assert numbers(one) == numbers(other) and numbers(one)["unexplained"] == 0
    quarantined = [
        site.command("quarantine", "show", "stg", "--json").output.replace(site.name, "topic") for site in (one, other)
    ]
    assert "duplicate key" in quarantined[0]
    assert sorted(_raw(quarantined[0])) == sorted(_raw(quarantined[1]))


def _raw(text: str) -> list[str]:
    return [f"{row['reason']}: {row['file']} {row['line']} {row['raw']}" for row in json.loads(text)]


def test_engines_alternate_on_a_topic(tmp_path: Path, broker: Broker, engine: SparkEngine) -> None:
    jars.needed(jars.SPARK_KAFKA)
    one = made(tmp_path / "one", broker, DuckDBEngine(), declared="tombstones: drop")
    one.send(line(1), None)
    assert one.tick().published
    one.site.engine = engine
    one.send(line(2), "", None)
    assert one.tick().published
    assert one.tick().published
    one.site.engine = DuckDBEngine()
    one.send(line(3))
    assert one.tick().published

    assert one.landed() == ["o1", "o2", "o3"]
    assert numbers(one) == {
        "read": 6, "landed": 3, "quarantined": 0, "dropped": 3, "gaps": 0, "lost": 0, "unexplained": 0
    }  # fmt: skip


def test_spark_names_a_range_that_is_gone(tmp_path: Path, broker: Broker, engine: SparkEngine) -> None:
    jars.needed(jars.SPARK_KAFKA)
    one = made(tmp_path / "one", broker, engine)
    one.send(line(1))
    assert one.tick().published
    one.send(*(line(n) for n in range(2, 7)))
    topics.delete_records(broker, one.name, 4)

    assert f"{one.name}/0 begins at offset 4, so [1, 4) never landed" in one.problem()
    assert one.command("source", "accept-loss", "stg", "--yes").exit_code == 0
    assert one.tick().published
    assert one.landed() == ["o1", "o5", "o6"]
    assert numbers(one)["lost"] == 3 and numbers(one)["unexplained"] == 0
