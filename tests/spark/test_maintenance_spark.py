"""After `sqlrun vacuum` Spark reads the same tables, and its next tick is true."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from pathlib import Path

import pytest

from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.operations import maintenance
from tests.support.projects import Site, copy_project
from tests.support.script import FIVE, START, order
from tests.support.whole import differences

# py4j leaves the sockets of finished threads to the garbage collector.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]


def test_a_tick_after_a_vacuum_is_right_on_spark(engine: SparkEngine, tmp_path: Path) -> None:
    site = Site(copy_project(tmp_path), engine)
    for number in range(1, 3):
        at = START + number * FIVE
        site.write(f"{number}.jsonl", [order(str(number), at - FIVE), order("9", at - FIVE, version=number)])
        assert site.tick(at).published

    done = maintenance.vacuum(site.ledger, 1, datetime.now(timezone.utc), lambda _: None)

    assert done.merged > done.made
    idle = site.tick(START + 2 * FIVE)
    assert {node.status for node in idle.nodes} == {"no-op"}
    site.write("3.jsonl", [order("9", START, version=7), order("10", START)])
    assert site.tick(START + 3 * FIVE).published
    assert differences(site, START + 3 * FIVE) == {}


def test_a_table_that_stood_still_for_longer_than_deleted_files_are_kept_changes_again(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta's own time travel ends there, even to the version that was the newest until the tick's own commit."""
    monkeypatch.setitem(delta_table.PROPERTIES, "delta.deletedFileRetentionDuration", "interval 1 seconds")
    site = Site(copy_project(tmp_path), engine)
    site.write("1.jsonl", [order("1", START), order("2", START)])
    assert site.tick(START + FIVE).published
    time.sleep(2)

    site.write("2.jsonl", [order("2", START, version=2), order("3", START)])
    assert site.tick(START + 2 * FIVE).published
    assert differences(site, START + 2 * FIVE) == {}

    time.sleep(2)
    site.write("3.jsonl", [order("4", START)])
    published = site.ledger.read().published
    assert published is not None
    table = published.tables["stg_orders"]
    engine.restore(f"{site.warehouse}/{table.path}", table.version - 1)
    assert site.tick(START + 3 * FIVE).published
    assert differences(site, START + 3 * FIVE) == {}
