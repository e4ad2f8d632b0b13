"""Changes of MongoDB, in the shape that Debezium's documentation has: documents, their deletions and positions."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sqlrun.decoding.change_events import ChangeEvents
from sqlrun.decoding.undecodable import Undecodable
from sqlrun.engine_api import Engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import Place
from sqlrun.project import Changes, Column
from tests.support import change_site, shops
from tests.support.change_site import SPANS, Types
from tests.support.projects import Site
from tests.support.servers import topics
from tests.support.servers.kafka import Broker
from tests.support.servers.topics import Message

EVENTS = Path(__file__).parents[1] / "fixtures" / "debezium" / "mongodb.jsonl"
AT = datetime(2026, 11, 26, 20, tzinfo=timezone.utc)
FIELDS = {
    "_id": "string", "first_name": "string", "visits": "bigint", "score": "double", "credit": "decimal(9,2)",
    "born": "timestamp", "photo": "string", "address": "struct<city:string,zip:string>", "tags": "array<string>",
}  # fmt: skip
DESCRIBED = {"op": "string", "position": "string", "committed_at": "timestamp"}
IDS = [f"65a1f0c2e4b0a1b2c3d4e50{number}" for number in range(10)]


def site(folder: Path, engine: Engine, kind: str = "path: data/orders") -> Site:
    """Write a project of the collection's changes, its current documents and their history."""
    types = {**FIELDS, **DESCRIBED, **({"message_key": "string"} if "kafka" in kind else {})}
    more = {name: ", nulls_inside: true" for name, of_type in FIELDS.items() if "<" in of_type}
    more |= {name: f", from: {name}" for name in DESCRIBED} | {"message_key": ", from: key"}
    source = change_site.source("log", kind, "format: debezium, key: [_id], table: inventory.customers", types, more)
    names = [name for name in FIELDS if name != "_id"]
    models: dict[str, tuple[str, str, Types]] = {
        "changes": (
            f"select {', '.join((*FIELDS, *DESCRIBED))} from {{{{ source('shop', 'log') }}}}", "_id, position",
            {**FIELDS, **DESCRIBED},
        ),
        "customers": (
            f"{{{{ current_rows(ref('changes'), key='_id', columns={names}) }}}}", "_id",
            {**FIELDS, "position": "string"},
        ),
        "history": (
            "{{ history_rows(ref('changes'), key='_id', columns=['first_name']) }}", "_id, position",
            {"_id": "string", "first_name": "string", "position": "string", **SPANS},
        ),
    }  # fmt: skip
    return change_site.written(folder, engine, source, models)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_documents_are_those_of_the_collection(tmp_path: Path, seed: int) -> None:
    holds(site(tmp_path, DuckDBEngine()), seed)


def holds(made: Site, seed: int) -> None:
    """Land lines of the embedded engine, some twice; with a seed in disorder."""
    lines = EVENTS.read_text().splitlines()
    order = Random(seed).sample(lines, len(lines)) if seed else lines
    for number, part in enumerate((order[:7], order[4:])):
        made.write(f"{number}.jsonl", part)
        result = made.tick(AT)
        assert result.published, [node.message for node in result.nodes]
    assert shops.waiting(made) == {}
    is_collection(made)


def is_collection(made: Site) -> None:
    """Compare current documents and history with the collection at the end."""
    nothing = dict.fromkeys(FIELDS)
    rows = [{name: row[name] for name in FIELDS} for row in made.rows("customers")]
    assert sorted(rows, key=lambda row: row["_id"]) == [
        {
            "_id": IDS[1], "first_name": "Anne Marie", "visits": 5, "score": 1.5, "credit": Decimal("10.10"),
            "born": datetime(1970, 1, 2, 0, 0, 0, 500_000, timezone.utc), "photo": "AP8=",
            "address": {"city": "Oslo", "zip": None}, "tags": ["a", "b"],
        },
        {**nothing, "_id": IDS[2], "first_name": "Bo again"},
        {**nothing, "_id": IDS[3], "first_name": "Cy2", "tags": [None, "x"]},
    ]  # fmt: skip
    versions = sorted((row["_id"], row["first_name"], row["is_current"]) for row in made.rows("history"))
    # MongoDB's times are to the second: "Cy" became "Cy2" and "Di" came and went within one.
    assert versions == [
        (IDS[1], "Anne", False), (IDS[1], "Anne Marie", True), (IDS[2], "Bo", False), (IDS[2], "Bo again", True),
        (IDS[3], "Cy2", True),
    ]  # fmt: skip


def events(**types: str) -> ChangeEvents:
    own = [Column(name, kind, "", Place("a")) for name, kind in ({"_id": "string"} | types).items()]
    own += [Column(name, "string", "", Place("a"), comes_from=name) for name in ("op", "position", "key")]
    return ChangeEvents(Changes("debezium", ("_id",), "inventory.customers"), tuple(own))


def event(op: str, ord: int = 1, **more: Any) -> str:
    source = {"connector": "mongodb", "ts_ms": 1558965508000, "db": "inventory", "collection": "customers", "ord": ord}
    return json.dumps({"op": op, "before": None, "after": None, "source": source, **more})


def test_values_are_without_the_marks_of_their_types() -> None:
    first = json.loads(EVENTS.read_text().splitlines()[0])["value"]
    found = events(visits="bigint", credit="decimal(9,2)", born="timestamp", address="string").line(json.dumps(first))
    assert '"visits":9007199254740993,' in (found or "") and '"credit":10.10,' in (found or "")
    read = json.loads(found or "")
    assert (read["_id"], read["born"], read["photo"]) == (IDS[1], "1969-12-31T00:00:00.000000Z", "AP8=")
    assert json.loads(read["address"]) == {"city": "Oslo", "zip": None}


def test_positions_sort_by_time_and_number() -> None:
    after = '{"_id": "a"}'
    ordered = [event("r", 2, after=after), event("u", 2, after=after), event("u", 10, after=after)]
    positions = [json.loads(events().line(text) or "")["position"] for text in ordered]
    assert positions == sorted(set(positions))


@pytest.mark.parametrize("key", ['{"id":"{\\"$oid\\":\\"5f\\"}"}', '{"schema":{},"payload":{"id":"\\"5f\\""}}'])
def test_a_deletion_has_the_id_of_its_message(key: str) -> None:
    found = json.loads(events(name="string").line(event("d"), f'"key":{json.dumps(key)}') or "")
    assert (found["_id"], found["op"], found["name"]) == ("5f", "d", None)


@pytest.mark.parametrize(
    ("text", "members", "reason"),
    [
        (event("d"), "", "the deletion has neither `before` nor a key. Declare a column with `from: key`"),
        (event("d"), '"key":null', "the deletion has neither `before` nor a key"),
        (event("d"), '"key":"{}"', "the deletion has neither `before` nor a key"),
        (event("d"), '"key":"x"', "isn't JSON"),
        (event("u", updateDescription={}), "", "Set `capture.mode=change_streams_update_full`"),
        (event("c"), "", "has no `after`"),
        (event("c", after="[]"), "", "document isn't an object"),
        (event("c", after="{"), "", "isn't JSON"),
        (event("c", after='{"a":1}'), "", "has no key `_id`"),
    ],
)
def test_what_is_no_change_of_a_document_is_named(text: str, members: str, reason: str) -> None:
    with pytest.raises(Undecodable) as raised:
        events().line(text, members)
    assert reason in raised.value.reason


def test_a_topic_says_by_its_keys_what_is_deleted(tmp_path: Path, broker: Broker) -> None:
    through_a_topic(tmp_path, broker, DuckDBEngine())


def through_a_topic(folder: Path, broker: Broker, engine: Engine) -> None:
    """Land the events of the collection from its topic."""
    topic = topics.create(broker, topics.unique())
    made = change_site.connected(site(folder, engine, f"format: kafka\n        topic: {topic}"), broker)
    found = [json.loads(text) for text in EVENTS.read_text().splitlines()[:-1]]
    messages = [
        Message(None if one["value"] is None else json.dumps(one["value"]).encode(), json.dumps(one["key"]).encode())
        for one in found
    ]
    topics.produce(broker, topic, messages)
    result = made.tick(AT)
    assert result.published, [node.message for node in result.nodes]
    assert shops.waiting(made) == {}
    is_collection(made)
