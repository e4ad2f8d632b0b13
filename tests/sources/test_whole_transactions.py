"""Ticks take whole transactions of a database, over several topics of a real broker."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from sqlrun.cli.main import main
from sqlrun.engines import planned_landing
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import SourceError
from sqlrun.publish.table_state import complete_to
from sqlrun.report.run_results import node_result
from sqlrun.sources import whole_transactions
from sqlrun.system_tables import completeness
from tests.support.commits import TOPIC, Commits, Lagging, Sent, events, with_crashes
from tests.support.commits_site import Databases
from tests.support.servers import topics
from tests.support.servers.kafka import Broker
from tests.support.servers.topics import Message

ENGINE = DuckDBEngine()
AT = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)


def ticked(made: Databases, number: int = 0, published: bool = True, **more: Any) -> list[str]:
    """Run a tick, and return what it says of its nodes."""
    result = made.site.tick(AT + timedelta(minutes=5 * number), **more)
    assert result.published == published, [node.message for node in result.nodes]
    return [text for node in result.nodes for text in (node.message, *(stage.note for stage in node.stages)) if text]


def whole(made: Databases, log: list[Sent]) -> int:
    """Return the number of the last transaction that landed; everything up to it has, and nothing else."""
    landed = made.landed()
    number = next(n for n in range(len(log) + 1) if landed <= events(log, n))
    assert landed == events(log, number)
    assert made.totals() == (len(landed), 0)
    return number


def made_log(seed: int, partitions: int, transactions: int) -> list[Sent]:
    commits = Commits(seed, partitions)
    return [one for _ in range(transactions) for one in commits.transaction()]


@pytest.mark.long
@pytest.mark.parametrize(("seed", "partitions", "crashes"), [(0, 1, 0.0), (1, 3, 0.05)])
def test_every_tick_has_whole_transactions(
    tmp_path: Path, broker: Broker, seed: int, partitions: int, crashes: float
) -> None:
    made, random, log = Databases(tmp_path, broker, ENGINE, partitions), Random(seed), made_log(seed, partitions, 40)
    holds(made, Lagging(list(with_crashes(log, random, crashes)), random), log)


def holds(made: Databases, lagging: Lagging, log: list[Sent], most: int = 60) -> None:
    """Let messages arrive tick by tick, each partition at its own pace, and compare each tick with the database."""
    number, before = 0, -1
    while not lagging.is_done:
        made.send(lagging.go_on(most))
        ticked(made, number)
        now = whole(made, log)
        assert now >= before
        number, before = number + 1, now
    assert number > 4
    assert before == max(one.transaction for one in log)


def test_pending_messages_are_reported_and_land_once_they_are_complete(tmp_path: Path, broker: Broker) -> None:
    made, log = Databases(tmp_path, broker, ENGINE), made_log(3, 1, 30)
    last = log[-1].transaction
    late = next(one for one in reversed(log) if one.topic != TOPIC and one.transaction == last)
    made.send(one for one in log if one is not late)
    said = "\n".join(ticked(made))

    assert whole(made, log) == last - 1
    assert f"complete to the transaction {last - 1} of 2026-05-04 12:" in said
    assert f"the transaction {last} lacks 1 of" in said and said.count("complete to") == 1
    made.send([late])
    assert "complete to" not in "\n".join(ticked(made, 1))
    assert whole(made, log) == last


def test_until_where_a_mart_is_complete_is_a_fact_of_the_tick(tmp_path: Path, broker: Broker) -> None:
    """The ledger has it, the system table, the results of the build, and `show`; a rollback has the earlier one."""
    made, log = Databases(tmp_path, broker, ENGINE), made_log(3, 1, 30)
    last = log[-1].transaction
    late = next(one for one in reversed(log) if one.topic != TOPIC and one.transaction == last)
    made.send(one for one in log if one is not late)
    result = made.site.tick(AT)
    completeness.write(made.site.warehouse, result, AT)

    published = made.site.ledger.read().published
    assert published is not None
    (fact,) = complete_to(published.tables, "totals")
    assert (fact.connection, fact.topic, fact.transaction) == ("kafka", made.marks, str(last - 1))
    assert fact.waiting > 0 and fact.committed_at is not None
    assert fact == published.tables["items"].complete
    (row,) = DeltaTable(completeness.path_of(made.site.warehouse)).to_pyarrow_table().to_pylist()
    assert {name: row[name] for name in ("tick", "published", "transaction", "waiting", "next_offset")} == {
        "tick": 1, "published": True, "transaction": str(last - 1), "waiting": fact.waiting,
        "next_offset": fact.next_offset,
    }  # fmt: skip
    landed = next(node for node in result.nodes if node.name == "orders")
    response: Any = node_result("shop", landed, AT)["adapter_response"]
    assert response["complete_to"]["transaction"] == str(last - 1)
    shown = CliRunner().invoke(main, ["--project-dir", str(tmp_path), "show", "totals"]).output
    assert f"complete to the transaction {last - 1} of {made.marks} at 2026-05-04 12:" in shown

    made.send([late])
    ticked(made, 1)
    ticked(made, 2)  # nothing new
    now = made.site.ledger.read().published
    assert now is not None
    (fact,) = complete_to(now.tables, "totals")
    assert (fact.transaction, fact.waiting) == (str(last), 0)


def test_a_tick_that_died_between_two_landings_ends_at_one_transaction(tmp_path: Path, broker: Broker) -> None:
    made, log = Databases(tmp_path, broker, ENGINE, 3), made_log(5, 3, 20)
    made.send(one for one in log if one.transaction <= 10)
    real = planned_landing.land

    def dies(commit: Any, landing: Any) -> Any:
        if landing.table.name == "items":
            raise OSError("the disk is gone")
        return real(commit, landing)

    with mock.patch.object(planned_landing, "land", dies):
        ticked(made, published=False)
    made.send(one for one in log if one.transaction > 10)
    ticked(made, 1)
    assert whole(made, log) == 20


def test_a_transaction_may_be_larger_than_a_tick(tmp_path: Path, broker: Broker) -> None:
    made, log = Databases(tmp_path, broker, ENGINE, 1, limit=2), made_log(7, 1, 12)
    made.send(log)
    numbers = []
    for number in range(40):
        assert "complete to" not in "\n".join(ticked(made, number))
        numbers.append(whole(made, log))
        if numbers[-1] == 12:
            break
    assert numbers[-1] == 12 and len({*numbers}) > 3


@pytest.mark.long
def test_a_lost_file_and_a_source_that_landed_before_cost_time_alone(tmp_path: Path, broker: Broker) -> None:
    made, log = Databases(tmp_path, broker, ENGINE, 3), made_log(8, 3, 30)
    declared = tmp_path / "models/_sources.yml"
    declared.write_text(made.declared(transactions=False))
    made.site = replace_site(made)
    made.send(one for one in log if one.transaction <= 10)
    ticked(made)
    declared.write_text(made.declared())
    made.site = replace_site(made)
    made.send(one for one in log if 10 < one.transaction <= 20)
    ticked(made, 1)
    assert whole(made, log) == 20
    (remembered,) = (tmp_path / "warehouse/_sqlrun/transactions").iterdir()
    kept = json.loads(remembered.read_text())
    made.send(one for one in log if one.transaction > 20)
    for number, text in enumerate(
        ("{broken", json.dumps(kept | {"ends": ["a"]}), "[]", json.dumps(kept | {"ends": {}}))
    ):
        remembered.write_text(text)
        ticked(made, 2 + number)
        assert whole(made, log) == 30


def replace_site(made: Databases) -> Any:
    """Return the site with its project read again."""
    return replace(made.site, events=[])


def test_marks_that_are_gone_are_reported(tmp_path: Path, broker: Broker) -> None:
    made, log = Databases(tmp_path, broker, ENGINE), made_log(9, 1, 20)
    made.send(one for one in log if one.transaction <= 5)
    ticked(made)
    made.send(one for one in log if one.transaction > 5)
    topics.delete_records(broker, made.marks, 20)
    said = "\n".join(ticked(made, 1))

    assert f"the broker deleted 10 marks of {made.marks}" in said
    assert whole(made, log) == 20


def test_a_part_of_a_group_cant_be_built(tmp_path: Path, broker: Broker) -> None:
    made = Databases(tmp_path, broker, ENGINE)
    said = "\n".join(ticked(made, published=False, select=("orders",)))
    assert "SR756 this build lands orders, but not customers, items" in said
    assert "--select customers+ items+ orders+" in said


def test_marks_that_have_no_order_or_are_none_stop_the_sources(tmp_path: Path, broker: Broker) -> None:
    made, log = Databases(tmp_path, broker, ENGINE), made_log(2, 1, 3)
    made.send(log)
    topics.produce(broker, made.marks, [Message(b'{"status":"PAUSED","id":"1"}')])
    assert f"SR755 the message {made.marks}/0/6 of the transaction topic" in "\n".join(ticked(made, published=False))
    topics.add_partitions(broker, made.marks, 2)
    assert f"SR755 the transaction topic {made.marks} has 2 partitions" in "\n".join(ticked(made, published=False))


def test_events_without_marks_wait(tmp_path: Path, broker: Broker) -> None:
    """A topic that isn't there yet, and a connector without `provide.transaction.metadata`: nothing lands, and why."""
    made, log = Databases(tmp_path, broker, ENGINE), made_log(4, 1, 3)
    topics.delete(broker, made.marks)
    made.send(one for one in log if one.topic != TOPIC)
    assert "complete to none;" in "\n".join(ticked(made))
    assert not made.landed()
    topics.create(broker, made.marks)
    made.send(one for one in log if one.topic == TOPIC)
    ticked(made, 1)
    assert whole(made, log) == 3


def test_marks_are_read_in_bounded_numbers(tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_transactions, "MARKS", 6)
    made, log = Databases(tmp_path, broker, ENGINE), made_log(6, 1, 8)
    made.send(log)
    found = []
    for number in range(4):
        ticked(made, number)
        found.append(whole(made, log))
    assert found == [3, 6, 8, 8]


def test_messages_may_arrive_while_the_cut_is_found(tmp_path: Path, broker: Broker) -> None:
    """The source that finds the cut lands up to it, too, and not up to what it had seen before."""
    made, log = Databases(tmp_path, broker, ENGINE), made_log(11, 1, 20)
    made.send(one for one in log if one.transaction <= 10)
    real = whole_transactions.Group._found

    def late(group: whole_transactions.Group) -> Any:
        made.send(one for one in log if one.transaction > 10)
        return real(group)

    with mock.patch.object(whole_transactions.Group, "_found", late):
        ticked(made)
    assert whole(made, log) == 20


def test_a_broker_that_is_away_is_asked_once_for_all_sources(tmp_path: Path, broker: Broker) -> None:
    made = Databases(tmp_path, broker, ENGINE)
    asked = []

    def away(group: whole_transactions.Group) -> Any:
        asked.append(group)
        raise SourceError("SR748 the broker doesn't answer")

    with mock.patch.object(whole_transactions.Group, "_found", away):
        said = ticked(made, published=False)
    assert len(asked) == 1 and sum("SR748" in text for text in said) == 3
    ticked(made, 1)
