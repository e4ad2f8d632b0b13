"""Changes that Maxwell sent from a MariaDB: they give the rows that the database had in the end."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sqlrun.decoding.change_events import ChangeEvents, OtherTable
from sqlrun.decoding.undecodable import Undecodable
from sqlrun.engine_api import Engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import Place, ProjectError
from sqlrun.project import Changes, Column
from sqlrun.system_tables import intake
from tests.support import change_site, shops
from tests.support.change_site import SPANS, Types
from tests.support.projects import Site, prepared
from tests.support.servers import topics
from tests.support.servers.kafka import Broker
from tests.support.servers.topics import Message

RECORDED = Path(__file__).parents[1] / "fixtures" / "maxwell" / "mysql.jsonl"
AT = datetime(2026, 11, 26, 20, tzinfo=timezone.utc)
TABLES = {
    "customers": {
        "id": "int", "name": "string", "balance": "decimal(12,4)", "born": "date", "seen": "timestamp",
        "at": "timestamp", "active": "boolean", "attrs": "struct<a:int>", "kind": "string", "photo": "string",
        "phone": "string",
    },
    "orders": {"id": "bigint", "customer_id": "int", "total": "decimal(18,2)"},
}  # fmt: skip
DESCRIBED = {"op": "string", "position": "string", "committed_at": "timestamp", "old_id": "bigint"}


def site(folder: Path, engine: Engine, kind: str = "path: data/orders") -> Site:
    """Write a project over the events of all tables: the changes of each, its current rows and its history."""
    sources, models = "", dict[str, tuple[str, str, Types]]()
    comes = {name: f", from: {'old:id' if name == 'old_id' else name}" for name in DESCRIBED}
    for table, types in TABLES.items():
        cdc = f"format: maxwell, key: [id], table: shop.{table}"
        sources += change_site.source(table, kind, cdc, {**types, **DESCRIBED}, comes)
        names = [name for name in types if name != "id"]
        models |= {
            f"{table}_changes": (
                f"select {', '.join((*types, *DESCRIBED))} from {{{{ source('shop', '{table}') }}}}",
                "id, position", {**types, **DESCRIBED},
            ),
            table: (
                f"{{{{ current_rows(ref('{table}_changes'), key='id', columns={names}, old_key='old_id') }}}}",
                "id", {**types, "position": "string"},
            ),
            f"{table}_history": (
                f"{{{{ history_rows(ref('{table}_changes'), key='id', columns=['{names[0]}'], old_key='old_id') }}}}",
                "id, position", {"id": types["id"], names[0]: types[names[0]], "position": "string", **SPANS},
            ),
        }  # fmt: skip
    return change_site.written(folder, engine, sources, models)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_tables_are_those_of_the_database(tmp_path: Path, seed: int) -> None:
    """Rows got other keys, two at once; one statement changed a row twice; a bootstrap came between changes."""
    holds(site(tmp_path, DuckDBEngine()), seed)


def holds(made: Site, seed: int) -> None:
    """Land the events in disorder, some twice, and compare the tables with those of the database."""
    lines, random = RECORDED.read_text().splitlines(), Random(seed)
    order = random.sample(lines, len(lines)) if seed else lines
    for number, part in enumerate((order[20:], order[:12], order[8:])):
        made.write(f"{number}.jsonl", part)
        result = made.tick(AT)
        assert result.published, [node.message for node in result.nodes]

    assert shops.waiting(made) == {}
    is_database(made)


def is_database(made: Site) -> None:
    """Compare current rows and histories with the database's rows at the end."""
    customers = [{name: row[name] for name in TABLES["customers"]} for row in made.rows("customers")]
    nothing = dict.fromkeys(TABLES["customers"])
    assert sorted(customers, key=lambda row: row["id"]) == [
        {
            "id": 1, "name": "Ana2!!", "balance": Decimal("2.5000"), "born": date(1999, 2, 28),
            # Maxwell loses the fractions of MariaDB's times.
            "seen": datetime(2026, 5, 4, 12, tzinfo=timezone.utc), "at": datetime(2026, 5, 4, 12, tzinfo=timezone.utc),
            "active": True, "attrs": {"a": 2}, "kind": "guest", "photo": "AQI=", "phone": "+47",
        },
        {**nothing, "id": 13, "name": "Cy2", "balance": Decimal("0.0000")},
        {
            **nothing, "id": 31, "name": "ü🍕", "born": date(1, 1, 1),
            "seen": datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc),
        },
        {**nothing, "id": 32, "name": "Ed"},
    ]  # fmt: skip
    orders = [(row["id"], row["customer_id"], row["total"]) for row in made.rows("orders")]
    assert sorted(orders) == [(1, 2, Decimal("1234567890123456.78")), (7, 1, Decimal("11.00"))]
    versions = [(row["id"], row["is_current"]) for row in made.rows("customers_history")]
    assert sorted(id for id, is_current in versions if is_current) == [1, 13, 31, 32]
    assert {3, 12, 30}.isdisjoint(id for id, is_current in versions if is_current)
    ends = [row["valid_to"] for row in made.rows("orders_history") if row["id"] == 2]
    assert len(ends) == 1 and ends[0] is not None


def event(**more: Any) -> dict[str, Any]:
    found = {"database": "shop", "table": "orders", "type": "insert", "ts": 1, "xid": 3, "position": "binlog.000001:4"}
    return {**found, "data": {"id": 1, "customer_id": 2, "total": 3.5}, **more}


def events(key: tuple[str, ...] = ("id",), **described: str) -> ChangeEvents:
    types = {"id": "bigint", "customer_id": "int", "total": "decimal(18,2)", "note": "string", "tags": "array<string>"}
    own = [Column(name, kind, "", Place("a")) for name, kind in types.items()]
    described = {"op": "op", "position": "position", **described}
    own += [Column(name, "string", "", Place("a"), comes_from=comes) for name, comes in described.items()]
    return ChangeEvents(Changes("maxwell", key, "shop.orders"), tuple(own))


def line(one: ChangeEvents, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(one.line(json.dumps(event(**more))) or "")
    return found


def test_positions_sort_by_file_place_and_order_in_the_transaction() -> None:
    """A bootstrap's row is the oldest; the last row of a transaction has `commit`, and no number."""
    ordered: list[dict[str, Any]] = [
        {"type": "bootstrap-insert", "position": None, "ts": 9},
        {"type": "bootstrap-insert", "position": None, "ts": 10},
        {"xoffset": 0},
        {"xoffset": 9, "type": "delete"},
        {"xoffset": 9},
        {"xoffset": 10},
        {"commit": True},
        {"position": "binlog.000001:10"},
        {"position": "a.b.000010:3"},
    ]
    positions = [line(events(), **more)["position"] for more in ordered]
    assert positions == sorted(set(positions))
    assert [line(events(), **more)["op"] for more in ordered[:4]] == ["r", "r", "c", "d"]


def test_what_an_event_says_of_its_change() -> None:
    one = events(xid="transaction", at="committed_at", part="snapshot", table="table")
    found = line(one)
    assert (found["xid"], found["at"], found["part"]) == ("3", "1970-01-01T00:00:01.000000Z", None)
    assert (found["table"], line(one, type="bootstrap-insert")["part"]) == ("orders", "true")


def test_values_are_written_for_their_columns() -> None:
    data = {"id": 1, "total": 1, "note": {"a": [1.50, None]}, "tags": ["a", "b"]}
    text = json.dumps(event(data=data)).replace("1.5,", "1.50,").replace('"total": 1', '"total": 0.10')
    assert '"total":0.10,"note":"{\\"a\\":[1.50,null]}","tags":["a","b"]' in (events().line(text) or "")


def test_a_change_has_the_key_that_it_replaced() -> None:
    one = events(("id", "customer_id"), was="old:id", of="old:customer_id")
    found = line(one, type="update", old={"id": 7, "total": 1})
    assert (found["id"], found["was"], found["of"]) == (1, 7, 2)
    assert line(one, type="update", old={"total": 1}).keys().isdisjoint({"was", "of"})
    with pytest.raises(Undecodable, match="another key"):
        line(events(), type="update", old={"id": 7})


BROKEN = (
    ({"type": "upsert"}, "the unknown type `upsert`"),
    ({"type": None}, "no change event"),
    ({"data": None}, "`insert` has no `data`"),
    ({"data": {}}, "has no key `id`"),
    ({"position": None}, "no position: Maxwell sends it with `output_binlog_position=true`"),
    ({"position": "binlog"}, "has no position"),
    ({"position": "binlog:4"}, "has no position"),
    ({"xoffset": "x"}, "has no position"),
)


@pytest.mark.parametrize(("more", "reason"), BROKEN)
def test_what_is_no_change_of_a_row_is_named(more: dict[str, Any], reason: str) -> None:
    with pytest.raises(Undecodable) as raised:
        line(events(), **more)
    assert reason in raised.value.reason and not isinstance(raised.value, OtherTable)


@pytest.mark.parametrize("kind", ["bootstrap-start", "bootstrap-complete", "table-alter", "database-create"])
def test_an_event_of_no_row_is_left_out(kind: str) -> None:
    with pytest.raises(OtherTable):
        line(events(), type=kind, data={})
    with pytest.raises(OtherTable):
        line(events(), table="customers", position=None)


@pytest.mark.parametrize(
    ("cdc", "message"),
    [
        ("{format: maxwell, key: [id]}", "SR104.*needs `table`"),
        ("{format: maxwell, key: [id], table: shop.orders, times: {}}", "SR102.*`times` is not a key"),
        ("{format: maxwell, key: [id], table: shop.orders, transactions: t}", "SR102.*`transactions` is not a key"),
        ("{format: debezium, key: [id], table: shop.orders}", "SR110.*invalid `from`: `old:id`"),
        ("{format: maxwell, key: [total], table: shop.orders}", "SR110.*invalid `from`: `old:id`"),
    ],
)
def test_a_broken_declaration_is_refused(tmp_path: Path, cdc: str, message: str) -> None:
    site(tmp_path, DuckDBEngine())
    declared = tmp_path / "models/_sources.yml"
    declared.write_text(declared.read_text().replace("{format: maxwell, key: [id], table: shop.orders}", cdc))
    with pytest.raises(ProjectError, match=message):
        prepared(tmp_path)


def test_one_topic_has_the_events_of_all_tables(tmp_path: Path, broker: Broker) -> None:
    through_a_topic(tmp_path, broker, DuckDBEngine())


def through_a_topic(folder: Path, broker: Broker, engine: Engine) -> None:
    """Land the recorded events from one topic; each source counts the others' as dropped."""
    topic = topics.create(broker, topics.unique())
    made = change_site.connected(site(folder, engine, f"format: kafka\n        topic: {topic}"), broker)
    lines = RECORDED.read_text().splitlines()
    odd = json.dumps(event(type="upsert"))
    topics.produce(broker, topic, [Message(text.encode(), None) for text in (*lines, odd, " ")])
    result = made.tick(AT)
    assert result.published, [node.message for node in result.nodes]

    is_database(made)
    assert shops.waiting(made) == {"the change event has the unknown type `upsert`": 1}
    batches = {row["model"]: row for row in intake.read(made.warehouse, "")}
    for table in TABLES:
        batch = batches[f"{table}_changes"]
        landed = sum(f'"table":"{table}"' in text and '"data":{"' in text for text in lines)
        dropped = len(lines) + 1 - landed + (table != "orders")
        assert (batch["read"], batch["landed"], batch["dropped"]) == (len(lines) + 2, landed, dropped)
        assert (batch["quarantined"], batch["unexplained"]) == (int(table == "orders"), 0)
