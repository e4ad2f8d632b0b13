"""The Spark engine does to real Delta tables what the protocol says, and refuses what would lose or double rows."""

from __future__ import annotations

import json
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from sqlrun.engine_api import (
    Append,
    Landing,
    Load,
    Merge,
    Overwrite,
    Prune,
    Relation,
    Replace,
    Statement,
    StoredColumn,
    TableSpec,
    Write,
    Written,
)
from sqlrun.engines.delta import features as delta_features
from sqlrun.engines.delta import foreign_commits
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.spark.engine import SparkEngine, table_name
from sqlrun.errors import DataError, EngineError
from sqlrun.sources.folder import Folder
from sqlrun.transpile.writer import string

# py4j leaves the sockets of finished threads to the garbage collector.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

COLUMNS = (StoredColumn("k", "string"), StoredColumn("g", "int"), StoredColumn("v", "bigint"))
UPDATE = (("v", "t.v + s.v"),)
INSERT = (("k", "s.k"), ("g", "s.g"), ("v", "s.v"))


def table(folder: Path, name: str = "t", partition_by: tuple[str, ...] = ()) -> TableSpec:
    return TableSpec(name, str(folder / name), COLUMNS, partition_by)


def rows_of(*rows: tuple[str | None, int | None, int]) -> str:
    def text(value: str | int | None) -> str:
        return "null" if value is None else string(value, "spark") if isinstance(value, str) else str(value)

    values = ", ".join(f"({text(k)}, {text(g)}, {v})" for k, g, v in rows)
    selected = "select cast(k as string) as k, cast(g as int) as g, cast(v as bigint) as v"
    return f"{selected} from values {values} as x(k, g, v)"


def write(engine: SparkEngine, spec: TableSpec, tick: int, statement: Statement, **more: Any) -> Written:
    base = more.pop("base", engine.head(spec.path))
    return engine.write(Write(spec, base, tick, f"app.{spec.name}", more.pop("relations", ()), statement, more))


def added(engine: SparkEngine, spec: TableSpec, *rows: tuple[str | None, int | None, int]) -> Written:
    """Fill a new table as tick 1."""
    engine.create(spec)
    return write(engine, spec, 1, Append(rows_of(*rows)))


def content(
    engine: SparkEngine, spec: TableSpec, version: int | None = None, order: str = "k nulls first, g nulls first, v"
) -> list[tuple[Any, ...]]:
    at = engine.head(spec.path) if version is None else version
    assert at is not None
    relation = Relation("r", spec.path, spec.columns, "new", version=at)
    found = engine.query(f"select * from r order by {order}", (relation,))
    return [tuple(row.values()) for row in found.to_pylist()]


def merge(delta: str, **more: Any) -> Merge:
    given = {"key": ("k", "g"), "null_safe": ("g",), "update": UPDATE, "insert": INSERT, **more}
    return Merge(delta, **given)


def test_create_is_version_zero_and_is_done_once(engine: SparkEngine, tmp_path: Path) -> None:
    spec = table(tmp_path)
    assert engine.head(spec.path) is None
    engine.create(spec)
    engine.create(spec)
    assert engine.head(spec.path) == 0
    assert content(engine, spec) == []


def test_append_replace_and_load_are_one_commit_each(engine: SparkEngine, tmp_path: Path) -> None:
    spec = table(tmp_path)
    assert added(engine, spec, ("a", 1, 1)).version == 1
    assert write(engine, spec, 2, Append(rows_of(("b", None, 2)))).version == 2
    assert content(engine, spec) == [("a", 1, 1), ("b", None, 2)]
    assert write(engine, spec, 3, Append(rows_of(("c", 1, 1)) + " where false")).version == 2
    assert write(engine, spec, 4, Replace(rows_of(("z", 9, 9)))).version == 3
    assert content(engine, spec) == [("z", 9, 9)]
    assert write(engine, spec, 5, Load((("y", None, 8),))).version == 4
    assert content(engine, spec) == [("y", None, 8)]
    assert content(engine, spec, 2) == [("a", 1, 1), ("b", None, 2)]


def test_merge_updates_deletes_and_inserts_with_null_keys(engine: SparkEngine, tmp_path: Path) -> None:
    spec = table(tmp_path)
    added(engine, spec, ("a", 1, 10), ("a", None, 20), ("gone", 1, 5), ("still", 1, 7))
    delta = rows_of(("a", 1, 1), ("a", None, 2), ("gone", 1, -5), ("new", None, 3), ("never", 1, 0))
    done = write(engine, spec, 2, merge(delta, delete_when="t.v + s.v = 0", insert_when="s.v <> 0"), note="hello")
    assert done.version == 2
    assert content(engine, spec) == [("a", None, 22), ("a", 1, 11), ("new", None, 3), ("still", 1, 7)]
    assert done.receipt.commits == 1
    info = next(a["commitInfo"] for a in delta_table.actions(spec.path, 2) if "commitInfo" in a)
    assert json.loads(info["userMetadata"]) == {"note": "hello", "sqlrun.tick": "2"}


def test_merge_into_a_table_that_never_had_rows_inserts(engine: SparkEngine, tmp_path: Path) -> None:
    spec = table(tmp_path)
    engine.create(spec)
    delta = rows_of(("a", 1, 1), ("b", 1, 0))
    assert write(engine, spec, 1, merge(delta, insert_when="s.v <> 0")).version == 1
    assert content(engine, spec) == [("a", 1, 1)]


def test_merge_without_a_delta_makes_no_commit(engine: SparkEngine, tmp_path: Path) -> None:
    spec = table(tmp_path)
    added(engine, spec, ("a", 1, 1))
    done = write(engine, spec, 2, merge(rows_of(("a", 1, 1)) + " where false"))
    assert (done.version, done.receipt.commits) == (1, 0)


def test_merge_that_changes_nothing_keeps_the_rows(engine: SparkEngine, tmp_path: Path) -> None:
    spec = table(tmp_path)
    added(engine, spec, ("a", 1, 1))
    done = write(
        engine, spec, 2, merge(rows_of(("a", 1, 0), ("b", 1, 0)), update_when="s.v <> 0", insert_when="s.v <> 0")
    )
    assert done.version in (1, 2)
    assert content(engine, spec) == [("a", 1, 1)]


@pytest.mark.parametrize("null", [False, True])
def test_merge_prunes_by_partition_and_misses_no_row(engine: SparkEngine, tmp_path: Path, null: bool) -> None:
    spec = table(tmp_path, partition_by=("g",))
    none = None if null else 3
    added(engine, spec, ("a", 1, 1), ("b", 2, 1), ("c", none, 1))
    statement = merge(rows_of(("a", 1, 5), ("c", none, 5)), prune=Prune(partitions=("g",)))
    write(engine, spec, 2, statement)
    assert content(engine, spec) == [("a", 1, 6), ("b", 2, 1), ("c", none, 6)]
    removed = [a["remove"]["path"] for a in delta_table.actions(spec.path, 2) if "remove" in a]
    assert removed and not any("g=2" in path for path in removed)


def test_merge_prunes_by_ranges_and_misses_no_row(engine: SparkEngine, tmp_path: Path) -> None:
    spec = table(tmp_path)
    added(engine, spec, ("a'1", 1, 1), ("b\\", 2, 1), ("z", 3, 1))
    statement = merge(rows_of(("a'1", 1, 5), ("b\\", 2, 5), ("y", 3, 5)), prune=Prune(ranges=(("k", "g"),)))
    write(engine, spec, 2, statement)
    assert content(engine, spec) == [("a'1", 1, 6), ("b\\", 2, 6), ("y", 3, 5), ("z", 3, 1)]


def test_relations_filter_by_columns_that_they_do_not_show(engine: SparkEngine, tmp_path: Path) -> None:
    spec = table(tmp_path)
    added(engine, spec, ("a", 1, 1), ("b", 2, 2))
    relation = Relation("r", spec.path, COLUMNS[:1], "old", version=1, where="v = 2 and g = 2")
    assert engine.query("select * from r", (relation,)).to_pylist() == [{"k": "b"}]


def test_changes_carry_weights_and_skip_unlisted_commits(engine: SparkEngine, tmp_path: Path) -> None:
    spec = table(tmp_path)
    added(engine, spec, ("a", 1, 1), ("b", 1, 2))
    write(engine, spec, 2, merge(rows_of(("a", 1, 4), ("b", 1, -2), ("c", 1, 3)), delete_when="t.v + s.v = 0"))
    write(engine, spec, 3, Append(rows_of(("skipped", 1, 1))))
    write(engine, spec, 4, Append(rows_of(("d", 1, 1))))

    def changes(*commits: int) -> list[tuple[Any, ...]]:
        relation = Relation("r", spec.path, (COLUMNS[0], COLUMNS[2]), "changes", commits=commits, where="g = 1")
        found = engine.query("select * from r order by k, v", (relation,))
        assert found.schema.names == ["k", "v", "_weight"] and str(found.schema.field("_weight").type) == "int64"
        return [tuple(row.values()) for row in found.to_pylist()]

    merged = [("a", 1, -1), ("a", 5, 1), ("b", 2, -1), ("c", 3, 1)]
    assert changes(2, 4) == [*merged, ("d", 1, 1)]
    assert changes() == []


def test_a_restored_table_takes_a_new_tick_and_refuses_a_used_one(engine: SparkEngine, tmp_path: Path) -> None:
    spec = table(tmp_path)
    added(engine, spec, ("a", 1, 1))
    write(engine, spec, 2, merge(rows_of(("a", 1, 1))))
    engine.restore(spec.path, 1)
    assert engine.head(spec.path) == 3
    assert content(engine, spec) == [("a", 1, 1)]
    with pytest.raises(EngineError, match="tick 2 was already written"):
        write(engine, spec, 2, merge(rows_of(("a", 1, 1))))
    assert write(engine, spec, 3, merge(rows_of(("a", 1, 1)))).version == 4
    assert content(engine, spec) == [("a", 1, 2)]
    assert delta_table.effective_commits(spec.path, 1, 4) == (4,)


@pytest.mark.parametrize(
    "statement", [Append(rows_of(("b", 1, 1))), Replace(rows_of(("b", 1, 1))), Load((("b", 1, 1),))]
)
def test_a_used_tick_is_refused_for_every_statement(engine: SparkEngine, tmp_path: Path, statement: Statement) -> None:
    spec = table(tmp_path)
    added(engine, spec, ("a", 1, 1))
    with pytest.raises(EngineError, match="already written"):
        write(engine, spec, 1, statement)
    assert content(engine, spec) == [("a", 1, 1)]


def test_partitions_are_replaced_whole(engine: SparkEngine, tmp_path: Path) -> None:
    """Touched partitions hold what the query gives, NULL's too; one without rows is gone, the others stay."""
    spec = table(tmp_path, partition_by=("g",))
    added(engine, spec, ("a", 1, 1), ("b", 1, 2), ("c", 2, 3), ("d", 3, 4), ("e", None, 5))
    partitions = "select * from values (1), (3), (cast(null as int)) as x(g)"
    write(engine, spec, 2, Overwrite(rows_of(("a", 1, 9), ("a", 1, 9), ("f", None, 6)), partitions))
    assert content(engine, spec) == [("a", 1, 9), ("a", 1, 9), ("c", 2, 3), ("f", None, 6)]
    nothing = write(engine, spec, 3, Overwrite(rows_of(("a", 1, 1)) + " where false", partitions + " where g > 9"))
    assert (nothing.version, nothing.receipt.commits) == (2, 0)
    with pytest.raises(EngineError):
        write(engine, spec, 4, Overwrite(rows_of(("a", 7, 1)), partitions))


def test_another_writer_is_noticed(engine: SparkEngine, tmp_path: Path) -> None:
    spec = table(tmp_path)
    added(engine, spec, ("a", 1, 1))
    with pytest.raises(EngineError, match="another writer"):
        write(engine, spec, 2, merge(rows_of(("a", 1, 1))), base=0)


def test_writes_of_two_tables_run_beside_each_other(engine: SparkEngine, tmp_path: Path) -> None:
    specs = [table(tmp_path, name) for name in ("one", "two")]
    for spec in specs:
        added(engine, spec, ("a", 1, 1))
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda spec: write(engine, spec, 2, merge(rows_of(("a", 1, len(spec.name))))), specs))
    assert [d.version for d in done] == [2, 2]
    for spec in specs:
        assert content(engine, spec) == [("a", 1, 4)]
        ids = [a["txn"]["appId"] for a in delta_table.actions(spec.path, 2) if "txn" in a]
        assert ids == [f"app.{spec.name}"]


def test_a_transaction_id_does_not_leak_to_the_next_write(engine: SparkEngine, tmp_path: Path) -> None:
    one, two = table(tmp_path, "one"), table(tmp_path, "two")
    added(engine, one, ("a", 1, 1))
    with pytest.raises(EngineError):
        write(engine, one, 2, Append("select no_such_column"))
    added(engine, two, ("a", 1, 1))
    assert [a["txn"]["appId"] for a in delta_table.actions(two.path, 1) if "txn" in a] == ["app.two"]


def test_a_restore_runs_on_spark_only_if_delta_rs_cannot_write_the_table(engine: SparkEngine, tmp_path: Path) -> None:
    spec = table(tmp_path)
    added(engine, spec, ("a", 1, 1))
    write(engine, spec, 2, merge(rows_of(("a", 1, 1))))
    with mock.patch.object(engine, "_session", side_effect=AssertionError("no job is needed")):
        engine.restore(spec.path, 1, 2)
    assert content(engine, spec) == [("a", 1, 1)]

    with engine._session() as session:
        session.sql(f"alter table {table_name(spec.path)} set tblproperties ('delta.enableRowTracking' = 'true')")
    changed = engine.head(spec.path)
    assert changed is not None and delta_features.foreign(delta_table.open_table(spec.path))
    with pytest.raises(EngineError, match="another writer changed"):
        engine.restore(spec.path, 2, changed - 1)
    engine.restore(spec.path, 2, changed)
    assert content(engine, spec) == [("a", 1, 2)]
    commits = [delta_table.actions(spec.path, version) for version in (3, changed + 1)]
    assert [foreign_commits.restored(actions) for actions in commits] == [1, 2]
    assert all(map(foreign_commits.is_marked, commits))


@pytest.mark.parametrize("name", ["a `quoted` 'folder'", "[ab] {c,d}", "100% of it"])
def test_paths_and_names_are_quoted(engine: SparkEngine, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    columns = (StoredColumn("order-by", "string"), StoredColumn("n-n", "bigint"))
    spec = TableSpec("odd", str(folder / "odd table"), columns)
    engine.create(spec)
    write(engine, spec, 1, Append("select 'a' as `order-by`, 1L as `n-n`"))
    update, insert = (("n-n", "s.`n-n`"),), (("order-by", "s.`order-by`"), ("n-n", "s.`n-n`"))
    delta = "select 'a' as `order-by`, 5L as `n-n`"
    write(engine, spec, 2, Merge(delta, ("order-by",), (), update, insert))
    relation = Relation("odd name", spec.path, columns, "new", version=2)
    assert engine.query("select `n-n` as n from `odd name`", (relation,)).to_pylist() == [{"n": 5}]
    engine.restore(spec.path, 1)
    assert engine.head(spec.path) == 3


def test_times_come_back_as_utc_microseconds(engine: SparkEngine) -> None:
    found = engine.query("select timestamp '2026-01-01 12:00:00.000001Z' as at", ())
    assert str(found.schema.field("at").type) == "timestamp[us, tz=UTC]"
    assert found.to_pylist() == [{"at": datetime(2026, 1, 1, 12, 0, 0, 1, timezone.utc)}]


@pytest.mark.parametrize("value", ["struct(1 as q)", "array(struct(1 as q))", "struct(struct(1 as q) as n)"])
def test_a_struct_that_is_null_comes_back(engine: SparkEngine, value: str) -> None:
    """Though none of its fields ever is."""
    table = engine.query(f"select array(case when k = 1 then {value} end) as x from values (1), (2) as t(k)", ())

    assert sum(row["x"] == [None] for row in table.to_pylist()) == 1


def test_a_merge_takes_a_struct_that_is_null(engine: SparkEngine, tmp_path: Path) -> None:
    """Of fields that never are."""
    spec = TableSpec("t", str(tmp_path / "t"), (StoredColumn("k", "int"), StoredColumn("v", "struct<q:int>")), ())
    delta = "select k, case when k = 1 then struct(1 as q) end as v from values (1), (2) as x(k)"
    engine.create(spec)
    update, insert = (("v", "s.v"),), (("k", "s.k"), ("v", "s.v"))
    write(engine, spec, 1, Merge(delta, ("k",), (), update, insert))

    assert content(engine, spec, order="k") == [(1, {"q": 1}), (2, None)]


def test_errors_are_short_and_say_where(engine: SparkEngine, tmp_path: Path) -> None:
    spec = table(tmp_path)
    engine.create(spec)
    with pytest.raises(EngineError) as caught:
        write(engine, spec, 1, Append("select 'a' as k, cast('x' as int) as g, 1L as v"))
    first = str(caught.value).splitlines()[0]
    assert "CAST_INVALID_INPUT" in first and len(first) < 600
    assert "\tat " not in str(caught.value)
    assert caught.value.model == "t" and "cast('x' as int)" in caught.value.statement
    assert isinstance(caught.value, DataError) and caught.value.expression == "cast('x' as int)"
    with pytest.raises(EngineError) as other:
        engine.query("select * from nowhere", ())
    assert not isinstance(other.value, DataError)


# ---------------------------------------------------------------------------------------------------------- landing

LANDED = (StoredColumn("n", "int"), StoredColumn("file", "string"))
QUERY = "select cast(get_json_object(value, '$.n') as int) as n, file from lines"


def landing(folder: Path, name: str = "landed", checkpoint: str = "checkpoint") -> Landing:
    source = folder / "in"
    source.mkdir(exist_ok=True)
    spec = TableSpec(name, str(folder / name), LANDED)
    return Landing(spec, Folder(str(source)), str(folder / checkpoint), QUERY, "app", {})


def landed(engine: SparkEngine, given: Landing) -> list[tuple[Any, ...]]:
    version = engine.head(given.table.path)
    assert version is not None
    relation = Relation("r", given.table.path, LANDED, "new", version=version)
    return sorted(
        tuple(row.values()) for row in engine.query("select * from r where n is not null", (relation,)).to_pylist()
    )


def test_files_land_once_and_broken_ones_do_not_stop_them(engine: SparkEngine, tmp_path: Path) -> None:
    given = landing(tmp_path)
    engine.create(given.table)
    source = Path(given.source.location)
    (source / "a b+c%41.jsonl").write_text('{"n": 1}\n{"n": "x"}\n{broken\n')
    (source / ".hidden.jsonl").write_text('{"n": 99}\n')
    (source / "_busy.jsonl").write_text('{"n": 98}\n')
    (source / "note.txt").write_text('{"n": 97}\n')
    first = engine.land(given)
    assert first.version >= 1
    assert landed(engine, given) == [(1, "a b+c%41.jsonl")]
    assert engine.land(given).version == first.version
    (source / "b.json").write_text('{"n": 2}\n')
    assert engine.land(given).version > first.version
    assert landed(engine, given) == [(1, "a b+c%41.jsonl"), (2, "b.json")]


def test_a_lost_or_foreign_checkpoint_is_refused(engine: SparkEngine, tmp_path: Path) -> None:
    given = landing(tmp_path)
    engine.create(given.table)
    (Path(given.source.location) / "a.json").write_text('{"n": 1}\n')
    engine.land(given)
    other = landing(tmp_path, "other", "elsewhere")
    engine.create(other.table)
    engine.land(other)
    with pytest.raises(EngineError, match="belongs to another table"):
        engine.land(Landing(given.table, given.source, other.checkpoint, QUERY, "app"))
    (Path(given.table.path) / "_sqlrun_checkpoint").unlink()
    with pytest.raises(EngineError, match="no rows of its checkpoint"):
        engine.land(Landing(given.table, given.source, other.checkpoint, QUERY, "app"))
    shutil.rmtree(given.checkpoint)
    with pytest.raises(EngineError, match="is missing"):
        engine.land(given)
    assert landed(engine, given) == [(1, "a.json")]


def test_an_old_checkpoint_beside_a_new_table_is_refused(engine: SparkEngine, tmp_path: Path) -> None:
    given = landing(tmp_path)
    engine.create(given.table)
    (Path(given.source.location) / "a.json").write_text('{"n": 1}\n')
    engine.land(given)
    shutil.rmtree(given.table.path)
    engine.create(given.table)
    with pytest.raises(EngineError, match="checkpoint"):
        engine.land(given)


def test_starting_spark_leaves_the_handler_of_interrupts_alone(engine: SparkEngine) -> None:
    """PySpark puts its own there, which would cut a tick short."""
    assert engine.name == "spark"
    # A shell's background jobs are born deaf to SIGINT.
    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)
