"""A warehouse behind a symbolic link is the same warehouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engine_api import Append, Merge, Relation, StoredColumn, TableSpec, Write
from sqlrun.engines.delta import deletion_vectors, file_layout
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine

COLUMNS = (StoredColumn("k", "string"), StoredColumn("v", "int"))


@pytest.mark.slow
def test_rows_that_were_marked_stay_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """delta-rs names files by their real paths, the others by the given path."""
    monkeypatch.setattr(file_layout, "COPIED", 0)
    monkeypatch.setattr(file_layout, "MOST_DEAD", 1.0)
    (tmp_path / "a b").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a b")
    engine, spec = DuckDBEngine(), TableSpec("t", str(tmp_path / "link" / "t"), COLUMNS)
    engine.create(spec)
    every = (("k", "s.k"), ("v", "s.v"))
    statements = [Append("select 'k' || range as k, 0::int as v from range(10)")]
    for value in (1, 2, 3):
        statements.append(Merge(f"select 'k' || range as k, {value} as v from range(2)", ("k",), (), every, every))
    for tick, statement in enumerate(statements, 1):
        engine.write(Write(spec, tick - 1, tick, "app", (), statement))
    assert deletion_vectors.deleted(delta_table.open_table(spec.path))
    relation = Relation("r", spec.path, COLUMNS, "new", version=len(statements))
    found = engine.query("select v, count(*) as n from r group by v order by v", (relation,)).to_pylist()
    assert found == [{"v": 0, "n": 8}, {"v": 3, "n": 2}]
