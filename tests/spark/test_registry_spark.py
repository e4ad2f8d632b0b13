"""Values with schemas, and those of CSV, land on Spark as they do on DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.sources import registry as registry_client
from tests.sources.test_kafka import numbers
from tests.sources.test_message_values import avro
from tests.sources.test_registry import FIRST, SECOND, both, hostile, order, quarantined, send, site
from tests.support.kafka_site import Topic
from tests.support.servers import jars
from tests.support.servers.kafka import Broker
from tests.support.servers.registry import Registry, framed

pytestmark = [pytest.mark.spark, pytest.mark.long]


def avro_messages(one: Topic, registry: Registry) -> list[bytes | None]:
    first, second = both(one, registry)
    good = [framed(first, avro(FIRST, order(1, 'ö"\u2028'))), framed(second, avro(SECOND, order(2, tip=3)))]
    return [*good, *hostile(first), None, framed(first, avro(FIRST, order(4)))]


def csv_messages(one: Topic, registry: Registry) -> list[bytes | None]:
    return [b'o1,"s,\n",1,1.05,2026-05-04T11:59:30Z,', b"o2,s", b"", b" \t", b"o3,\xff,3,,,\r\n", None, b"a\nb"]


def json_messages(one: Topic, registry: Registry) -> list[bytes | None]:
    return [framed(7, b'{"id":"o1","n":1}'), b'{"id":"o2"}', framed(7, b" "), b"\0\0", b"", None, framed(7, b"")]


@pytest.mark.parametrize(
    ("kind", "messages"), [("avro", avro_messages), ("csv", csv_messages), ("json", json_messages)]
)
def test_values_land_on_spark_as_on_duckdb(
    tmp_path: Path, broker: Broker, own_registry: Registry, engine: SparkEngine, kind: str,
    messages: Callable[[Topic, Registry], list[bytes | None]], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    jars.needed(jars.SPARK_KAFKA)
    monkeypatch.setattr(registry_client, "PAUSES", (0.0,))
    one = site(tmp_path / "one", broker, own_registry, kind, engine)
    other = site(tmp_path / "other", broker, own_registry, kind, DuckDBEngine())
    for each in (one, other):
        send(each, *messages(each, own_registry))
    if kind == "avro":
        own_registry.kill()
        assert "SR751" in one.problem()
        own_registry.start()
    for each in (one, other):
        assert each.tick().published

    def rows(topic: Topic) -> list[str]:
        return sorted(map(str, topic.site.rows("stg")))

    def faults(topic: Topic) -> list[tuple[Any, ...]]:
        found = [(row["line"], row["reason"], row["raw"]) for row in quarantined(topic)]
        return [
            (line, reason.partition(" (schema")[0], raw if "AAAA" not in raw else "") for line, reason, raw in found
        ]

    assert rows(one) == rows(other)
    assert faults(one) == faults(other) and faults(one)
    assert numbers(one) == numbers(other) and numbers(one)["unexplained"] == 0
    assert [row["dropped"] for row in one.intake()] == [row["dropped"] for row in other.intake()]
