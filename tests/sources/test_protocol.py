"""A source without files lands by the same protocol: each line once, with a failure between plan and commit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlrun.engine_api import Landing, StoredColumn, TableSpec
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.append import Coming
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import EngineError
from sqlrun.sources import batches
from tests.sources.partitioned_log import Log

COLUMNS = (StoredColumn("value", "string"), StoredColumn("_file", "string"))
QUERY = "select value, file as _file from lines"


@pytest.fixture(scope="module")
def engine() -> DuckDBEngine:
    """One engine for all tests of this module."""
    return DuckDBEngine()


def landing(root: Path, log: Log, *, accept_lost: bool = False) -> Landing:
    """Return the landing of a log into an existing table."""
    table = TableSpec("stg", str(root / "stg"), COLUMNS)
    delta_table.create(table)
    return Landing(table, log, str(root / "checkpoint"), QUERY, "app", accept_lost=accept_lost)


def rows(root: Path) -> list[tuple[str, str]]:
    """Return each line's origin and text."""
    found = delta_table.open_table(str(root / "stg")).to_pyarrow_table().to_pylist()
    return sorted((row["_file"], row["value"]) for row in found)


def test_partitions_land_from_where_they_ended(tmp_path: Path, engine: DuckDBEngine) -> None:
    log = Log({"a": ["one", "two"]})
    first = engine.land(landing(tmp_path, log))
    log.partitions["a"].append("three")
    log.partitions["b"] = ["one"]
    engine.land(landing(tmp_path, log))
    idle = engine.land(landing(tmp_path, log))

    assert rows(tmp_path) == [("a:0", "one"), ("a:1", "two"), ("a:2", "three"), ("b:0", "one")]
    assert first.version == 1 and idle.version == 2
    assert log.committed == {"a": (2, 3), "b": (0, 1)}


def test_a_batch_that_was_planned_and_not_committed_lands_as_it_was_planned(
    tmp_path: Path, engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later lines are another batch, so that no line is in two."""
    log = Log({"a": ["one"]})
    engine.land(landing(tmp_path, log))
    log.partitions["a"].append("two")
    with monkeypatch.context() as patch:
        patch.setattr(Coming, "commit", lambda *_: (_ for _ in ()).throw(EngineError("killed")))
        with pytest.raises(EngineError, match="killed"):
            engine.land(landing(tmp_path, log))
    log.partitions["a"].append("three")
    written = engine.land(landing(tmp_path, log))

    planned = batches.read(str(tmp_path / "checkpoint"))
    assert [batch.parts for batch in planned.values() if batch] and written.version == 3
    assert {n: dict(batch.parts) for n, batch in planned.items() if batch} == {
        1: {"a": (0, 1)}, 2: {"a": (1, 2)}, 3: {"a": (2, 3)}
    }  # fmt: skip
    assert rows(tmp_path) == [("a:0", "one"), ("a:1", "two"), ("a:2", "three")]


def test_a_range_that_is_gone_is_refused_until_its_loss_is_accepted(tmp_path: Path, engine: DuckDBEngine) -> None:
    log = Log({"a": ["one", "two"], "b": ["one"]}, begin={"a": 1})

    with pytest.raises(EngineError, match="must land a file of log that can't be found: a"):
        engine.land(landing(tmp_path, log))
    assert rows(tmp_path) == []
    engine.land(landing(tmp_path, log, accept_lost=True))

    assert rows(tmp_path) == [("b:0", "one")]
    assert log.committed == {"b": (0, 1)}


def test_many_batches_are_folded_and_remember_every_partition(
    tmp_path: Path, engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "KEEP", 3)
    log = Log({"old": ["one"], "a": []})
    for number in range(8):
        log.partitions["a"].append(str(number))
        engine.land(landing(tmp_path, log))

    files = sorted((tmp_path / "checkpoint" / "batches").iterdir())
    assert len(files) <= 4 and "newest" in json.loads(files[0].read_text())
    assert len(rows(tmp_path)) == 9
    assert engine.land(landing(tmp_path, log)).version == 8


def test_notes_come_from_the_source() -> None:
    log = Log({"a": ["one", "two"]})

    assert [(each.part, each.number) for each in log.describe([("a:1", "two")])] == [("a", 1)]
    assert log.count(log.pending({"a": (0, 1)}).ready).lines == 1
