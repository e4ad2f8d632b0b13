"""The changes that a database sent, as its current rows and as their history: equal to the database itself."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.decoding import change_events
from sqlrun.engine_api import Engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import ProjectError
from sqlrun.system_tables import intake
from tests.sources.test_kafka import numbers
from tests.support import change_site, kafka_site
from tests.support.databases import PLACEHOLDER, START, Database, delivered, lines, micros
from tests.support.projects import Site, prepared
from tests.support.servers import topics
from tests.support.servers.kafka import Broker
from tests.support.servers.topics import Message

ENGINE = DuckDBEngine()
AT = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)
DESCRIBED = {
    "op": "string", "position": "string", "committed_at": "timestamp", "unavailable": "array<string>"
}  # fmt: skip
MODELS = {
    "changes": ({"id": "bigint", "name": "string", "body": "string", **DESCRIBED}, "id, position"),
    "docs": (
        {"id": "bigint", "name": "string", "body": "string", "is_resolved": "boolean", "position": "string"}, "id",
    ),
    "docs_history": (
        {
            "id": "bigint", "name": "string", "position": "string", "valid_from": "timestamp",
            "valid_to": "timestamp", "is_current": "boolean",
        },
        "id, position",
    ),
}  # fmt: skip
QUERIES = {
    "changes": "select id, name, body, op, position, committed_at, unavailable from {{ source('shop', 'docs') }}",
    "docs": "{{ current_rows(ref('changes'), key=['id'], columns=['name'], unavailable=['body']) }}",
    "docs_history": "{{ history_rows(ref('changes'), key=['id'], columns=['name']) }}",
}


def of_topic(folder: Path, engine: Engine, broker: Broker) -> tuple[Site, str]:
    """Write the project over a new topic; return the topic, too."""
    topic = topics.create(broker, topics.unique())
    return change_site.connected(project(folder, engine, f"format: kafka\n        topic: {topic}"), broker), topic


def project(folder: Path, engine: Engine, kind: str = "path: data/orders") -> Site:
    """Write a project of three models over the changes of one table."""
    more = {name: f", from: {name}" for name in DESCRIBED}
    cdc = "format: debezium, key: [id], table: public.docs"
    source = change_site.source("docs", kind, cdc, MODELS["changes"][0], more)
    models = {name: (QUERIES[name], grain, types) for name, (types, grain) in MODELS.items()}
    return change_site.written(folder, engine, source, models)


def current(site: Site) -> dict[int, dict[str, Any]]:
    """Return the current rows; a body that isn't known is True."""
    rows = site.rows("docs")
    assert not [row for row in rows if row["body"] is not None and not row["is_resolved"]]
    return {row["id"]: {"name": row["name"], "body": row["body"] if row["is_resolved"] else True} for row in rows}


def expected(database: Database) -> dict[int, dict[str, Any]]:
    """Return the database's rows; a body that no change of its key has had is True."""
    return {key: {**row, "body": True} if key in database.moved else row for key, row in database.rows.items()}


def history(site: Site) -> list[tuple[Any, ...]]:
    return sorted(
        (row["id"], row["name"] or "", micros(row["valid_from"]), micros(row["valid_to"]) or 0)
        for row in site.rows("docs_history")
    )


def expected_history(database: Database) -> list[tuple[Any, ...]]:
    """Return the versions that were valid: what a transaction replaces itself never was."""
    lasting = [v for v in database.versions if v.since != v.until]
    return sorted((v.key, v.row["name"] or "", v.since, v.until or 0) for v in lasting)


def quarantined(site: Site) -> list[str]:
    found = CliRunner().invoke(main, ["--project-dir", str(site.root), "quarantine", "show", "changes", "--json"])
    return sorted(row["reason"] for row in json.loads(found.output))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_log_that_is_delivered_twice_and_in_disorder_is_the_database(tmp_path: Path, seed: int) -> None:
    holds(project(tmp_path, ENGINE), seed)


def holds(site: Site, seed: int, transactions: int = 60) -> None:
    """Land a random database's log, tick by tick, and compare both tables with the database itself."""
    database, random = Database(seed), Random(seed)
    database.run(transactions)
    for number, batch in enumerate(delivered(database.log, random)):
        site.write(f"{number:03}.json", lines(batch))
        result = site.tick(AT + timedelta(minutes=5 * number))
        assert result.published, [node.message for node in result.nodes]

    assert current(site) == expected(database)
    assert history(site) == expected_history(database)


def test_hidden_tables_store_the_columns_that_the_query_reads(tmp_path: Path) -> None:
    """A large value that no model asks for isn't copied."""
    project(tmp_path, ENGINE)
    (model,) = (model for model in prepared(tmp_path).workspace.models if model.name == "docs_history")

    stored = {stage.name: {c.name for c in stage.columns} for stage in model.stages}
    assert stored["docs_history__state_1"] == {"id", "name", "op", "position", "committed_at"}
    assert not any("body" in columns for columns in stored.values())


@pytest.mark.slow
def test_each_tick_has_the_rows_of_that_moment(tmp_path: Path) -> None:
    """A log that comes in its order is the database as it was at the end of each batch."""
    site, database = project(tmp_path, ENGINE), Database(7)
    for number in range(6):
        sent = len(database.log)
        database.run(8)
        site.write(f"{number:03}.json", lines(database.log[sent:]))
        assert site.tick(AT + timedelta(minutes=5 * number)).published
        assert current(site) == expected(database)
        assert history(site) == expected_history(database)


def test_a_snapshot_never_hides_a_newer_change(tmp_path: Path) -> None:
    site, database = project(tmp_path, ENGINE), Database(3)
    database.run(20)
    database.log.clear()
    database.snapshot()
    database.run(20)
    newer = [event for event in database.log if event["op"] != "r"]
    for number, batch in enumerate((newer, [event for event in database.log if event["op"] == "r"])):
        site.write(f"{number}.json", lines(batch))
        assert site.tick(AT + timedelta(minutes=5 * number)).published

    assert current(site) == expected(database)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_snapshot_after_a_gap_is_the_database_again(tmp_path: Path, seed: int) -> None:
    """The slot was lost, and with it some changes: rows that the new snapshot lacks are gone, their versions end."""
    site, database, random = project(tmp_path, ENGINE), Database(seed), Random(seed)
    with_snapshots(tmp_path)
    site = Site(tmp_path, ENGINE)
    for number in range(4):
        sent = len(database.log)
        database.run(12)
        del database.log[random.randint(sent, len(database.log)) :]
        database.moved = set(database.rows)  # nobody knows which bodies were sent
        database.snapshot()
        batch = database.log[sent:]
        cut = random.randint(0, len(batch))
        for half, part in enumerate((batch[:cut], batch[cut:])):
            site.write(f"{number}-{half}.json", lines(part))
            assert site.tick(AT + timedelta(minutes=10 * number + 5 * half)).published
        rows = {row["id"]: row["name"] for row in site.rows("docs")}
        assert rows == {key: row["name"] for key, row in database.rows.items()}
        versions = [row["id"] for row in site.rows("docs_history") if row["is_current"]]
        assert sorted(versions) == sorted(rows)
        assert all(row["valid_to"] is None or row["valid_from"] < row["valid_to"] for row in site.rows("docs_history"))


@pytest.mark.slow
def test_a_gap_before_a_new_snapshot_is_named_once(tmp_path: Path) -> None:
    """The first snapshot is none, nor are its rows that land later, nor one that was asked for."""
    site, database = project(tmp_path, ENGINE), Database(3)
    with_snapshots(tmp_path)
    site = Site(tmp_path, ENGINE)
    database.run(12)
    database.log.clear()
    said = []
    for number in range(2):
        database.snapshot()
        database.run(12)
        batch, database.log = database.log, []
        if number:
            at = batch[0]["source"]["lsn"]
        for half in (batch[:3], batch[3:]):
            site.write(f"{number}-{len(said)}.json", lines(half))
            result = site.tick(AT + timedelta(minutes=5 * len(said)))
            assert result.published
            said.append(next(node.stages[-1].note for node in result.nodes if node.name == "changes"))
        database.run(5)  # these never come
        database.log.clear()
    asked_for = [{**event, "source": {**event["source"], "snapshot": "incremental"}} for event in batch[:3]]
    for event in asked_for:
        event["source"]["lsn"] += 10_000
    site.write("asked.json", lines(asked_for))
    result = site.tick(AT + timedelta(hours=1))
    said.append(next(node.stages[-1].note for node in result.nodes if node.name == "changes"))

    assert ["SR603" in note for note in said] == [False, False, True, False, False]
    assert f"a new snapshot of the table at position {at:020}" in said[2]


@pytest.mark.slow
def test_a_snapshot_with_values_that_no_change_has_is_named(tmp_path: Path) -> None:
    """Rows that were read again are older than the changes of their keys, so nothing else shows such a value."""

    def event(op: str, key: int, lsn: int, name: str, body: str = "b") -> dict[str, Any]:
        source = {"db": "shop", "schema": "public", "table": "docs", "txId": 1, "lsn": lsn, "ts_us": START + lsn}
        row = {"id": key, "name": name, "body": body}
        return {"op": op, "after": row, "source": source | {"snapshot": "incremental" if op == "r" else "false"}}

    project(tmp_path, ENGINE)
    with_snapshots(tmp_path)
    site = Site(tmp_path, ENGINE)
    sent = [
        [event("c", 1, 10, "a"), event("u", 1, 20, "b", PLACEHOLDER), event("c", 2, 30, "a")],
        [event("r", 1, 40, "b"), event("r", 3, 40, "z")],
        [event("r", 1, 50, "b", "not sent again"), event("r", 2, 50, "a")],
        [event("r", 2, 70, "c"), event("u", 2, 65, "c", PLACEHOLDER)],  # its transaction was open
        [event("r", 1, 80, "lost"), event("r", 2, 80, "lost", "too"), event("r", 3, 80, "has no change")],
    ]
    said = []
    for number, batch in enumerate(sent):
        site.write(f"{number}.json", lines(batch))
        result = site.tick(AT + timedelta(minutes=5 * number))
        assert result.published
        (last,) = (node.stages[-1].note for node in result.nodes if node.name == "changes")
        said.append(last if "SR603" in last else "")

    assert said[:4] == ["", "", "", ""]
    assert "a snapshot read 2 rows with values that no landed change of the key has: the first is id 1 at" in said[4]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"op": "x"}, "the change event has the unknown operation"),
        ({"after": {"id": None, "name": "a", "body": "b"}}, "id"),
        ({"source": {"table": "docs", "schema": "public"}}, "the change event has no position"),
        ({"op": None}, "the change event has the unknown operation null"),
    ],
)
@pytest.mark.slow
def test_an_event_that_cannot_be_placed_is_quarantined(tmp_path: Path, change: Any, reason: str) -> None:
    """It never becomes a current row."""
    site, database = project(tmp_path, ENGINE), Database(1)
    database.run(3)
    good = database.log[0]
    bad = {**good, **change}
    site.write("a.json", lines([*database.log, bad]))
    assert site.tick(AT).published

    assert current(site) == expected(database)
    assert len(quarantined(site)) == 1 and reason in quarantined(site)[0], quarantined(site)


# Values of a `decimal(5,2)`, as the unscaled number and its scale; None: it has more digits on one side of the point.
DECIMALS = {
    (99999, 2): "999.99", (-99999, 2): "-999.99", (100000, 2): None, (-100000, 2): None, (1005, 3): None,
    (99999, 3): None, (1500, 3): None, (7, 0): "7.00", (1000, 0): None, (1, -2): "100.00", (1, -3): None,
    (10**40, 2): None, (-(10**40), 42): None,
}  # fmt: skip


def prices(unscaled: int, scale: int, decimals: str) -> Iterator[tuple[Any, Any]]:
    """Yield the forms of a decimal in an event, each with the event's schema, if it has one."""
    size = unscaled.bit_length() // 8 + 1
    data = base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()
    field = {"field": "price", "name": change_events.DECIMAL, "parameters": {"scale": str(scale)}}
    yield data, {"fields": [{"field": "after", "fields": [field]}]}
    yield {"scale": scale, "value": data}, None
    if decimals == "text":
        yield f"{Decimal(unscaled).scaleb(-scale):f}", None
    elif scale == 2:  # that of the column
        yield data, None


def decimals_are_exact(folder: Path, engine: Engine, decimals: str) -> None:
    """Land decimals: one beyond the declared precision is quarantined, and no other one."""
    types = {"id": "bigint", "price": "decimal(5,2)", "op": "string", "position": "string"}
    about = {"op": ", from: op", "position": ", from: position"}
    cdc = f"format: debezium, key: [id], table: public.docs, decimals: {decimals}"
    query = "select id, price, op, position from {{ source('shop', 'docs') }}"
    source = change_site.source("docs", "path: data/orders", cdc, types, about)
    site = change_site.written(folder, engine, source, {"changes": (query, "id, position", types)})
    sent, found = list[dict[str, Any]](), dict[int, str | None]()
    for (unscaled, scale), value in DECIMALS.items():
        for price, schema in prices(unscaled, scale, decimals):
            key = len(sent) + 1
            place = {"db": "shop", "schema": "public", "table": "docs", "lsn": key}
            event = {"op": "c", "before": None, "after": {"id": key, "price": price}, "source": place}
            sent.append(event if schema is None else {"schema": schema, "payload": event})
            found[key] = value
    site.write("a.json", lines(sent))
    assert site.tick(AT).published

    rows = {row["id"]: str(row["price"]) for row in site.rows("changes")}
    assert rows == {key: value for key, value in found.items() if value is not None}
    assert set(quarantined(site)) == {"price: not of type decimal(5, 2)"}
    (batch,) = intake.read(site.warehouse, "")
    assert (batch["quarantined"], batch["unexplained"]) == (len(found) - len(rows), 0)


@pytest.mark.slow
@pytest.mark.parametrize("decimals", ["bytes", "text"])
def test_a_decimal_beyond_the_declared_precision_is_quarantined(tmp_path: Path, decimals: str) -> None:
    decimals_are_exact(tmp_path, ENGINE, decimals)


@pytest.mark.slow
def test_clocks_that_disagree_change_no_order(tmp_path: Path) -> None:
    """The database's clock went back: the position decides, and no version ends before it began."""
    site, database = project(tmp_path, ENGINE), Database(4)
    database.run(30)
    for number, event in enumerate(database.log):
        back = 3_600_000_000 * (number % 3)
        event["source"]["ts_us"] -= back
        event["source"]["ts_ms"] = event["source"]["ts_us"] // 1000
    site.write("a.json", lines(database.log))
    assert site.tick(AT).published

    assert current(site) == expected(database)
    history_rows = site.rows("docs_history")
    assert sorted(row["id"] for row in history_rows if row["is_current"]) == sorted(database.rows)
    assert all(row["valid_to"] is None or row["valid_from"] < row["valid_to"] for row in history_rows)


def with_snapshots(folder: Path) -> None:
    """Let the project's models look at snapshots."""
    column = "- {name: snapshot, data_type: string, description: It."
    added = {
        "models/_sources.yml": ("", "", f"          {column}, from: snapshot}}\n"),
        "models/changes.yml": ("", "", f"      {column}}}\n"),
        "models/changes.sql": ("unavailable from", "unavailable, snapshot from", ""),
        "models/docs.sql": (") }}", ", snapshots=true) }}", ""),
        "models/docs_history.sql": (") }}", ", snapshots=true) }}", ""),
    }
    for path, (before, after, more) in added.items():
        text = (folder / path).read_text()
        (folder / path).write_text((text.replace(before, after) if after else text) + more)


def test_a_value_that_no_change_had_is_reported(tmp_path: Path) -> None:
    """The log begins in the middle: the row says that its value isn't known, instead of NULL without a word."""
    site, database = project(tmp_path, ENGINE), Database(5)
    database.run(40)
    (last,) = [event for event in database.log if event["op"] == "u"][-1:]
    last["after"]["body"] = "__debezium_unavailable_value"
    site.write("a.json", lines([last]))
    assert site.tick(AT).published

    assert [(row["body"], row["is_resolved"]) for row in site.rows("docs")] == [(None, False)]


def test_what_is_no_change_is_quarantined(tmp_path: Path) -> None:
    site, database = project(tmp_path, ENGINE), Database(1)
    database.run(3)
    other = json.loads(json.dumps(database.log[0]))
    other["source"]["table"] = "other"
    site.write("a.json", [*lines(database.log), json.dumps(other), "{}", "", '{"topic":"t","key":null,"value":null}'])
    assert site.tick(AT).published

    assert current(site) == expected(database)
    reasons = quarantined(site)
    assert [reason.partition(":")[0] for reason in reasons] == ["the object is no change event"]
    (batch,) = intake.read(site.warehouse, "")
    assert (batch["read"], batch["quarantined"], batch["dropped"], batch["unexplained"]) == (
        len(database.log) + 4, 1, 3, 0
    )  # fmt: skip


def of_another_database(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return events as another database under the same name sends them, with other keys."""
    found: list[dict[str, Any]] = json.loads(json.dumps(events))
    for event in found:
        event["source"]["db"] = "crm"
        for row in (event["before"], event["after"]):
            if row is not None:
                row["id"] += 1000
    return found


def never_mix(site: Site) -> None:
    """Land events of two databases with one name: the first event says which database it is, in later ticks, too."""
    database = Database(1)
    database.run(6)
    other = of_another_database(database.log[:2])
    for number, batch in enumerate(([*database.log[:4], other[0]], [other[1], *database.log[4:]])):
        site.write(f"{number}.json", lines(batch))
        assert site.tick(AT + timedelta(minutes=5 * number)).published

    assert current(site) == expected(database)
    reason = (
        "the change event is of the table `crm.public.docs`, and the source's first one was of `shop.public.docs`: "
        "several tables have the name `public.docs`. Declare the longer name of one as `table` of `cdc`"
    )
    assert quarantined(site) == [reason] * 2


@pytest.mark.slow
def test_two_databases_of_one_name_never_mix(tmp_path: Path) -> None:
    never_mix(project(tmp_path, ENGINE))


def test_a_full_name_is_of_one_database(tmp_path: Path) -> None:
    """Whichever database comes first: a file's events of the other one are dropped as those of other tables are."""
    project(tmp_path, ENGINE)
    declared = tmp_path / "models/_sources.yml"
    declared.write_text(declared.read_text().replace("table: public.docs", "table: shop.public.docs"))
    site, database = Site(tmp_path, ENGINE), Database(1)
    database.run(6)
    site.write("a.json", lines([*of_another_database(database.log[:2]), *database.log]))
    assert site.tick(AT).published

    assert current(site) == expected(database)
    assert quarantined(site) == []
    (batch,) = intake.read(site.warehouse, "")
    assert (batch["dropped"], batch["unexplained"]) == (2, 0)


def test_a_topic_has_no_events_of_other_tables(tmp_path: Path, broker: Broker) -> None:
    """Two databases under one name would mix their rows: such an event is quarantined, with both names."""
    site, topic = of_topic(tmp_path, ENGINE, broker)
    database = Database(1)
    database.run(9)
    other = json.loads(json.dumps(database.log[0]))
    other["source"]["table"] = "other"
    topics.produce(broker, topic, values([*database.log, other, *of_another_database(database.log[:1])]))
    assert site.tick(AT).published
    assert current(site) == expected(database)

    of_a_database, of_a_table = quarantined(site)
    assert of_a_table == "the change event is of the table `shop.public.other`, not of `public.docs`"
    assert "of the table `crm.public.docs`, and the source's first one was of `shop.public.docs`" in of_a_database


def values(events: Iterable[dict[str, Any]]) -> list[Message]:
    """Return events as messages; a delete is followed by its tombstone, as Debezium does."""
    found = []
    for event in events:
        row = event["after"] or event["before"]
        key = None if row is None else json.dumps({"id": row["id"]}).encode()
        found.append(Message(json.dumps(event).encode(), key))
        if event["op"] == "d":
            found.append(Message(None, key))
    return found


def through_a_topic(folder: Path, broker: Broker, engine: Engine, transactions: int) -> Site:
    """Land a database's log from a topic, tick by tick."""
    site, topic = of_topic(folder, engine, broker)
    database, random = Database(11), Random(11)
    database.run(transactions)
    for number, batch in enumerate(delivered(database.log, random)):
        topics.produce(broker, topic, values(batch))
        result = site.tick(AT + timedelta(minutes=5 * number))
        assert result.published, [node.message for node in result.nodes]
    assert current(site) == expected(database)
    assert history(site) == expected_history(database)
    return site


@pytest.mark.long
def test_a_log_comes_through_a_topic(tmp_path: Path, broker: Broker) -> None:
    site = through_a_topic(tmp_path, broker, ENGINE, 60)

    found = numbers(kafka_site.Topic(broker, "", site))
    assert found["dropped"] > 0 and found["unexplained"] == 0 and found["quarantined"] == 0


def test_a_declaration_names_columns_in_any_case(tmp_path: Path) -> None:
    """They are the source's columns, which have the names of fields."""
    project(tmp_path, ENGINE)
    declared = tmp_path / "models/_sources.yml"
    cdc = "{format: debezium, key: [ID], table: public.docs}"
    declared.write_text(declared.read_text().replace("{format: debezium, key: [id], table: public.docs}", cdc))

    changes = prepared(tmp_path).project.sources[0].changes
    assert cdc in declared.read_text() and changes is not None and changes.key == ("id",)


@pytest.mark.parametrize(
    ("cdc", "message"),
    [
        ("{format: debezium, key: [nope]}", "SR110"),
        ("{format: golden, key: [id]}", "SR110"),
        ("{format: debezium}", "SR104"),
        ("{format: debezium, key: []}", "SR104"),
        ("{format: debezium, key: [id], times: {nope: seconds}}", "SR110"),
        ("{format: debezium, key: [id], times: seconds}", "SR103"),
        ("{format: debezium, key: [id], decimals: float}", "SR110"),
        ("{format: debezium, keys: [id]}", "SR102"),
    ],
)
def test_a_broken_declaration_is_refused(tmp_path: Path, cdc: str, message: str) -> None:
    project(tmp_path, ENGINE)
    declared = tmp_path / "models/_sources.yml"
    declared.write_text(declared.read_text().replace("{format: debezium, key: [id], table: public.docs}", cdc))

    with pytest.raises(ProjectError, match=message):
        prepared(tmp_path)


@pytest.mark.parametrize(
    ("kind", "cdc", "message"),
    [
        ("path: data/orders", "table: public.docs, transactions: shop.transaction", "SR102.*needs `format: kafka`"),
        ("format: kafka\n        topic: t", "transactions: shop.transaction", "SR104.*needs `table`"),
        (
            "format: kafka\n        topic: t\n        if_unreadable: skip",
            "table: public.docs, transactions: shop.transaction", "SR110.*a part of a transaction",
        ),
    ],
)  # fmt: skip
def test_transactions_need_a_topic_a_table_and_every_source(tmp_path: Path, kind: str, cdc: str, message: str) -> None:
    project(tmp_path, ENGINE)
    declared = tmp_path / "models/_sources.yml"
    text = declared.read_text().replace("path: data/orders", kind)
    declared.write_text(text.replace("key: [id], table: public.docs", f"key: [id], {cdc}"))

    with pytest.raises(ProjectError, match=message):
        prepared(tmp_path)
