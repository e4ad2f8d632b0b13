"""Replacement of whole partitions on Delta files, on the `duckdb` engine; tests/spark has the Spark engine's twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engine_api import Append, Overwrite, Relation, Statement, StoredColumn, TableSpec, Write, Written
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import EngineError

COLUMNS = (StoredColumn("k", "string"), StoredColumn("g", "int"))
VALUES = {
    "int": ("1", "2"),
    "string": ("'it''s'", "'b'"),
    "date": ("date '2026-03-01'", "date '2026-03-02'"),
    "timestamp": ("timestamptz '2026-03-01 12:00:00+00'", "timestamptz '2026-03-01 13:00:00+00'"),
    "boolean": ("true", "false"),
}


def write(engine: DuckDBEngine, spec: TableSpec, tick: int, statement: Statement) -> Written:
    base = engine.head(spec.path)
    assert base is not None
    return engine.write(Write(spec, base, tick, "app", (), statement))


def content(engine: DuckDBEngine, spec: TableSpec) -> list[str]:
    relation = Relation("r", spec.path, spec.columns, "new", version=engine.head(spec.path) or 0)
    return [row["k"] for row in engine.query("select k from r order by k", (relation,)).to_pylist()]


def changes(engine: DuckDBEngine, spec: TableSpec, commit: int) -> list[tuple[str, int]]:
    relation = Relation("r", spec.path, spec.columns, "changes", commits=(commit,))
    rows = engine.query(
        "select k, sum(_weight) as w from r group by k having w <> 0 order by k", (relation,)
    ).to_pylist()
    return [(row["k"], int(row["w"])) for row in rows]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.slow
def test_affected_partitions_have_the_rows_of_the_query(tmp_path: Path, kind: str) -> None:
    """For every type of a partition column, NULL among the values; the change feed has the difference."""
    one, two = VALUES[kind]
    engine = DuckDBEngine()
    spec = TableSpec("t", str(tmp_path / "t"), (COLUMNS[0], StoredColumn("g", kind)), ("g",))
    engine.create(spec)
    write(engine, spec, 1, Append(f"select * from (values ('a', {one}), ('b', {two}), ('c', null)) as v(k, g)"))

    done = write(engine, spec, 2, Overwrite(f"select 'd' as k, {one} as g", f"values ({one}), (null)"))

    assert (done.version, done.receipt.commits) == (2, 1)
    assert content(engine, spec) == ["b", "d"]
    assert changes(engine, spec, 2) == [("a", -1), ("c", -1), ("d", 1)]


def test_no_affected_partition_makes_no_commit(tmp_path: Path) -> None:
    engine = DuckDBEngine()
    spec = TableSpec("t", str(tmp_path / "t"), COLUMNS, ("g",))
    engine.create(spec)
    write(engine, spec, 1, Append("select 'a' as k, 1 as g"))

    done = write(engine, spec, 2, Overwrite("select 'a' as k, 1 as g where false", "select 1 as g where false"))

    assert (done.version, done.receipt.commits) == (1, 0)


def test_a_partition_may_lose_all_its_rows(tmp_path: Path) -> None:
    engine = DuckDBEngine()
    spec = TableSpec("t", str(tmp_path / "t"), COLUMNS, ("g",))
    engine.create(spec)
    write(engine, spec, 1, Append("select * from (values ('a', 1), ('b', 2)) as v(k, g)"))

    write(engine, spec, 2, Overwrite("select 'a' as k, 1 as g where false", "select 1 as g"))

    assert content(engine, spec) == ["b"]
    assert changes(engine, spec, 2) == [("a", -1)]


def test_rows_of_unaffected_partitions_are_refused(tmp_path: Path) -> None:
    """A query that returns rows of an unaffected partition would duplicate them."""
    engine = DuckDBEngine()
    spec = TableSpec("t", str(tmp_path / "t"), COLUMNS, ("g",))
    engine.create(spec)
    write(engine, spec, 1, Append("select 'a' as k, 1 as g"))

    with pytest.raises(EngineError):
        write(engine, spec, 2, Overwrite("select 'a' as k, 2 as g", "select 1 as g"))
