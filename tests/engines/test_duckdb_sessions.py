"""DuckDB keeps some memory of each COPY until its database closes: it is reopened, but never during a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.duckdb import engine as duckdb_engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
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
