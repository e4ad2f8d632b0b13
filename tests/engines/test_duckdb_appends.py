"""Rows appended by DuckDB or by delta-rs: the table is the same, and a failure leaves nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from sqlrun.engine_api import Append, StoredColumn, TableSpec, Write
from sqlrun.engines.delta import commit as delta_commit
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb import append as duckdb_append
from sqlrun.errors import EngineError

COLUMNS = (
    StoredColumn("id", "int"),
    StoredColumn("name", "string"),
    StoredColumn("price", "decimal(10,2)"),
    StoredColumn("at", "timestamp"),
    StoredColumn("day", "date"),
    StoredColumn("items", "array<struct<dish:string,n:int>>"),
)
ROWS = """
    select i::int as id, 'n' || i as name, i / 4 as price, timestamptz '2026-01-01 00:00:00.000001+00' as at,
        date '2026-01-01' + i::int as day, [{'dish': 'd', 'n': i::int}] as items from range(3) as r(i)
    union all select null, null, null, null, null, null"""


@pytest.fixture
def session() -> Iterator[Any]:
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        yield connection


def made(folder: Path, properties: dict[str, str]) -> tuple[Any, Write]:
    spec = TableSpec("t", str(folder), COLUMNS)
    delta_table.create(spec, {**delta_table.PROPERTIES, **properties})
    return delta_table.open_table(spec.path), Write(spec, 0, 7, "app", (), Append(""), {})


# delta-rs writes a table with a property that sqlrun doesn't set.
@pytest.mark.parametrize("properties", [{}, {"delta.targetFileSize": "104857600"}])
def test_rows_of_several_queries_come_in_one_commit(session: Any, tmp_path: Path, properties: dict[str, str]) -> None:
    table, write = made(tmp_path / "t", properties)
    assert delta_commit.ours(table, write) == (not properties)
    with duckdb_append.coming(session, table, write) as rows:
        rows.add(f"{ROWS} limit 0")
        rows.add(ROWS)
        rows.add(ROWS)
        assert rows.commit({"a": "b"}) == 8

    found = delta_table.open_table(write.table.path)
    assert found.version() == 1
    assert found.transaction_version("app") == 7
    session.register("found", pa.table(found.scan().read_all()))
    for one, other in (("found", "twice"), ("twice", "found")):
        twice = f"with twice as ({ROWS} union all {ROWS})"
        assert session.sql(f"{twice} select * from {one} except all select * from {other}").fetchall() == []
    assert delta_table.rows_changed(write.table.path, (1,)) == 8
    info = next(a["commitInfo"] for a in delta_table.actions(write.table.path, 1) if "commitInfo" in a)
    assert info["a"] == "b"
    assert (info["operation"], info["sqlrun.tick"]) == ("WRITE", "7")
    listed = delta_table.files_at(found, ["id"])
    assert sum(file["num_records"] for file in listed) == 8
    assert {(file["min.id"], file["max.id"]) for file in listed} == {(0, 2)}
    feed = delta_table.change_feed(write.table.path, (1,), ["id"])
    assert sum(part.num_rows for part in feed) == 8


@pytest.mark.parametrize("properties", [{}, {"delta.targetFileSize": "104857600"}])
def test_a_commit_without_rows_is_a_version(session: Any, tmp_path: Path, properties: dict[str, str]) -> None:
    table, write = made(tmp_path / "t", properties)
    with duckdb_append.coming(session, table, write) as rows:
        rows.add(f"{ROWS} limit 0")
        assert rows.commit({}) == 0
    found = delta_table.open_table(write.table.path)
    assert (found.version(), found.transaction_version("app")) == (1, 7)
    assert pa.table(found.scan().read_all()).num_rows == 0


def test_a_failure_before_the_commit_leaves_no_file(session: Any, tmp_path: Path) -> None:
    table, write = made(tmp_path / "t", {})
    with pytest.raises(duckdb.Error), duckdb_append.coming(session, table, write) as rows:
        rows.add(ROWS)
        assert list((tmp_path / "t").glob("*.parquet"))
        rows.add("select nothing")
    assert not list((tmp_path / "t").glob("*.parquet"))
    assert delta_table.head(write.table.path) == 0


def test_a_failure_after_the_commit_keeps_the_files(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, write = made(tmp_path / "t", {})
    real = delta_commit.commit

    def dies(*args: Any) -> None:
        real(*args)
        raise OSError("the disk is full")

    monkeypatch.setattr(delta_commit, "commit", dies)
    with pytest.raises(OSError), duckdb_append.coming(session, table, write) as rows:
        rows.add(ROWS)
        rows.commit({})
    assert pa.table(delta_table.open_table(write.table.path).scan().read_all()).num_rows == 4


def test_one_of_two_writers_fails(session: Any, tmp_path: Path) -> None:
    table, write = made(tmp_path / "t", {})
    with duckdb_append.coming(session, table, write) as rows:
        rows.add(ROWS)
        log = tmp_path / "t" / "_delta_log" / f"{1:020d}.json"
        log.write_text(json.dumps({"commitInfo": {"operation": "WRITE"}}))
        with pytest.raises(EngineError, match="another writer wrote"):
            rows.commit({})
