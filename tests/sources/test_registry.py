"""Messages with schemas land by the schema that wrote them: against a real broker and a real schema registry."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqlrun.decoding import confluent
from sqlrun.engine_api import Engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.sources import registry as registry_client
from tests.sources.test_kafka import numbers
from tests.sources.test_message_values import avro
from tests.support import fake_registry
from tests.support.kafka_site import Topic, made
from tests.support.projects import prepared
from tests.support.servers import topics
from tests.support.servers.kafka import Broker
from tests.support.servers.registry import Registry, framed
from tests.support.servers.topics import Message

ENGINE = DuckDBEngine()
COLUMNS = (
    "          - {name: price, data_type: 'decimal(10,2)', description: It.}\n"
    "          - {name: at, data_type: timestamp, description: It.}\n"
    "          - {name: day, data_type: date, description: It.}\n"
    "          - {name: sent_key, data_type: string, description: It., from: key}\n"
)
SELECT = ", price, at, day, sent_key"
FIRST: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "shop", "type": "string"},
        {"name": "n", "type": "int"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    ],
}
# The same bytes mean something else by the other schema: two fields have changed places, and one is new.
SECOND = {
    **FIRST,
    "fields": [FIRST["fields"][1], FIRST["fields"][0], *FIRST["fields"][2:], {"name": "tip", "type": "long"}],
}
AT, DAY = datetime(2026, 5, 4, 11, 59, 30, 123456, tzinfo=timezone.utc), date(2026, 5, 4)
PROTO = """syntax = "proto3";
package shop;
import "shop/money.proto";
message Envelope { message Order { string id = 1; string shop = 2; int32 n = 3; Money price = 4; } }
"""
MONEY = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'


def order(number: int, shop: str = "s", **more: Any) -> dict[str, Any]:
    return {
        "id": f"o{number}",
        "shop": shop,
        "n": number,
        "price": Decimal(f"{number}.05"),
        "at": AT,
        "day": DAY,
        **more,
    }


def site(tmp_path: Path, broker: Broker, registry: Registry, kind: str, engine: Engine = ENGINE, **more: Any) -> Topic:
    settings = {"columns": COLUMNS, "select": SELECT, **more}
    return made(tmp_path, broker, engine, declared=f"value_format: {kind}", registry=registry.url, **settings)


def send(one: Topic, *values: bytes | None) -> None:
    stamps = [Message(value, b"k%d" % n, timestamp=1_777_896_000_000) for n, value in enumerate(values)]
    topics.produce(one.broker, one.name, stamps)


def both(one: Topic, registry: Registry) -> tuple[int, int]:
    """Register both versions and return their ids."""
    first = registry.register(f"{one.name}-value", json.dumps(FIRST))
    registry.require(f"{one.name}-value", "NONE")
    return first, registry.register(f"{one.name}-value", json.dumps(SECOND))


def hostile(first: int) -> list[bytes]:
    whole = framed(first, avro(FIRST, order(50)))
    return [b'{"id":"json"}', b"", whole[:-1], whole + b"\0", framed(999_999, b"x"), b"\0", whole[:5], b"\xff\xfe"]


def quarantined(one: Topic) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(one.command("quarantine", "show", "stg", "--json").output)
    return sorted(found, key=lambda row: int(row["line"]))


@pytest.mark.long
def test_versions_of_a_schema_are_interleaved(tmp_path: Path, broker: Broker, registry: Registry) -> None:
    one = site(tmp_path, broker, registry, "avro")
    first, second = both(one, registry)
    messages = [
        framed(first, avro(FIRST, order(n))) if n % 2 else framed(second, avro(SECOND, order(n, tip=n)))
        for n in range(6)
    ]
    send(one, *messages)
    assert one.tick().published

    rows = {row["id"]: row for row in one.site.rows("stg")}
    assert sorted(rows) == [f"o{n}" for n in range(6)]
    for n in range(6):
        row = rows[f"o{n}"]
        assert (row["shop"], row["n"], row["price"], row["day"], row["sent_key"]) == (
            "s", n, Decimal(f"{n}.05"), DAY, f"k{n}"
        )  # fmt: skip
        assert row["at"].replace(tzinfo=timezone.utc) == AT
    assert numbers(one)["unexplained"] == 0 and numbers(one)["quarantined"] == 0
    drift = json.loads(one.command("drift", "--json").output)
    assert [(d["kind"], d["field"], d["lines"]) for d in drift[0]["drift"]] == [("new", "tip", 3)]
    assert drift[0]["registered"] == {
        "subject": f"{one.name}-value", "id": second, "compatibility": "NONE", "problem": "",
        "differences": [{"kind": "new", "field": "tip", "declared": "", "registered": "bigint"}],
    }  # fmt: skip
    output = one.command("drift").output
    assert "has the field tip bigint, which isn't declared" in output and "any schema" in output


@pytest.mark.long
def test_hostile_values_are_quarantined_with_their_bytes(tmp_path: Path, broker: Broker, registry: Registry) -> None:
    one = site(tmp_path, broker, registry, "avro")
    first, _ = both(one, registry)
    send(one, framed(first, avro(FIRST, order(1))), *hostile(first), None, framed(first, avro(FIRST, order(2))))
    assert one.tick().published

    assert [row["id"] for row in one.site.rows("stg") if row["id"]] == ["o1", "o2"]
    assert numbers(one) == {
        "read": 11, "landed": 3, "quarantined": 8, "dropped": 0, "gaps": 0, "lost": 0, "unexplained": 0
    }  # fmt: skip
    assert [row["reason"] for row in quarantined(one)][:3] == [confluent.NO_ID] * 2 + [
        f"the Avro data is truncated, or of another schema (IndexError) (schema id {first})"
    ]
    assert quarantined(one)[4]["reason"] == "unknown schema id 999999"
    texts = [row["raw"] for row in quarantined(one)]
    assert texts[0] == '"{\\"id\\":\\"json\\"}"' and texts[1] == 'undecoded: {"sent_key":"k2"}'
    assert all(text.startswith("undecoded:") for text in texts[1:])


@pytest.mark.long
def test_a_registry_that_is_away_stops_its_source_with_a_clear_end(
    tmp_path: Path, broker: Broker, own_registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_client, "PAUSES", (0.0,))
    one = site(tmp_path, broker, own_registry, "avro")
    first, second = both(one, own_registry)
    send(one, framed(first, avro(FIRST, order(1))))
    assert one.tick().published
    own_registry.kill()
    send(one, framed(first, avro(FIRST, order(2))))
    assert one.tick().published, "its schema is known"
    send(one, framed(second, avro(SECOND, order(3, tip=0))), framed(first, avro(FIRST, order(4))))
    message = one.problem()
    assert "SR751" in message and "connection `kafka`" in message
    own_registry.start()
    assert one.tick().published

    assert one.landed() == ["o1", "o2", "o3", "o4"]
    assert numbers(one)["unexplained"] == 0 and numbers(one)["read"] == 4


@pytest.mark.long
def test_other_sources_go_on_while_a_registry_is_away(
    tmp_path: Path, broker: Broker, own_registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second source lands meanwhile, the tick says what it lacks, and a later one lands it."""
    monkeypatch.setattr(registry_client, "PAUSES", (0.0,))
    one = site(tmp_path, broker, own_registry, "avro", columns="", select="")
    first, second = both(one, own_registry)
    declared = tmp_path / "models/_sources.yml"
    text = declared.read_text()
    other = text[text.index("      - name: b\n") :].replace("name: b", "name: c")
    plain = topics.create(broker, topics.unique())
    other = other.replace("value_format: avro", "value_format: json").replace(one.name, plain)
    declared.write_text(text.replace("value_format: avro", "value_format: avro\n        if_unreadable: skip") + other)
    (tmp_path / "models/plain.sql").write_text("select id, shop, n from {{ source('a', 'c') }}\n")
    contract = (tmp_path / "models/stg.yml").read_text()
    (tmp_path / "models/plain.yml").write_text(contract.replace("name: stg", "name: plain"))
    one.site.prepared = prepared(tmp_path)
    send(one, framed(first, avro(FIRST, order(1))))
    assert one.tick().published
    own_registry.kill()
    send(one, framed(second, avro(SECOND, order(2, tip=1))))
    topics.produce(broker, plain, [Message(b'{"id":"p1","shop":"s","n":1}')])

    result = one.tick()

    assert result.published
    notes = [stage.note for node in result.nodes if node.name == "stg" for stage in node.stages]
    assert any("SR751" in note and "if_unreadable" in note for note in notes)
    assert (one.landed(), [row["id"] for row in one.site.rows("plain")]) == (["o1"], ["p1"])
    own_registry.start()
    assert one.tick().published
    assert one.landed() == ["o1", "o2"]


@pytest.mark.long
def test_new_fields_of_a_schema_are_declared_as_those_of_json(
    tmp_path: Path, broker: Broker, registry: Registry
) -> None:
    """`on_schema_change` and the level of the subject: a new field is rescued, declared on request, and then lands."""
    one = site(tmp_path, broker, registry, "avro", columns="", select="")
    declared = tmp_path / "models/_sources.yml"
    appending = "value_format: avro\n        on_schema_change: append_new_columns"
    declared.write_text(declared.read_text().replace("value_format: avro", appending))
    schema = {**FIRST, "fields": FIRST["fields"][:3]}
    registry.require(f"{one.name}-value", "BACKWARD")
    first = registry.register(f"{one.name}-value", json.dumps(schema))
    tip = {"name": "tip", "type": ["null", "long"], "default": None}
    second = registry.register(f"{one.name}-value", json.dumps({**schema, "fields": [*schema["fields"], tip]}))
    wider = {**schema, "fields": [*schema["fields"], tip]}
    send(one, framed(first, avro(schema, order(1))), framed(second, avro(wider, order(2, tip=7))))
    assert one.tick().published

    output = one.command("drift", "--write").output
    assert f"the compatibility level of {one.name}-value is BACKWARD: a new schema may leave out" in output
    assert "name: tip" in declared.read_text() and "bigint" in declared.read_text()
    (tmp_path / "models/stg.sql").write_text("select id, shop, n, tip from {{ source('a', 'b') }}\n")
    contract = tmp_path / "models/stg.yml"
    contract.write_text(contract.read_text() + "      - {name: tip, data_type: bigint, description: It.}\n")
    one.site.prepared = prepared(tmp_path)
    send(one, framed(second, avro(wider, order(3, tip=9))))
    assert one.tick().published

    assert {row["id"]: row["tip"] for row in one.site.rows("stg")} == {"o1": None, "o2": 7, "o3": 9}


def test_protobuf_with_references_and_nested_messages(tmp_path: Path, broker: Broker, registry: Registry) -> None:
    columns = "          - {name: price, data_type: 'struct<cents:bigint>', description: It.}\n"
    one = site(tmp_path, broker, registry, "protobuf", columns=columns, select=", price")
    money = topics.unique("money")
    registry.register(money, MONEY, "PROTOBUF")
    to_money = [{"name": "shop/money.proto", "subject": money, "version": 1}]
    number = registry.register(f"{one.name}-value", PROTO, "PROTOBUF", to_money)
    nested = b"\x04\x00\x00"  # two indexes: the first message, and the first one inside of it
    values = [b"\x0a\x02o%d\x12\x01s\x18%c\x22\x02\x08\x07" % (n, n) for n in (1, 2)]
    send(
        one,
        *(framed(number, nested + value) for value in values),
        framed(number, b"\x00"),
        framed(number, nested + b"\x0a\x09o"),
    )
    assert one.tick().published

    rows = [row for row in one.site.rows("stg") if row["id"]]
    assert [(row["id"], row["shop"], row["n"], row["price"]) for row in rows] == [
        ("o1", "s", 1, {"cents": 7}), ("o2", "s", 2, {"cents": 7})
    ]  # fmt: skip
    # The empty message has none of the columns, which may all be missing.
    assert [row["reason"].partition(":")[0] for row in quarantined(one)] == [
        "the Protobuf message is truncated, or of another schema",
    ]
    assert numbers(one)["quarantined"] == 1 and numbers(one)["landed"] == 3 and numbers(one)["unexplained"] == 0


def test_json_with_the_id_of_its_schema(tmp_path: Path, broker: Broker, registry: Registry) -> None:
    one = site(tmp_path, broker, registry, "json", columns="", select="")
    send(
        one, framed(7, b'{"id":"o1","shop":"s","n":1}'), b'{"id":"o2","shop":"s","n":2}', framed(7, b" "), b"\0\0", b""
    )
    assert one.tick().published

    assert one.landed()[:0] == [] and [row["id"] for row in one.site.rows("stg") if row["id"]] == ["o1", "o2"]
    assert numbers(one) == {
        "read": 5, "landed": 2, "quarantined": 1, "dropped": 2, "gaps": 0, "lost": 0, "unexplained": 0
    }  # fmt: skip


def test_values_of_csv(tmp_path: Path, broker: Broker) -> None:
    one = made(tmp_path, broker, ENGINE, declared="value_format: csv", columns=COLUMNS, select=SELECT)
    send(one, b"o1,s,1,1.05,2026-05-04T11:59:30.123456Z,2026-05-04", b'o2,"s",2,2.05,,', b"o3,s", b"", b"o4,s,x,,,")
    assert one.tick().published

    rows = [row for row in one.site.rows("stg") if row["id"]]
    assert [(row["id"], row["price"], row["day"], row["sent_key"]) for row in rows] == [
        ("o1", Decimal("1.05"), DAY, "k0"), ("o2", Decimal("2.05"), None, "k1")
    ]  # fmt: skip
    assert numbers(one) == {
        "read": 5, "landed": 2, "quarantined": 2, "dropped": 1, "gaps": 0, "lost": 0, "unexplained": 0
    }  # fmt: skip


def test_a_source_with_schemas_needs_a_registry(tmp_path: Path, broker: Broker) -> None:
    one = made(tmp_path, broker, ENGINE, declared="value_format: avro")

    assert "SR752" in one.problem()


def replayed_when_registered(tmp_path: Path, broker: Broker, engine: Engine) -> None:
    """The registry of a region is behind: messages with ids that it lacks wait in quarantine, with all their values."""
    with fake_registry.running() as fake:
        fake.schema(1, json.dumps(FIRST))
        one = made(
            tmp_path, broker, engine, declared="value_format: avro", columns=COLUMNS, select=SELECT, registry=fake.url
        )
        messages = [framed(n, avro(FIRST, order(n))) for n in (1, 2, 3)]
        send(one, *messages, framed(2, avro(FIRST, order(4))[:-1]), b"plain", framed(2, avro(FIRST, order(5, "it's"))))
        assert one.tick().published
        assert [row["id"] for row in one.site.rows("stg") if row["id"]] == ["o1"]
        fake.schema(2, json.dumps(FIRST))
        assert one.command("quarantine", "replay", "stg", "--all").exit_code == 0
        registered = fake.answers.pop("/schemas/ids/2")
        fake.answers["/schemas/ids/2"] = 401, {}
        assert "SR751" in one.problem()
        fake.answers["/schemas/ids/2"] = registered
        assert one.tick().published

    rows = {row["id"]: row for row in one.site.rows("stg") if row["id"]}
    assert sorted(rows) == ["o1", "o2", "o5"] and rows["o5"]["shop"] == "it's"
    assert (rows["o2"]["price"], rows["o2"]["day"], rows["o2"]["sent_key"]) == (Decimal("2.05"), DAY, "k1")
    assert [row["reason"] for row in quarantined(one)] == [
        "unknown schema id 3",
        "the Avro data is truncated, or of another schema (IndexError) (schema id 2)",
        confluent.NO_ID,
    ]
    assert {row["shop"]: row["orders"] for row in one.site.rows("shops")} == {"s": 2, "it's": 1}
    assert numbers(one)["unexplained"] == 0


def test_an_unknown_schema_waits_in_quarantine(tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_client, "PAUSES", (0.0,))
    replayed_when_registered(tmp_path, broker, ENGINE)
