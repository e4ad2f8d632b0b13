"""MERGEs that mark replaced rows: remaining files, and the rows that every reader sees."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrun.engine_api import Append, Relation, TableSpec, Write
from sqlrun.engines.delta import (
    commit as delta_commit,
)
from sqlrun.engines.delta import (
    deletion_vectors,
    file_layout,
    log_entries,
    table_pool,
)
from sqlrun.engines.delta import (
    table as delta_table,
)
from sqlrun.engines.delta import (
    vacuum as delta_vacuum,
)
from sqlrun.engines.delta.table_check import Subject, Table
from sqlrun.engines.duckdb import merge as duckdb_merge
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import EngineError
from sqlrun.storage.factory import LOCAL
from tests.engines.test_own_writes import (
    feed,
    held,
    killed_before_commit,
    marked,
    merging,
    ours,
    rows,
    seen,
    spec_of,
    write,
)
from tests.support.delta_logs import commit_as_of

MANY = "select 'k' || i as k, i::int as v, 0 as n from range(100) r(i)"


@pytest.fixture(autouse=True, params=["in the log", "in files"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Mark rows in files of a hundred rows, as in files of many thousands, by vectors of both kinds."""
    monkeypatch.setattr(file_layout, "COPIED", 0)
    if request.param == "in files":
        monkeypatch.setattr(deletion_vectors, "INLINE", 0)
    return str(request.param)


def vector_files(spec: TableSpec) -> set[str]:
    return {file.name for file in Path(spec.path, deletion_vectors.FOLDER).glob("*")}


def vectors(spec: TableSpec, version: int) -> list[dict[str, Any]]:
    """Return the vectors that a commit adds."""
    added = [action["add"] for action in delta_table.actions(spec.path, version) if "add" in action]
    return [add["deletionVector"] for add in added if add.get("deletionVector")]


def made(folder: Path, kind: str = "int", partition_by: tuple[str, ...] = ()) -> tuple[DuckDBEngine, TableSpec]:
    engine, spec = DuckDBEngine(), spec_of(folder, kind, partition_by)
    engine.create(spec)
    write(engine, spec, 1, Append(MANY))
    return engine, spec


def files(spec: TableSpec, version: int | None = None) -> dict[str, int]:
    """Return a table's files with their number of live rows."""
    table = delta_table.open_table(spec.path, version)
    return {file["path"]: file["num_records"] for file in delta_table.files_at(table)}


@pytest.mark.slow
def test_replaced_rows_are_marked_in_their_file(tmp_path: Path) -> None:
    engine, spec = made(tmp_path)
    (large,) = files(spec)
    size = (tmp_path / "t" / large).stat().st_size

    after = rows("('k7', 70, 1, true)", "('k8', 80, 1, false)", "('new', 1, 1, true)")
    assert write(engine, spec, 2, merging(after)).receipt.rows_written == 3

    assert ours(spec.path, 2) and marked(spec.path, 2) == {large: 2}
    assert (tmp_path / "t" / large).stat().st_size == size
    actions = delta_table.actions(spec.path, 2)
    small = [file["path"] for file in log_entries.brought(actions)]
    assert files(spec) == {large: 98, small[0]: 2} and len(small) == 1
    stats = json.loads(next(a["add"]["stats"] for a in actions if "add" in a and a["add"]["path"] == large))
    assert stats["numRecords"] == 100 and stats["maxValues"]["v"] == 99 and stats["tightBounds"] is False
    found = seen(engine, spec)
    assert found == held(spec.path) and len(found) == 100
    assert {row["k"]: row["v"] for row in found if row["n"]} == {"k7": 70, "new": 1}
    assert len(feed(spec.path, 2)) == 4
    assert delta_table.rows_at(spec.path, 2) == 100 == delta_table.rows_at(spec.path, 1)


def test_the_newest_commit_gives_entries_without_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store is asked for none; one whose own commit is gone is still found."""
    engine, spec = made(tmp_path)
    (large,) = files(spec)
    for tick in range(2, 11):
        write(engine, spec, tick, merging(rows(f"('k{tick}', 0, {tick}, true)")))
    table_pool.settle()
    known = log_entries.of_files(spec.path, 10, {large})
    with monkeypatch.context() as patched:
        asked: list[str] = []
        real = LOCAL.stamp
        patched.setattr(LOCAL, "stamp", lambda path: asked.append(path) or real(path))
        assert log_entries.of_files(spec.path, 10, {large}) == known and known.keys() == {large}
        assert not [path for path in asked if "checkpoint" in path]
    Path(delta_table.entry_path(spec.path, 10)).unlink()
    again = log_entries.of_files(spec.path, 10, {large})
    assert again[large]["deletionVector"] == known[large]["deletionVector"]


@pytest.mark.slow
def test_marks_accumulate_and_removals_name_the_previous_ones(tmp_path: Path) -> None:
    """Through a checkpoint, which also has entries of files."""
    engine, spec = made(tmp_path)
    (large,) = files(spec)
    for tick in range(2, 15):
        write(engine, spec, tick, merging(rows(f"('k{tick}', 0, {tick}, true)")))
        assert marked(spec.path, tick)[large] == tick - 1
        assert seen(engine, spec) == held(spec.path)
    assert (tmp_path / "t" / "_delta_log" / f"{10:020d}.checkpoint.parquet").exists()
    gone = [a["remove"] for a in delta_table.actions(spec.path, 14) if "remove" in a and a["remove"]["path"] == large]
    assert [remove["deletionVector"]["cardinality"] for remove in gone] == [12]
    assert files(spec)[large] == 87
    # Files of one row each have been compacted on the way: none of their rows was affected.
    assert len(files(spec)) < 1 + 2 * file_layout.TIER


@pytest.mark.slow
@pytest.mark.parametrize("most_dead", [0.3, 0.0])
def test_rows_of_large_files_are_deleted_wherever_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_dead: float
) -> None:
    """Deleted rows are looked up in blocks of 65,536 rows, some of which have none."""
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int")
    engine.create(spec)
    for tick, first in ((1, 0), (2, 200_000)):
        write(
            engine,
            spec,
            tick,
            Append(f"select 'k' || i as k, i::int as v, 0 as n from range({first}, {first} + 200000) r(i)"),
        )
    paths = list(files(spec))
    held_at = duckdb.execute(
        "select k, parse_filename(filename), file_row_number from read_parquet($1)",
        [[f"{spec.path}/{path}" for path in paths]],
    ).fetchall()
    first = paths[0].rpartition("/")[2]
    near = {0, 1, 65_535, 65_536, 65_537, 196_607, 196_608, 199_999}
    gone = {k for k, file, number in held_at if number in near and (file == first or number < 65_536)}
    assert len(gone) == 11
    left = {k for k, _, _ in held_at}
    for tick in (3, 4):
        monkeypatch.setattr(file_layout, "MOST_DEAD", most_dead if tick == 4 else 0.3)
        now = sorted(gone)[tick - 3 :: 2]
        write(engine, spec, tick, merging(rows(*(f"('{k}', 0, {tick}, false)" for k in now))))
        left -= set(now)
        assert {row["k"] for row in seen(engine, spec)} == left
    assert {row["k"] for row in held(spec.path)} == left
    assert set(files(spec)) & set(paths) == (set(paths) if most_dead else set())


@pytest.mark.slow
def test_a_file_with_many_deleted_rows_is_rewritten(tmp_path: Path) -> None:
    engine, spec = made(tmp_path)
    (large,) = files(spec)
    write(engine, spec, 2, merging("select 'k' || i as k, 1 as v, 1 as n, true as stays from range(20) r(i)"))
    write(engine, spec, 3, merging("select 'k' || i as k, 1 as v, 2 as n, true as stays from range(20, 40) r(i)"))

    assert large in marked(spec.path, 2) and large not in files(spec)
    removed = [a["remove"] for a in delta_table.actions(spec.path, 3) if "remove" in a]
    assert {r["path"]: r.get("deletionVector", {}).get("cardinality") for r in removed}[large] == 20
    assert seen(engine, spec) == held(spec.path) and sum(files(spec).values()) == 100
    assert not deletion_vectors.deleted(DeltaTable(spec.path))


@pytest.mark.slow
def test_every_version_has_its_own_rows(tmp_path: Path) -> None:
    """Read, restored, compacted and vacuumed: a file that is added again with other marks is the same file."""
    engine, spec = made(tmp_path)
    for tick in (2, 3, 4):
        write(engine, spec, tick, merging(rows(f"('k{tick}', 0, {tick}, true)", f"('k{tick + 50}', 0, 0, false)")))
    counts = [delta_table.rows_at(spec.path, version) for version in (1, 2, 3, 4)]
    assert counts == [100, 99, 98, 97]

    engine.restore(spec.path, 3)
    assert len(seen(engine, spec)) == 98 and seen(engine, spec) == held(spec.path)
    write(engine, spec, 6, merging(rows("('k9', 0, 9, true)")))
    assert len(marked(spec.path, 6)) == 1 and ours(spec.path, 6)
    engine.restore(spec.path, 1)
    assert len(held(spec.path)) == 100
    engine.restore(spec.path, 6)
    before = seen(engine, spec)

    delta_vacuum.vacuum(spec.path, timedelta(0))
    assert seen(engine, spec) == before == held(spec.path)
    delta_vacuum.compact(spec.path)
    delta_vacuum.vacuum(spec.path, timedelta(0))
    assert seen(engine, spec) == before == held(spec.path)
    write(engine, spec, 9, merging(rows("('k9', 0, 10, true)")))
    assert len(held(spec.path)) == 98


@pytest.mark.slow
def test_a_file_marked_long_ago_stays_for_later_versions(tmp_path: Path) -> None:
    """By the log it was removed when it was marked; its final removal is recent, and an older version still has it."""
    engine, spec = made(tmp_path)
    (large,) = files(spec)
    write(engine, spec, 2, merging(rows("('k7', 70, 1, true)")))
    write(engine, spec, 3, merging("select 'k' || i as k, 1 as v, 1 as n, true as stays from range(40, 90) r(i)"))
    assert large in marked(spec.path, 2) and large not in files(spec)
    for version in (1, 2):
        commit_as_of(Path(spec.path) / "_delta_log" / f"{version:020d}.json", 1_700_000_000_000)

    delta_vacuum.vacuum(spec.path, timedelta(hours=1))
    assert (tmp_path / "t" / large).exists()
    relation = Relation("r", spec.path, spec.columns, "new", version=2)
    assert engine.query("select * from r", (relation,)).num_rows == 100


@pytest.mark.slow
def test_rows_that_cannot_be_marked_are_rewritten(tmp_path: Path) -> None:
    """A table made before marks existed, and a file with an unknown number of rows."""
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int", (), "old")
    delta_table.create(spec)
    write(engine, spec, 1, Append(MANY))
    write(engine, spec, 2, merging(rows("('k7', 70, 1, true)")))
    assert ours(spec.path, 2) and not marked(spec.path, 2) and len(files(spec)) == 1

    engine, spec = made(tmp_path)
    log = Path(spec.path) / "_delta_log" / f"{1:020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    write(engine, spec, 2, merging(rows("('k7', 70, 1, true)")))
    assert ours(spec.path, 2) and not marked(spec.path, 2) and list(files(spec).values()) == [100]


@pytest.mark.slow
def test_two_changes_of_one_row_are_refused_where_it_was_replaced_before(tmp_path: Path) -> None:
    engine, spec = made(tmp_path)
    write(engine, spec, 2, merging(rows("('k7', 70, 1, true)")))

    with pytest.raises(EngineError, match="several source rows"):
        write(engine, spec, 3, merging(rows("('k7', 71, 2, true)", "('k7', 72, 2, true)")))
    # The deleted row of the same key is no second match.
    write(engine, spec, 3, merging(rows("('k7', 73, 3, true)")))
    assert [row["v"] for row in held(spec.path) if row["k"] == "k7"] == [73]


@pytest.mark.slow
def test_a_merge_by_delta_rs_respects_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, spec = made(tmp_path)
    write(engine, spec, 2, merging(rows("('k7', 70, 1, true)", "('k8', 0, 0, false)")))
    monkeypatch.setattr(delta_commit, "ours", lambda *_: False)
    write(engine, spec, 3, merging(rows("('k7', 71, 2, true)", "('k9', 0, 0, false)")))
    monkeypatch.undo()

    assert not ours(spec.path, 3) and len(held(spec.path)) == 98
    assert seen(engine, spec) == held(spec.path)
    assert [row["v"] for row in held(spec.path) if row["k"] == "k7"] == [71]


@pytest.mark.slow
def test_a_missing_log_entry_leaves_the_merge_to_delta_rs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, spec = made(tmp_path)
    monkeypatch.setattr(log_entries, "of_files", lambda *_: {})
    write(engine, spec, 2, merging(rows("('k7', 70, 1, true)")))

    assert not ours(spec.path, 2)
    assert [row["v"] for row in held(spec.path) if row["k"] == "k7"] == [70]


@pytest.mark.slow
def test_marks_of_another_writer_are_read_and_named(tmp_path: Path) -> None:
    """delta-rs reads vectors of any kind; a removal has to repeat their own description."""
    engine, spec = made(tmp_path)
    write(engine, spec, 2, merging(rows("('k7', 70, 1, true)")))
    table = DeltaTable(spec.path)
    assert {len(gone) for gone in deletion_vectors.deleted(table).values()} == {1}
    assert {file: gone.to_pylist() for file, gone in deletion_vectors._read(table).items()} == {
        file: gone.to_pylist() for file, gone in deletion_vectors.deleted(table).items()
    }


@pytest.mark.slow
def test_cached_marks_are_those_of_the_version(tmp_path: Path) -> None:
    """The writer caches its own marks; a table opened again reads the same ones from the log."""
    engine, spec = made(tmp_path)
    for tick in range(2, 6):
        write(engine, spec, tick, merging(rows(f"('k{tick}', 0, {tick}, true)", f"('k{tick - 1}', 0, 0, false)")))
        noted = deletion_vectors.deleted(delta_table.open_table(spec.path, tick))
        logged = deletion_vectors.deleted(DeltaTable(spec.path))
        assert {f: gone.to_pylist() for f, gone in noted.items()} == {f: gone.to_pylist() for f, gone in logged.items()}


@pytest.mark.slow
def test_a_kill_before_the_commit_leaves_marks_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, spec = made(tmp_path)
    write(engine, spec, 2, merging(rows("('k7', 70, 1, true)")))

    with killed_before_commit(monkeypatch):
        write(engine, spec, 3, merging(rows("('k8', 80, 2, true)")))
    assert [row["v"] for row in seen(engine, spec) if row["k"] == "k8"] == [8]
    write(engine, spec, 3, merging(rows("('k8', 81, 3, true)")))
    assert [row["v"] for row in held(spec.path) if row["k"] == "k8"] == [81]


def test_a_restored_row_is_detected_before_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rewritten file whose marks were ignored would restore deleted rows."""
    engine, spec = made(tmp_path)
    write(engine, spec, 2, merging(rows("('k7', 70, 1, true)")))
    monkeypatch.setattr(file_layout, "MOST_DEAD", 0.0)
    whole = duckdb_merge.rows
    monkeypatch.setattr(duckdb_merge, "rows", lambda s, w, f, gone, *rest, **more: whole(s, w, f, {}, *rest, **more))

    with pytest.raises(EngineError, match="were to be; nothing is committed"):
        write(engine, spec, 3, merging(rows("('k8', 80, 2, true)")))
    assert len(held(spec.path)) == 100


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(0, 200_000), min_size=1, max_size=200), st.integers(0, 190_000), st.integers(0, 9000))
@pytest.mark.slow
def test_any_set_of_rows_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, some: set[int], at: int, n: int
) -> None:
    """By delta-rs, another implementation: a few numbers, and runs of many."""
    numbers = sorted(some | set(range(at, at + n)))
    folder = tmp_path_factory.mktemp("read")
    spec = spec_of(folder, "int")
    DuckDBEngine().create(spec)
    entry = {"path": "a.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
    stats = {"stats": '{"numRecords":200001}', "deletionVector": deletion_vectors.descriptor(numbers)}
    log = Path(spec.path) / "_delta_log" / f"{1:020d}.json"
    log.write_text(json.dumps({"add": entry | stats}) + "\n")

    (found,) = deletion_vectors.deleted(DeltaTable(spec.path)).values()
    assert found.to_pylist() == numbers and found.type == pa.int64()


@pytest.mark.slow
def test_a_commit_has_one_file_of_vectors(tmp_path: Path, small: str) -> None:
    engine, spec = made(tmp_path, "string", ("v",))
    write(engine, spec, 2, Append("select 'm' || i as k, 'b' as v, 0 as n from range(100) r(i)"))
    write(engine, spec, 3, Append("select 'n' || i as k, 'c' as v, 0 as n from range(100) r(i)"))
    write(engine, spec, 4, merging(rows("('m7', 'b', 1, true)", "('n8', 'c', 1, true)", "('n9', 'c', 1, true)")))

    found = vectors(spec, 4)
    assert sorted(each["cardinality"] for each in found) == [1, 2]
    files = {deletion_vectors.file_of(each) for each in found}
    if small == "in files":
        [file] = files
        assert vector_files(spec) == {Path(file).name}
        assert len({each["offset"] for each in found}) == 2
    else:
        assert files == {""} and vector_files(spec) == set()
    assert [deletion_vectors.fault(spec.path, each) for each in found] == ["", ""]
    assert seen(engine, spec) == held(spec.path)


@pytest.mark.slow
def test_a_failed_merge_leaves_no_file_of_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, spec = made(tmp_path)

    def refuses() -> None:
        raise EngineError("not now")

    with pytest.raises(EngineError, match="not now"):
        engine.write(Write(spec, 1, 2, "app", (), merging(rows("('k7', 70, 1, true)")), {}, may_commit=refuses))
    assert vector_files(spec) == set()


@pytest.mark.slow
def test_vectors_live_as_long_as_versions_that_name_them(tmp_path: Path, small: str) -> None:
    """Those of retained versions, of versions that left lately, and those that are about to be committed stay."""
    engine, spec = made(tmp_path)
    for tick in range(2, 7):
        write(engine, spec, tick, merging(rows(f"('k{tick}', 0, {tick}, true)")))
    now = datetime.now(timezone.utc)
    there = vector_files(spec)
    assert len(there) == (5 if small == "in files" else 0)

    assert delta_vacuum.drop_vectors(spec.path, 4, now - timedelta(hours=1)) == 0
    later = now + timedelta(minutes=1)
    assert delta_vacuum.drop_vectors(spec.path, 4, later) == (2 if small == "in files" else 0)
    for version in (4, 5, 6):
        assert delta_table.rows_at(spec.path, version) == 100
        relation = Relation("r", spec.path, spec.columns, "new", version=version)
        assert DuckDBEngine().query("select * from r", (relation,)).num_rows == 100
        assert {Path(deletion_vectors.file_of(each)).name for each in vectors(spec, version)} - {""} <= there
    delta_vacuum.vacuum(spec.path, timedelta(0))
    assert seen(engine, spec) == held(spec.path)
    assert delta_vacuum.drop_vectors(spec.path, 6, later) == (2 if small == "in files" else 0)
    DeltaTable(spec.path).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert seen(engine, spec) == held(spec.path), "a full vacuum of another tool deletes vectors"


@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
@pytest.mark.slow
def test_a_damaged_vector_is_found(tmp_path: Path, small: str, damage: str) -> None:
    """In the published version; a newer one is rolled back without its vectors."""
    if small != "in files":
        pytest.skip("the log has checksums of its own")
    engine, spec = made(tmp_path)
    write(engine, spec, 2, merging(rows("('k7', 70, 1, true)")))
    [name] = vector_files(spec)
    file = Path(spec.path, deletion_vectors.FOLDER, name)
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(content[:-9] if damage == "cut" else content[:-5] + bytes([content[-5] ^ 1]) + content[-4:])

    unpublished = Table(str(tmp_path), Subject("t", "t", shown=1, kept=1), deep=False).examine()
    assert unpublished.findings == []
    for deep in (False, True):
        published = Table(str(tmp_path), Subject("t", "t", shown=2, kept=2), deep=deep).examine()
        [fault] = {(finding.file, finding.what) for finding in published.refused}
        assert fault[0] == f"t/{deletion_vectors.FOLDER}/{name}"
        assert fault[1] in ("is missing", "is incomplete", "doesn't match its checksum")


@pytest.mark.slow
def test_vectors_need_a_table_property(tmp_path: Path) -> None:
    engine, spec = made(tmp_path)
    DeltaTable(spec.path).alter.set_table_properties({"delta.enableDeletionVectors": "false"})
    assert not delta_commit.marks(DeltaTable(spec.path))
    write(engine, spec, 2, merging(rows("('k7', 70, 1, true)")))
    assert not marked(spec.path, 3) and len(held(spec.path)) == 100
