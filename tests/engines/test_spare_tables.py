"""Tables that stay open between writes: writers and readers see the same as after opening them again."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from sqlrun.engine_api import Append, TableSpec
from sqlrun.engines.delta import deletion_vectors, file_layout, table_pool
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import EngineError
from tests.engines.test_own_writes import held, killed_before_commit, merging, rows, seen, spec_of, write
from tests.support import foreign_writers as others

MANY = "select 'k' || i as k, i::int as v, 0 as n from range(100) r(i)"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the paths that are opened from now on; forget all open tables."""
    paths: list[str] = []
    real = delta_table.opened
    monkeypatch.setattr(delta_table, "opened", lambda path, version: paths.append(path) or real(path, version))
    monkeypatch.setattr(table_pool, "_spare", {})
    return paths


def made(folder: Path) -> tuple[DuckDBEngine, TableSpec]:
    engine, spec = DuckDBEngine(), spec_of(folder, "int")
    engine.create(spec)
    write(engine, spec, 1, Append(MANY))
    return engine, spec


def replacing(number: int) -> str:
    return rows(f"('k{number}', -{number}, {number}, true)")


@pytest.mark.slow
def test_the_next_writer_and_readers_open_nothing(tmp_path: Path, opened: list[str]) -> None:
    engine, spec = made(tmp_path)
    opened.clear()
    for tick in range(2, 9):
        write(engine, spec, tick, merging(replacing(tick)))
        assert [row["v"] for row in seen(engine, spec) if row["n"] == tick] == [-tick]
    assert opened == []


@pytest.mark.slow
def test_a_table_is_reopened_from_time_to_time(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_pool, "WRITES", 3)
    engine, spec = made(tmp_path)
    opened.clear()
    for tick in range(2, 12):
        write(engine, spec, tick, merging(replacing(tick)))
    assert len(opened) == 2


@pytest.mark.slow
def test_foreign_commits_are_seen(tmp_path: Path, opened: list[str]) -> None:
    engine, spec = made(tmp_path)
    DeltaTable(spec.path).delete("k = 'k9'")
    write(engine, spec, 2, merging(replacing(9)))
    assert [row for row in held(spec.path) if row["k"] == "k9"] == [{"k": "k9", "v": -9, "n": 9}]
    assert DeltaTable(spec.path).history(1)[0]["operation"] == "WRITE"  # there was nothing to replace


@pytest.mark.slow
def test_a_rewritten_log_is_read_again(tmp_path: Path, opened: list[str]) -> None:
    engine, spec = made(tmp_path)
    newest = Path(spec.path) / "_delta_log" / f"{1:020d}.json"
    newest.unlink()
    write(engine, spec, 1, Append("select 'other' as k, 1 as v, 1 as n"))
    opened.clear()
    write(engine, spec, 2, merging(rows("('k1', 1, 2, true)")))
    assert [row["k"] for row in held(spec.path)] == ["k1", "other"]


@pytest.mark.slow
def test_a_table_is_reopened_after_a_failed_write(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, spec = made(tmp_path)
    with killed_before_commit(monkeypatch):
        write(engine, spec, 2, merging(replacing(7)))
    opened.clear()
    write(engine, spec, 2, merging(replacing(8)))
    assert opened == [spec.path]
    assert sorted(row["v"] for row in held(spec.path) if row["n"]) == [-8]


@pytest.mark.slow
def test_a_table_is_reopened_after_an_unreadable_commit(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By readers of the written version, and by the next writer."""
    engine, spec = made(tmp_path)

    def broken(*_: object) -> None:
        raise OSError("the disk is gone for a moment")

    with monkeypatch.context() as patched:
        patched.setattr(delta_table, "follow", broken)
        write(engine, spec, 2, merging(replacing(7)))
        left = delta_table.open_table(spec.path, 2)
        with pytest.raises(OSError, match="for a moment"):
            left._coming.result()
    opened.clear()
    assert described(left) == described(DeltaTable(spec.path))
    write(engine, spec, 3, merging(replacing(8)))
    assert opened == [spec.path, spec.path]
    assert sorted(row["v"] for row in held(spec.path) if row["n"]) == [-8, -7]


@pytest.mark.slow
def test_a_corrupt_log_is_reported(tmp_path: Path, opened: list[str]) -> None:
    engine, spec = made(tmp_path)
    (Path(spec.path) / "_delta_log" / f"{2:020d}.json").write_text('{"commitInfo":{"timest')
    with pytest.raises(EngineError, match="can't be read"):
        write(engine, spec, 3, merging(replacing(7)))


def test_readers_of_the_previous_version_see_that_version(tmp_path: Path, opened: list[str]) -> None:
    engine, spec = made(tmp_path)
    before = delta_table.open_table(spec.path, 1)
    write(engine, spec, 2, merging("select 'k' || i as k, i::int as v, 1 as n, true as stays from range(95) r(i)"))
    assert sum(file["num_records"] for file in delta_table.files_at(before)) == 100
    assert before.version() == 1 and delta_table.open_table(spec.path, 1) is before
    assert described(before) == described(DeltaTable(spec.path, version=1))


@pytest.mark.slow
def test_a_writers_table_equals_a_reopened_one(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over merges that mark rows, copy files, delete rows and write checkpoints."""
    monkeypatch.setattr(file_layout, "COPIED", 20)
    dice, (engine, spec) = random.Random(7), made(tmp_path)
    for tick in range(2, 26):
        picked = [dice.randrange(130) for _ in range(dice.randrange(1, 12))]
        stay = {number: dice.random() < 0.8 for number in picked}
        values = [f"('k{number}', {tick}, {tick}, {str(there).lower()})" for number, there in stay.items()]
        write(engine, spec, tick, merging(rows(*values)))
        left = delta_table.open_table(spec.path, tick)
        assert isinstance(left, table_pool.AsWritten)
        fresh = DeltaTable(spec.path)
        assert described(left) == described(fresh)
        assert left.transaction_version("app") == tick
        assert seen(engine, spec) == held(spec.path)


def described(table: Any) -> list[object]:
    """Return all facts that readers use of a table."""
    files = sorted(delta_table.files_at(table, ("v",)), key=lambda file: file["path"])
    gone = {file: rows.to_pylist() for file, rows in deletion_vectors.deleted(table).items()}
    return [
        table.version(), table.table_uri.rstrip("/"), table.schema().to_json(), table.metadata().configuration,
        table.metadata().partition_columns, table.protocol(), files, gone,
    ]  # fmt: skip


def test_a_checkpoint_is_written_beside_later_work(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write doesn't wait for it, readers of its version neither; the table's next writer and the tick's end do."""
    engine, spec = made(tmp_path)
    may, began, real = threading.Event(), threading.Event(), DeltaTable.create_checkpoint

    def late(self: DeltaTable) -> None:
        began.set()
        assert may.wait(30)
        real(self)

    monkeypatch.setattr(DeltaTable, "create_checkpoint", late)
    for tick in range(2, 11):
        write(engine, spec, tick, merging(replacing(tick)))
    assert began.wait(30) and [row["v"] for row in seen(engine, spec) if row["n"] == 10] == [-10]
    checkpoint = Path(delta_table.checkpoint_path(spec.path, 10))
    assert not checkpoint.exists()
    opening = threading.Timer(0.1, may.set)
    opening.start()
    table_pool.settle()
    assert checkpoint.exists()
    write(engine, spec, 11, merging(replacing(11)))
    assert DeltaTable(spec.path).version() == 11


def test_a_failed_checkpoint_fails_no_write(tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    engine, spec = made(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(DeltaTable, "create_checkpoint", lambda _: (_ for _ in ()).throw(OSError("no space")))
        for tick in range(2, 12):
            write(engine, spec, tick, merging(replacing(tick)))
        (said,) = table_pool.settle()
    assert said.startswith("The checkpoint of version 10 of ") and "no space" in said
    assert not list((tmp_path / "t" / "_delta_log").glob("*.checkpoint.parquet"))
    for tick in range(12, 21):
        write(engine, spec, tick, merging(replacing(tick)))
    assert table_pool.settle() == ()
    assert Path(delta_table.checkpoint_path(spec.path, 20)).exists()
    assert DeltaTable(spec.path).version() == 20


@pytest.mark.slow
def test_a_tick_ends_when_its_checkpoints_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = others.opened(others.project(tmp_path))
    real, done = DeltaTable.create_checkpoint, list[str]()

    def late(self: DeltaTable) -> None:
        time.sleep(0.3)
        real(self)
        done.append(self.table_uri)

    monkeypatch.setattr(DeltaTable, "create_checkpoint", late)
    for number in range(5):  # the ledger's tenth version is the fifth tick's publish
        others.arrive(site, number)
        assert site.tick(others.at(number)).published
    assert any("/_sqlrun/ledger" in path for path in done)
