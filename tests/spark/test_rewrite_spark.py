"""A MERGE that sqlrun commits itself does what Delta's own does, and leaves to it what it can't do."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engine_api import Append, Merge, Prune, Relation, StoredColumn, TableSpec, Write, Written
from sqlrun.engines.delta import commit as delta_commit
from sqlrun.engines.delta import deletion_vectors, file_layout
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb import merge as duckdb_merge
from sqlrun.engines.spark import merge as spark_rewrite
from sqlrun.engines.spark import views as spark_views
from sqlrun.engines.spark import write as spark_write
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.errors import EngineError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]

COLUMNS = (
    StoredColumn("k", "string"),
    StoredColumn("day", "date"),
    StoredColumn("city", "string"),
    StoredColumn("v", "decimal(18,2)"),
    StoredColumn("at", "timestamp"),
    StoredColumn("parts", "array<struct<a:int,b:string>>"),
    StoredColumn("x", "double"),
)
NAMES = [column.name for column in COLUMNS]
LAYOUTS = [
    pytest.param((), id="whole"),
    pytest.param(("day",), id="day"),
    pytest.param(("day", "city"), id="day and city"),
]
FIRST = """
    ('a', '2026-01-01', 'Bad-Ems', 1.50, '2026-01-01 10:00:00.123456', 1), ('b', '2026-01-01', 'A-B', 2.00, null, 2),
    ('c', '2026-01-02', null, -3.25, '2026-01-02 10:00:00', null), ('gone', '2026-01-02', null, 4, null, 4),
    ('gone too', '2026-01-02', null, 5, null, 4), ('far', '2026-01-09', 'Bad-Ems', 9, null, 9)
"""
SECOND = """
    ('a', '2026-01-01', 'Bad-Ems', 10, '2026-02-01 00:00:00', 5), ('c', '2026-01-02', null, 20, null, 6),
    ('gone', '2026-01-02', null, -4, null, 7), ('gone too', '2026-01-02', null, -5, null, 7),
    ('new', '2026-01-02', 'Lodz', 7.77, '1969-12-31 23:59:59.999999', 8),
    ('never', '2026-01-01', 'Bad-Ems', 0, null, 9)
"""


def rows_of(values: str) -> str:
    return (
        "select k, cast(day as date) as day, city, cast(v as decimal(18,2)) as v, cast(at as timestamp) as at, "
        "array(named_struct('a', cast(n as int), 'b', k)) as parts, cast(n as double) / 3 as x "
        f"from values {values} as rows(k, day, city, v, at, n)"
    )


STATEMENT = Merge(
    rows_of(SECOND),
    key=("k", "day", "city"),
    null_safe=("city",),
    update=(("v", "cast(t.v + s.v as decimal(18,2))"), ("at", "s.at"), ("parts", "s.parts"), ("x", "s.x")),
    insert=tuple((name, f"s.{name}") for name in NAMES),
    delete_when="t.v + s.v = 0",
    insert_when="s.v <> 0",
    prune=Prune(partitions=("day",)),
)


def made(engine: SparkEngine, folder: Path, name: str, partition_by: tuple[str, ...]) -> TableSpec:
    spec = TableSpec(name, str(folder / name), COLUMNS, partition_by)
    engine.create(spec)
    engine.write(Write(spec, 0, 1, f"app.{name}", (), Append(rows_of(FIRST))))
    return spec


def merged(engine: SparkEngine, spec: TableSpec, statement: Merge = STATEMENT, tick: int = 2) -> Written:
    base = engine.head(spec.path)
    assert base is not None
    if not spec.partition_by:
        statement = replace(statement, prune=Prune())
    return engine.write(Write(spec, base, tick, f"app.{spec.name}", (), statement, {"note": "hello"}))


def content(engine: SparkEngine, spec: TableSpec) -> list[str]:
    relation = Relation("r", spec.path, spec.columns, "new", version=engine.head(spec.path) or 0)
    return sorted(map(str, engine.query("select * from r", (relation,)).to_pylist()))


def feed(engine: SparkEngine, spec: TableSpec, *versions: int) -> Counter[str]:
    """Read a commit's changes as the next table does; what came and left as it was says nothing."""
    relation = Relation("r", spec.path, spec.columns, "changes", commits=versions)
    net: Counter[str] = Counter()
    for row in engine.query("select * from r", (relation,)).to_pylist():
        weight = row.pop("_weight")
        net[str(row)] += weight
    return Counter({row: weight for row, weight in net.items() if weight})


def actions(spec: TableSpec, version: int, kind: str) -> list[dict[str, Any]]:
    return [action[kind] for action in delta_table.actions(spec.path, version) if kind in action]


def by_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_rewrite, "merge", lambda *_: False)


def test_leaves_texts_that_folders_spell_otherwise_to_delta(engine: SparkEngine, tmp_path: Path) -> None:
    """A project's own tables have hidden columns there; what is read is the same."""
    odd = {"Bad-Ems": "Bad Ems", "A-B": "A/B=%C", "Lodz": "Łódź"}
    first, second = FIRST, SECOND
    for plain, text in odd.items():
        first, second = first.replace(plain, text), second.replace(plain, text)
    found = []
    for name, partition_by in (("whole", ()), ("parted", ("day", "city"))):
        spec = TableSpec(name, str(tmp_path / name), COLUMNS, partition_by)
        engine.create(spec)
        engine.write(Write(spec, 0, 1, f"app.{name}", (), Append(rows_of(first))))
        merged(engine, spec, replace(STATEMENT, delta=rows_of(second)))
        found.append((content(engine, spec), feed(engine, spec, 2)))

    assert found[0] == found[1]
    assert actions(spec, 2, "commitInfo")[0]["engineInfo"].startswith("Apache-Spark")


@pytest.mark.parametrize("partition_by", LAYOUTS)
@pytest.mark.parametrize("one_task", [50_000, 0], ids=["one task", "tasks"])
def test_does_what_deltas_merge_does(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition_by: tuple[str, ...], one_task: int
) -> None:
    monkeypatch.setattr(spark_rewrite, "ONE_TASK", one_task)
    ours, theirs = (made(engine, tmp_path, name, partition_by) for name in ("ours", "theirs"))
    done = merged(engine, ours)
    by_delta(monkeypatch)
    other = merged(engine, theirs)
    assert done.version == other.version == 2
    assert "engineInfo" in (info := actions(ours, 2, "commitInfo")[0]) and info["engineInfo"].startswith("sqlrun")
    assert content(engine, ours) == content(engine, theirs)
    assert feed(engine, ours, 2) == feed(engine, theirs, 2)
    assert len(feed(engine, ours, 2)) == 7
    ids = [{"appId": f"app.{spec.name}", "version": 2} for spec in (ours, theirs)]
    found = [{k: v for k, v in actions(spec, 2, "txn")[0].items() if k != "lastUpdated"} for spec in (ours, theirs)]
    assert found == ids
    metadata = [json.loads(actions(spec, 2, "commitInfo")[0]["userMetadata"]) for spec in (ours, theirs)]
    assert metadata[0] == metadata[1] == {"note": "hello", "sqlrun.tick": "2"}
    for what in ("Inserted", "Updated", "Deleted"):
        metric = actions(theirs, 2, "commitInfo")[0]["operationMetrics"][f"numTargetRows{what}"]
        assert int(info["operationMetrics"][f"num_target_rows_{what.lower()}"]) == int(metric), what
    # Spark forgets jobs: then it can't tell.
    assert (done.receipt.jobs or 0) <= 3 < (other.receipt.jobs or 4)
    # Spark's own reader, Delta's log and all, sees the same rows, and another MERGE of Delta's goes on from there.
    merged(engine, ours, tick=3)
    merged(engine, theirs, tick=3)
    assert content(engine, ours) == content(engine, theirs)
    assert feed(engine, ours, 3) == feed(engine, theirs, 3)


def test_files_that_hold_no_row_of_the_delta_are_left_alone(engine: SparkEngine, tmp_path: Path) -> None:
    spec = made(engine, tmp_path, "t", ("day",))
    merged(engine, spec)
    gone = {action["partitionValues"]["day"] for action in actions(spec, 2, "remove")}
    assert gone == {"2026-01-01", "2026-01-02"}
    stats = [json.loads(action["stats"]) for action in actions(spec, 2, "add")]
    assert sum(one["numRecords"] for one in stats) == 4
    assert all(one["minValues"]["k"] <= one["maxValues"]["k"] for one in stats)
    assert {one["nullCount"]["city"] for one in stats} == {0, 1}


def test_nothing_to_change_is_no_commit(engine: SparkEngine, tmp_path: Path) -> None:
    spec = made(engine, tmp_path, "t", ("day",))
    idle = Merge(STATEMENT.delta, STATEMENT.key, STATEMENT.null_safe, STATEMENT.update, STATEMENT.insert,
                 update_when="false", insert_when="false", prune=STATEMENT.prune)  # fmt: skip
    assert merged(engine, spec, idle).version == 1


def test_rows_for_new_partitions_alone_are_added(engine: SparkEngine, tmp_path: Path) -> None:
    spec = made(engine, tmp_path, "t", ("day",))
    delta = rows_of("('z', '2027-01-01', 'Bad-Ems', 1, null, 1)")
    merged(engine, spec, Merge(delta, STATEMENT.key, STATEMENT.null_safe, (), STATEMENT.insert, prune=STATEMENT.prune))
    assert not actions(spec, 2, "remove") and not actions(spec, 2, "cdc")
    assert list(feed(engine, spec, 2).values()) == [1]


def test_a_commit_in_between_is_an_error(engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = made(engine, tmp_path, "t", ("day",))
    real = duckdb_merge.planned

    def planned(*given: Any) -> Any:
        delta_table.delete_rows(spec.path, "k = 'far'")
        return real(*given)

    monkeypatch.setattr(duckdb_merge, "planned", planned)
    with pytest.raises(EngineError, match="another writer wrote version"):
        merged(engine, spec)
    assert engine.head(spec.path) == 2


@pytest.mark.parametrize("limit", ["MOST_DELTA", "MOST_TARGET"])
def test_what_is_large_is_left_to_delta(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    spec = made(engine, tmp_path, "t", ("day",))
    monkeypatch.setattr(spark_rewrite, limit, 2)
    merged(engine, spec)
    assert actions(spec, 2, "commitInfo")[0]["engineInfo"].startswith("Apache-Spark")
    assert len(feed(engine, spec, 2)) == 7


def test_a_table_that_is_not_ours_is_left_to_delta(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = made(engine, tmp_path, "t", ("day",))
    monkeypatch.setattr(delta_commit, "ours", lambda *_: False)
    merged(engine, spec)
    assert actions(spec, 2, "commitInfo")[0]["engineInfo"].startswith("Apache-Spark")
    assert spark_write.SOURCE


@pytest.fixture
def marking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are marked as deleted in files of any size, however many there are."""
    monkeypatch.setattr(file_layout, "COPIED", 0)
    monkeypatch.setattr(file_layout, "MOST_DEAD", 1.0)
    monkeypatch.setattr(file_layout, "TIER", 100)


def marked(spec: TableSpec) -> int:
    return sum(map(len, deletion_vectors.deleted(delta_table.open_table(spec.path)).values()))


def by_spark(engine: SparkEngine, spec: TableSpec, version: int) -> list[str]:
    """Read a version as Delta's own reader does."""
    assert engine._spark is not None
    frame = engine._spark.newSession().read.format("delta").option("versionAsOf", version).load(spec.path)
    return sorted(map(str, frame.select(*NAMES).toArrow().to_pylist()))


@pytest.mark.parametrize("partition_by", LAYOUTS)
@pytest.mark.parametrize("one_task", [300_000, 0], ids=["one task", "tasks"])
def test_marks_what_it_replaces(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marking: None, partition_by: tuple[str, ...],
    one_task: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(spark_rewrite, "ONE_TASK", one_task)
    ours, theirs = (made(engine, tmp_path, name, partition_by) for name in ("ours", "theirs"))
    third = rows_of("('a', '2026-01-01', 'Bad-Ems', 1, null, 1), ('b', '2026-01-01', 'A-B', 1, null, 1)")
    for number, delta in ((2, STATEMENT.delta), (3, STATEMENT.delta), (4, third)):
        merged(engine, ours, replace(STATEMENT, delta=delta), number)
        with monkeypatch.context() as patched:
            by_delta(patched)
            merged(engine, theirs, replace(STATEMENT, delta=delta), number)
        # Those of the tick before are met again, as old versions that must not count.
        assert content(engine, ours) == content(engine, theirs) == by_spark(engine, ours, number), number
        assert feed(engine, ours, number) == feed(engine, theirs, number), number
        assert actions(ours, number, "remove")[0]["path"] in {add["path"] for add in actions(ours, number, "add")}
    assert marked(ours) >= 7
    assert [content_at(engine, ours, version) for version in (1, 2, 3)] == [
        content_at(engine, theirs, version) for version in (1, 2, 3)
    ]


def content_at(engine: SparkEngine, spec: TableSpec, version: int) -> list[str]:
    relation = Relation("r", spec.path, spec.columns, "old", version=version)
    return sorted(map(str, engine.query("select * from r", (relation,)).to_pylist()))


def test_many_deleted_rows_are_read_by_deltas_reader(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marking: None
) -> None:
    spec = made(engine, tmp_path, "t", ("day",))
    merged(engine, spec)
    before = content(engine, spec)
    monkeypatch.setattr(spark_views, "MOST_DELETED", 0)
    assert content(engine, spec) == before
    merged(engine, spec, tick=3)
    assert actions(spec, 3, "commitInfo")[0]["engineInfo"].startswith("Apache-Spark")


def test_deltas_own_statements_write_no_vectors_as_files(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marking: None
) -> None:
    spec = made(engine, tmp_path, "t", ())
    merged(engine, spec)
    assert (before := marked(spec))
    by_delta(monkeypatch)
    merged(engine, spec, tick=3)
    assert engine._spark is not None
    session = engine._spark.newSession()
    session.sql(f"delete from delta.`{spec.path}` where k = 'far'")
    session.sql(f"update delta.`{spec.path}` set v = 1 where k = 'new'")
    assert not list(Path(spec.path).rglob("*.bin")) and marked(spec) < before
    relation = Relation("r", spec.path, spec.columns, "new", version=engine.head(spec.path) or 0)
    found = engine.query("select k from r order by k", (relation,)).to_pylist()
    assert [row["k"] for row in found] == ["a", "b", "c", "gone", "gone too", "new"]
