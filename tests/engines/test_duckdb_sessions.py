"""DuckDB keeps some memory of each COPY until its database closes: it is reopened, but never during a session."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from sqlrun.engines.duckdb import engine as duckdb_engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.storage import factory, file_cache
from tests.soak import held_kb

TABLES = "select count(*) from duckdb_tables()"


def count(engine: DuckDBEngine, statement: str = "") -> object:
    """Run a statement in a session, and count the existing tables."""
    with engine.lent("") as session:
        session.execute(statement or "select 1").fetchall()
        return session.sql(TABLES).fetchall()[0][0]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> DuckDBEngine:
    monkeypatch.setattr(duckdb_engine, "SESSIONS", 3)
    return DuckDBEngine()


def test_the_database_is_reopened_after_many_sessions(engine: DuckDBEngine) -> None:
    assert count(engine, "create table old (i int)") == 1
    assert [count(engine) for _ in range(4)] == [1, 1, 0, 0]


def test_the_database_stays_open_during_a_session(engine: DuckDBEngine) -> None:
    with engine.lent("") as session:
        session.execute("create table old (i int)").fetchall()
        assert [count(engine) for _ in range(4)] == [1, 1, 1, 1]
    assert count(engine) == 0


def test_failed_and_abandoned_sessions_are_released(engine: DuckDBEngine) -> None:
    assert count(engine, "create table old (i int)") == 1
    with pytest.raises(RuntimeError, match="no"), engine.lent(""):
        raise RuntimeError("no")
    parts = engine.parts("select 1 as i from range(5000)", (), 1)
    next(parts)
    assert count(engine) == 1
    parts.close()
    assert count(engine) == 0


def test_an_open_database_reads_a_store_that_is_used_later(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may run a project in a folder first, then one whose warehouse is a URL."""
    monkeypatch.setattr(factory, "_stores", {})
    monkeypatch.setattr(file_cache, "_kept", OrderedDict())
    assert count(engine) == 0
    parquet.write_table(pyarrow.table({"i": [1, 2]}), tmp_path / "part.parquet")
    factory.register("s3://lake/shop", {"region": "eu-central-1", "anonymous": "true"})
    file_cache.keep("s3://lake/shop/part.parquet", (tmp_path / "part.parquet").read_bytes())
    with engine.lent("") as session:
        assert session.sql("select sum(i) from 's3://lake/shop/part.parquet'").fetchall() == [(3,)]


@pytest.mark.long
@pytest.mark.slow
def test_memory_kept_for_copies_does_not_grow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """DuckDB 2.0 keeps 1.1 KB of each of these."""
    monkeypatch.setattr(duckdb_engine, "SESSIONS", 100)
    engine, columns = DuckDBEngine(), ", ".join(f"i + {n} as c{n}" for n in range(20))

    def copy(times: int) -> None:
        for _ in range(times):
            with engine.lent("") as session:
                session.execute(f"copy (select {columns} from range(10) as r(i)) to '{tmp_path}/t.parquet'").fetchall()

    copy(200)
    before = held_kb()
    copy(800)
    assert held_kb() - before < 300
