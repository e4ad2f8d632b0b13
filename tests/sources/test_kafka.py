"""Kafka topics land exactly once, and every loss has a name: against a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import SourceError
from sqlrun.project import Connection
from sqlrun.source_api import Extent
from sqlrun.sources import kafka, kafka_client
from tests.support.kafka_site import Topic, line, made
from tests.support.servers import topics
from tests.support.servers.kafka import Broker
from tests.support.servers.topics import Message

ENGINE = DuckDBEngine()
KEYED = "          - {name: sent_key, data_type: string, description: It., from: key}\n"


def topic(tmp_path: Path, broker: Broker, **more: object) -> Topic:
    return made(tmp_path / "project", broker, ENGINE, **more)  # type: ignore[arg-type]


def numbers(one: Topic) -> dict[str, int]:
    """Return the sums of the intake."""
    rows = one.intake()
    names = ("read", "landed", "quarantined", "dropped", "gaps", "lost", "unexplained")
    return {name: sum(row[name] or 0 for row in rows) for name in names}


def test_messages_land_from_where_they_ended(tmp_path: Path, broker: Broker) -> None:
    one = topic(tmp_path, broker, partitions=3)
    one.send(line(1), line(2))
    one.send(line(3), partition=2)
    assert one.tick().published
    one.send(line(4), partition=1)
    assert one.tick().published
    assert one.tick().published

    assert one.landed() == ["o1", "o2", "o3", "o4"]
    assert {row["shop"]: (row["orders"], row["total"]) for row in one.site.rows("shops")} == {"s": (4, 10)}
    assert numbers(one) == {
        "read": 4, "landed": 4, "quarantined": 0, "dropped": 0, "gaps": 0, "lost": 0, "unexplained": 0
    }  # fmt: skip
    assert {(row["part"], row["since"], row["until"]) for row in one.intake() if row["read"]} == {
        (f"{one.name}/0", 0, 2), (f"{one.name}/2", 0, 1), (f"{one.name}/1", 0, 1)
    }  # fmt: skip


def test_a_poison_message_is_quarantined_with_its_origin(tmp_path: Path, broker: Broker) -> None:
    one = topic(tmp_path, broker)
    one.send(line(1), "{poison", "", line(2), None)
    assert one.tick().published

    assert [row["id"] for row in one.site.rows("stg")] == ["o1", "o2", None]
    shown = one.command("quarantine", "show", "stg")
    assert f"{one.name}/0" in shown.output and "not a JSON object" in shown.output
    assert numbers(one)["unexplained"] == 0 and numbers(one)["read"] == 5


def test_values_that_come_with_a_message_are_columns(tmp_path: Path, broker: Broker) -> None:
    columns = (
        KEYED
        + "          - {name: place, data_type: bigint, description: It., from: offset}\n"
        + "          - {name: at, data_type: timestamp, description: It., from: timestamp}\n"
        + "          - {name: trace, data_type: string, description: It., from: 'header:trace-id'}\n"
        + "          - {name: gone, data_type: boolean, description: It., from: tombstone}\n"
    )
    select = ", sent_key, place, at, trace, gone"
    one = topic(tmp_path, broker, columns=columns, select=select)
    headers = [("trace-id", b"first"), ("other", b"x"), ("trace-id", b't"1')]
    one.send(line(1), key=b'k"1', headers=headers, timestamp=1_777_896_000_123)
    one.send('{"sent_key":"forged","id":"o2"}', key=b"k2")
    one.send(None, key=b"o3")
    assert one.tick().published

    rows = {row["id"]: row for row in one.site.rows("stg")}
    assert [(row["id"], row["sent_key"], row["place"], row["trace"], row["gone"]) for row in rows.values()] == [
        ("o1", 'k"1', 0, 't"1', False), (None, "o3", 2, None, True)
    ]  # fmt: skip
    assert str(rows["o1"]["at"]).startswith("2026-05-04 12:00:00.123")
    assert "duplicate key" in one.command("quarantine", "list").output


def test_tombstones_are_dropped_if_declared(tmp_path: Path, broker: Broker) -> None:
    one = topic(tmp_path, broker, declared="tombstones: drop")
    one.send(line(1), None, None)
    assert one.tick().published

    assert one.landed() == ["o1"]
    assert numbers(one)["dropped"] == 2 and numbers(one)["unexplained"] == 0
    assert "Dropped: 2 lines, tombstone." in one.command("source", "audit").output


def test_a_tick_reads_at_most_the_limit(tmp_path: Path, broker: Broker) -> None:
    one = topic(tmp_path, broker, declared="max_offsets_per_tick: 4", partitions=2)
    one.send(*(line(n) for n in range(9)))
    one.send(line(100), partition=1)
    landed = []
    for _ in range(4):
        assert one.tick().published
        landed.append(len(one.landed()))

    assert landed == [4, 8, 10, 10]


def test_aborted_transactions_and_compaction_are_gaps(tmp_path: Path, broker: Broker) -> None:
    one = topic(tmp_path, broker)
    one.send(line(1))
    topics.abort(broker, one.name, [Message(line(2).encode()), Message(line(3).encode())])
    topics.commit(broker, one.name, [Message(line(4).encode())])
    still_open = topics.begin(broker, one.name, [Message(line(5).encode())])
    one.send(line(6))
    assert one.tick().published
    assert one.landed() == ["o1", "o4"]
    still_open.commit_transaction(20)
    assert one.tick().published

    assert one.landed() == ["o1", "o4", "o5", "o6"]
    _low, high = topics.watermarks(broker, one.name)
    assert numbers(one) == {
        "read": 4, "landed": 4, "quarantined": 0, "dropped": 0, "gaps": high - 4, "lost": 0, "unexplained": 0
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["aged out", "added", "topic recreated", "topic deleted"])
def test_a_loss_stops_the_source_until_it_is_accepted(tmp_path: Path, broker: Broker, kind: str) -> None:
    one = topic(tmp_path, broker)
    one.send(line(1), line(2))
    assert one.tick().published
    match kind:
        case "aged out":
            one.send(*(line(n) for n in range(3, 8)))
            topics.delete_records(broker, one.name, 5)
            what, lost, left = f"{one.name}/0 begins at offset 5, so [2, 5) never landed", 3, ["o6", "o7"]
        case "added":
            topics.add_partitions(broker, one.name, 2)
            one.send(*(line(n) for n in range(3, 8)), partition=1)
            topics.delete_records(broker, one.name, 3, 1)
            what, lost = f"the added partition {one.name}/1 does not begin at offset 0, but at 3", 3
            left = ["o6", "o7"]
        case "topic recreated":
            topics.recreate(broker, one.name)
            one.send(line(8))
            what, lost, left = f"the topic {one.name} was deleted and created again", 0, ["o8"]
        case _:
            topics.delete(broker, one.name)
            what, lost, left = f"the topic {one.name} no longer exists", 0, []

    message = one.problem()
    assert "SR747" in message and what in message and "sqlrun source accept-loss stg" in message
    listed = one.command("source", "accept-loss", "stg")
    assert listed.exit_code == 1 and what in listed.output and kind in listed.output
    accepted = one.command("source", "accept-loss", "stg", "--yes")
    assert accepted.exit_code == 0, accepted.output
    assert one.tick().published

    assert one.landed() == ["o1", "o2", *left]
    assert numbers(one)["lost"] == lost and numbers(one)["unexplained"] == 0
    audit = one.command("source", "audit")
    assert what in audit.output and "Accepted by" in audit.output
    assert "has lost nothing" in one.command("source", "accept-loss", "stg").output


@pytest.mark.long
def test_a_planned_range_that_ages_out_before_it_is_committed_is_named(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build dies between plan and commit; retention deletes a part of the planned range meanwhile."""
    from sqlrun.engines.duckdb.append import Coming
    from sqlrun.errors import EngineError

    one = topic(tmp_path, broker)
    one.send(line(1))
    assert one.tick().published
    one.send(*(line(n) for n in range(2, 7)))
    with monkeypatch.context() as patch:
        patch.setattr(Coming, "commit", lambda *_: (_ for _ in ()).throw(EngineError("killed")))
        assert not one.tick().published
    topics.delete_records(broker, one.name, 4)

    assert f"{one.name}/0 begins at offset 4, so [1, 4) never landed" in one.problem()
    accepted = one.command("source", "accept-loss", "a.b", "--yes")
    assert accepted.exit_code == 0, accepted.output
    assert one.tick().published
    assert one.landed() == ["o1", "o5", "o6"]
    assert numbers(one)["lost"] == 3 and numbers(one)["unexplained"] == 0


def test_lines_of_a_build_that_died_before_it_accounted_for_them_are_counted_again(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlrun.errors import EngineError
    from sqlrun.land import accounting

    one = topic(tmp_path, broker)
    one.send(line(1), "{poison", line(2))
    with monkeypatch.context() as patch:
        patch.setattr(accounting, "record", lambda *_: (_ for _ in ()).throw(EngineError("killed")))
        assert not one.tick().published
    assert one.intake() == []
    assert one.tick().published

    assert numbers(one) == {
        "read": 3, "landed": 2, "quarantined": 1, "dropped": 0, "gaps": 0, "lost": 0, "unexplained": 0
    }  # fmt: skip


def test_unexplained_lines_stop_the_tick(tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    one = topic(tmp_path, broker)
    one.send(line(1), line(2), line(3))
    with monkeypatch.context() as patch:
        patch.setattr(kafka, "Extent", lambda lines, dropped: Extent(lines + 1, dropped))
        message = one.problem()
    assert "SR744" in message and "1 fewer" in message
    assert "SR744" in one.problem()
    assert one.command("source", "audit").exit_code == 1


@pytest.mark.long
def test_a_broker_that_is_away_stops_its_source_with_a_clear_end(tmp_path: Path, own_broker: Broker) -> None:
    one = topic(tmp_path, own_broker)
    one.send(line(1))
    assert one.tick().published
    one.send(line(2))
    own_broker.kill()
    message = one.problem()
    assert "SR748" in message and "connection `kafka`" in message
    own_broker.start()

    assert one.tick().published
    assert one.landed() == ["o1", "o2"]


@pytest.mark.long
def test_other_sources_go_on_if_one_may_be_skipped(tmp_path: Path, broker: Broker) -> None:
    """A tick is published without new lines of the skipped source, and says so; later ticks land them."""
    one = topic(tmp_path, broker, declared="if_unreadable: skip")
    one.send(line(1))
    assert one.tick().published
    one.send(line(2))
    known = one.site.connections
    one.site.connections = {"kafka": Connection("127.0.0.1:1")}
    result = one.tick()
    assert result.published
    assert any("SR748" in stage.note and "if_unreadable" in stage.note for n in result.nodes for stage in n.stages)
    assert one.landed() == ["o1"]
    one.site.connections = known

    assert one.tick().published
    assert one.landed() == ["o1", "o2"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("address", "options", "reason"),
    [
        ("sasl_address", {"protocol": "SASL_PLAINTEXT", "password": "canary"}, "Invalid username or password"),
        ("tls_address", {"protocol": "SSL"}, "certificate could not be verified"),
        ("address", {"protocol": "SSL"}, "SSL handshake failed"),
        ("address", {"protocol": "SASL_PLAINTEXT", "password": "canary"}, "handshake failed"),
    ],
)
def test_a_refused_connection_says_why_and_no_secret(
    secured_broker: Broker, monkeypatch: pytest.MonkeyPatch, address: str, options: dict[str, str], reason: str
) -> None:
    monkeypatch.setattr(kafka_client, "REQUEST_TIMEOUT", 3.0)
    sasl = {"mechanism": "PLAIN", "username": "reader"} if "password" in options else {}
    client = kafka_client.Client("kafka", Connection(getattr(secured_broker, address), **options, **sasl))

    with pytest.raises(SourceError, match=reason) as caught:
        client.topics("orders", "")
    assert "canary" not in str(caught.value)
