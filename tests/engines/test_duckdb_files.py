"""Relations as parts of the statement that reads them: the rows are the same as with views."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engine_api import Append, Relation
from sqlrun.engines.duckdb import relations as duckdb_relations
from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.engines.test_own_writes import merging, rows, spec_of, write


@pytest.fixture
def engine() -> DuckDBEngine:
    return DuckDBEngine()


def relations(engine: DuckDBEngine, folder: Path) -> tuple[Relation, ...]:
    """Return a table before and after a tick, and its changes."""
    spec = spec_of(folder, "int")
    engine.create(spec)
    write(engine, spec, 1, Append("select 'a' as k, 1 as v, 1 as n union all select 'b', 2, 1"))
    write(engine, spec, 2, merging(rows("('b', 3, 2, true)", "('c', 4, 2, true)")))
    return (
        Relation("t__old", spec.path, spec.columns, "old", version=1),
        Relation("t__new", spec.path, spec.columns, "new", version=2),
        Relation("t__changes", spec.path, spec.columns, "changes", commits=(2,)),
    )


NET = "select k, sum(_weight * v) as v from t__changes group by k"
SUM = "select sum(v) as v from t__new"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (SUM, [(8,)]),
        (f"{SUM} union all select sum(v) from t__old", [(3,), (8,)]),
        (f"with net as ({NET}) select k, v from net", [("b", 1), ("c", 4)]),
        (f"WITH\n  net as ({NET})\nselect n.* from net as n semi join t__new as t using (k)", [("b", 1), ("c", 4)]),
        (f"with recursive up as (select 1 as i union all select i + 1 from up where i < ({SUM})) "
         "select max(i) from up", [(8,)]),
        # A part of the query has a relation's name: inside the part the name is the relation, after it the part.
        ('with "t__new" as (select k, v from t__new where v > 1) select sum(v) from t__new', [(7,)]),
        ("with T__NEW (a, b) as materialized (select k, v from t__new) select sum(b) from t__new", [(8,)]),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_a_query_sees_its_relations(
    sql: str, expected: list[tuple[object, ...]], engine: DuckDBEngine, tmp_path: Path
) -> None:
    found = engine.query(sql, relations(engine, tmp_path))
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == expected


def test_a_relation_is_a_part_of_the_statement(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No view is created, unless a part of the query has a relation's name."""
    made: list[int] = []
    real = duckdb_relations.register
    monkeypatch.setattr(duckdb_relations, "register", lambda *args: made.append(len(args[1])) or real(*args))
    few = relations(engine, tmp_path)
    made.clear()
    engine.query(f"with net as ({NET}) select * from net", few)
    assert made == []
    engine.query(f"with t__new as ({NET}) select * from t__new", few)
    assert made == [3]
