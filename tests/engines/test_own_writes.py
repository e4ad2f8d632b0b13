"""Merges that DuckDB writes and sqlrun commits: the rows that every reader of the tables sees."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from sqlrun.engine_api import Append, Engine, Merge, Relation, Statement, StoredColumn, TableSpec, Write, Written
from sqlrun.engines.delta import (
    commit as delta_commit,
)
from sqlrun.engines.delta import (
    create as delta_create,
)
from sqlrun.engines.delta import (
    stats as delta_stats,
)
from sqlrun.engines.delta import (
    table as delta_table,
)
from sqlrun.engines.delta import (
    vacuum as delta_vacuum,
)
from sqlrun.engines.duckdb import copy as duckdb_copy
from sqlrun.engines.duckdb import merge as duckdb_merge
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import EngineError, LockedError

# The differences of some of them have more than 32 bits.
WIDE = ("1", "-2147483648", "2147483647", "-1")

# Two values of each type that a contract allows, as DuckDB writes it: an ordinary one, and an extreme one.
VALUES = {
    "string": ("'a b/c%:ü''\"'", "repeat('x', 70000)"),
    "int": ("1", "-2147483648"),
    "bigint": ("1", "9223372036854775807"),
    "smallint": ("1", "-32768"),
    "tinyint": ("1", "-128"),
    "double": ("1.5", "'nan'::double"),
    "float": ("0.1::float", "'-inf'::float"),
    "boolean": ("true", "false"),
    "decimal(18,2)": ("1.23", "-9999999999999999.99"),
    "decimal(38,10)": ("1.0000000001", "9999999999999999999999999999.9999999999"),
    "date": ("date '2026-01-02'", "date '1901-02-03'"),
    "timestamp": ("timestamptz '2026-01-02 03:04:05.678901+00'", "timestamptz '1901-02-03 04:05:06.000001+00'"),
    "timestamp_ntz": ("timestamp '2026-01-02 03:04:05.678901'", "timestamp '1901-02-03 04:05:06.000001'"),
    "binary": ("'\\x00\\xFF'::blob", "''::blob"),
    "array<int>": ("[1, null]", "[]"),
    "map<string,decimal(10,2)>": ("map {'k': 1.25}", "map {'k': null}"),
    "struct<a:int,b:array<struct<c:string>>>": ("{'a': 1, 'b': [{'c': 'x'}]}", "{'a': null, 'b': null}"),
}


def columns(kind: str) -> tuple[StoredColumn, ...]:
    return (StoredColumn("k", "string"), StoredColumn("v", kind), StoredColumn("n", "int"))


def spec_of(folder: Path, kind: str = "string", partition_by: tuple[str, ...] = (), name: str = "t") -> TableSpec:
    return TableSpec(name, str(folder / name), columns(kind), partition_by)


def made(engine: DuckDBEngine, spec: TableSpec, *statements: Statement) -> list[Written]:
    engine.create(spec)
    return [write(engine, spec, tick, statement) for tick, statement in enumerate(statements, 1)]


def write(engine: DuckDBEngine, spec: TableSpec, tick: int, statement: Statement) -> Written:
    base = engine.head(spec.path)
    assert base is not None
    return engine.write(Write(spec, base, tick, "app", (), statement, {"sqlrun.as_of": "2026-01-01"}))


def merging(delta: str, *, key: tuple[str, ...] = ("k",), null_safe: tuple[str, ...] = ("k",)) -> Merge:
    """Merge whole rows; rows with `stays` false are deleted."""
    every = tuple((name, f's."{name}"') for name in ("k", "v", "n"))
    return Merge(delta, key, null_safe, every, every, "not s.stays", "", "s.stays")


def rows(*values: str) -> str:
    return f"select * from (values {', '.join(values)}) as v(k, v, n, stays)"


def plain_rows(*values: str) -> str:
    return f"select * from (values {', '.join(values)}) as v(k, v, n)"


def held(path: str) -> list[dict[str, Any]]:
    """Return a table's newest rows by delta-rs."""
    found = pa.table(QueryBuilder().register("t", DeltaTable(path)).execute("select * from t").read_all())
    return sorted(found.to_pylist(), key=lambda row: repr(row["k"]))


def seen(engine: Engine, spec: TableSpec) -> list[dict[str, Any]]:
    relation = Relation("r", spec.path, spec.columns, "new", version=engine.head(spec.path) or 0)
    return sorted(engine.query("select * from r", (relation,)).to_pylist(), key=lambda row: repr(row["k"]))


def feed(path: str, version: int) -> list[str]:
    found = pa.table(DeltaTable(path).load_cdf(starting_version=version, ending_version=version).read_all())
    kept = found.drop_columns(["_commit_version", "_commit_timestamp"]).to_pylist()
    return sorted(repr(sorted(row.items(), key=lambda item: item[0])) for row in kept)


def info(path: str, version: int) -> dict[str, Any]:
    return dict(next(a["commitInfo"] for a in delta_table.actions(path, version) if "commitInfo" in a))


@contextmanager
def killed_before_commit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kill a build between writing its files and the commit that names them."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(delta_commit, "commit", killed)
        yield


def write_both(
    monkeypatch: pytest.MonkeyPatch,
    engine: DuckDBEngine,
    by: list[TableSpec],
    tick: int,
    statement: Statement,
    other: tuple[object, str, object],
) -> None:
    """Write a statement to two tables; for the second one, an attribute (of an object, by name) has another value."""
    write(engine, by[0], tick, statement)
    with monkeypatch.context() as patched:
        patched.setattr(*other)
        write(engine, by[1], tick, statement)


def marked(path: str, version: int) -> dict[str, int]:
    """Return the files that a commit leaves with deleted rows, with the number of these."""
    added = [action["add"] for action in delta_table.actions(path, version) if "add" in action]
    return {add["path"]: add["deletionVector"]["cardinality"] for add in added if add.get("deletionVector")}


def ours(path: str, version: int) -> bool:
    return str(info(path, version)["engineInfo"]).startswith("sqlrun")


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.slow
def test_every_type_is_read_alike(tmp_path: Path, kind: str) -> None:
    """By DuckDB, by delta-rs and in the change feed; unchanged, inserted, updated and deleted rows, NULL among them."""
    plain, edge = VALUES[kind]
    engine, spec = DuckDBEngine(), spec_of(tmp_path, kind)
    stand = [f"('a', {plain}, 1)", f"('b', {edge}, 1)", "('c', null, 1)", "(null, null, 1)", f"('e', {edge}, 1)"]
    after = rows(
        f"('b', {plain}, 2, true)", "('c', null, 2, false)", f"('d', {edge}, 2, true)", "(null, null, 2, true)"
    )
    made(engine, spec, Append(plain_rows(*stand)), merging(after))
    assert ours(spec.path, 2)

    found = seen(engine, spec)
    assert [(row["k"], row["n"]) for row in found] == [("a", 1), ("b", 2), ("d", 2), ("e", 1), (None, 2)]
    assert repr(found).replace("Etc/UTC", "UTC") == repr(held(spec.path))
    assert repr(found[0]["v"]) == repr(found[1]["v"]) and repr(found[2]["v"]) == repr(found[3]["v"])
    kinds = sorted(row.split("'_change_type', '")[1].split("'")[0] for row in feed(spec.path, 2))
    assert kinds == ["delete", "insert", *["update_postimage"] * 2, *["update_preimage"] * 2]


PARTITIONS = {
    "string": ("'a b/c%:ü=''\"+'", "'.*?[x]'"),
    "int": ("-1", "2"),
    "date": ("date '1901-02-03'", "date '2026-03-02'"),
    "timestamp": ("timestamptz '2026-03-01 12:00:00.000001+00'", "timestamptz '1901-02-03 13:00:00+00'"),
    "timestamp_ntz": ("timestamp '2026-03-01 12:00:00'", "timestamp '1901-02-03 13:00:00.5'"),
    "boolean": ("true", "false"),
    "bigint": ("9223372036854775807", "0"),
}


@pytest.mark.parametrize("kind", PARTITIONS)
@pytest.mark.slow
def test_every_partition_is_read_alike(tmp_path: Path, kind: str, way: str) -> None:
    """Values that folders must escape, and NULL; a row that moves from one partition to another."""
    one, two = PARTITIONS[kind]
    engine, spec = DuckDBEngine(), spec_of(tmp_path, kind, ("v",))
    stand = [f"('a', {one}, 1)", f"('b', {one}, 1)", "('c', null, 1)", f"('e', {two}, 1)"]
    after = rows(f"('b', {two}, 2, true)", "('c', null, 2, true)", "('d', null, 2, true)", f"('f', {one}, 2, true)")
    made(engine, spec, Append(plain_rows(*stand)), merging(after))
    assert ours(spec.path, 2) and bool(marked(spec.path, 2)) == (way == "marked")

    found = seen(engine, spec)
    assert repr(found).replace("Etc/UTC", "UTC") == repr(held(spec.path))
    values = {row["k"]: row["v"] for row in found}
    assert values["a"] == values["f"] != values["b"] == values["e"]
    assert values["c"] is values["d"] is None
    relation = Relation("r", spec.path, spec.columns, "changes", commits=(2,))
    netted = "select k, v, n, sum(_weight) as w from r group by all having w <> 0"
    changes = {(r["k"], r["v"], r["n"], int(r["w"])) for r in engine.query(netted, (relation,)).to_pylist()}
    a, b = values["a"], values["b"]
    gone = {("b", a, 1, -1), ("c", None, 1, -1)}
    assert changes == gone | {("b", b, 2, 1), ("c", None, 2, 1), ("d", None, 2, 1), ("f", a, 2, 1)}


def random_row(chance: random.Random, key: int, tick: int) -> str:
    day = chance.choice(("null", "date '2026-01-01'", "date '2026-01-02'"))
    name = "null" if key == 9 else f"'{key}'"
    return f"({name}, {day}::date, {tick}, {chance.choice(('true', 'true', 'false'))})"


@pytest.mark.usefixtures("way")
@pytest.mark.slow
def test_duckdb_and_delta_rs_merge_to_the_same_rows_and_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random merges, executed by DuckDB and by delta-rs on two tables."""
    chance, engine = random.Random(8), DuckDBEngine()
    by = [spec_of(tmp_path, "date", ("v",), name) for name in ("own", "rs")]
    for spec in by:
        engine.create(spec)
    for tick in range(1, 9):
        values = [random_row(chance, key, tick) for key in chance.sample(range(12), 6)]
        write_both(monkeypatch, engine, by, tick, merging(rows(*values)), (delta_commit, "ours", lambda *_: False))
        own, other = (spec.path for spec in by)
        assert held(own) == held(other)
        assert (head := engine.head(own)) == engine.head(other) is not None
        assert feed(own, head) == feed(other, head)
        assert delta_table.rows_changed(own, (head,)) == delta_table.rows_changed(other, (head,))
    operations = [(info(by[0].path, n)["operation"], ours(by[0].path, n)) for n in range(1, 9)]
    assert all(done for _, done in operations) and {name for name, _ in operations} == {"WRITE", "MERGE"}


def log_of(path: str, version: int) -> list[str]:
    """Return a version's files: their folders, and all fields of their log entries except names."""
    entries = []
    for action in delta_table.actions(path, version):
        for kind in ("add", "remove", "cdc"):
            if kind in action:
                entry = {name: value for name, value in action[kind].items() if "ime" not in name and name != "size"}
                entries.append(f"{kind} {entry | {'path': str(Path(entry['path']).parent)}}")
    return sorted(entries)


@pytest.mark.parametrize("kind", ["date", "int", "string"])
@pytest.mark.slow
def test_partitions_written_at_once_equal_those_written_one_by_one(
    tmp_path: Path, kind: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same folders, statistics, change rows and rows, whichever of a partition's files are rewritten or marked."""
    chance, engine = random.Random(9), DuckDBEngine()
    values = ["'2026-01-01'", "'2026-01-02'", "'2026-01-03'"] if kind != "int" else ["-1", "0", "20260101"]
    by = [spec_of(tmp_path, kind, ("v",), name) for name in ("at once", "one by one", "but what stays")]
    for spec in by:
        engine.create(spec)
    apart: list[str] = []
    real = duckdb_merge.copied

    def copied(session: Any, write: Write, sql: str, below: str, values: Any, *rest: Any) -> Any:
        apart.extend([write.table.name] if values is None else [])
        return real(session, write, sql, below, values, *rest)

    monkeypatch.setattr(duckdb_merge, "copied", copied)
    for tick in range(1, 9):
        keys = [(key, chance.choice(values)) for key in chance.sample(range(200), 60 if tick == 1 else 6)]
        merge = merging(rows(*(f"('{k}', {v}::{kind}, {tick}, {chance.choice(('true', 'false'))})" for k, v in keys)))
        for spec in by:
            with monkeypatch.context() as patched:
                if spec.name != "at once":
                    # Rows that change, and rows that stay with them, up to the limits of one statement.
                    patched.setattr(duckdb_copy if spec.name == "one by one" else duckdb_merge, "MOST_AT_ONCE", 0)
                write(engine, spec, tick, merge)
        once, *others = (spec.path for spec in by)
        head = engine.head(once)
        for each in others:
            assert held(once) == held(each) and head == engine.head(each) is not None
            assert log_of(once, head) == log_of(each, head) and feed(once, head) == feed(each, head)
    assert set(apart) == (set() if kind == "string" else {"at once", "but what stays"})


@pytest.mark.parametrize("order", list(permutations(WIDE)), ids=" ".join)
def test_integers_are_read_in_every_order(tmp_path: Path, order: tuple[str, ...]) -> None:
    """delta-rs reads differences of neighbours with 32 bits: files with longer ones store the integers themselves."""
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int")
    names = ("b", "a", "d", "c")
    narrow = [f"('{name}', {number}, 1, true)" for number, name in enumerate(names)]
    wide = [f"('{name}', {value}, 2, true)" for name, value in zip(names, order, strict=True)]

    made(engine, spec, merging(rows(*narrow)), merging(rows(*wide)))

    expected = sorted(
        ({"k": name, "v": int(value), "n": 2} for name, value in zip(names, order, strict=True)), key=repr
    )
    assert held(spec.path) == seen(engine, spec) == expected
    assert len(feed(spec.path, 2)) == 2 * len(order)
    assert set(DeltaTable(spec.path).file_uris()) <= {str(file) for file in Path(spec.path).glob("*.parquet")}


@pytest.mark.slow
def test_a_table_accepts_merges_after_checkpoint_restore_compaction_and_vacuum(tmp_path: Path) -> None:
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int")
    made(engine, spec, *(merging(rows(f"('{n % 3}', {n}, {n}, true)")) for n in range(1, 12)))
    assert (tmp_path / "t" / "_delta_log" / f"{10:020d}.checkpoint.parquet").exists()
    assert [row["n"] for row in held(spec.path)] == [9, 10, 11]

    engine.restore(spec.path, 9)
    assert [row["n"] for row in held(spec.path)] == [9, 7, 8]
    write(engine, spec, 13, merging(rows("('7', 7, 7, true)")))
    delta_vacuum.compact(spec.path)
    delta_vacuum.vacuum(spec.path, timedelta(0))
    write(engine, spec, 15, merging(rows("('7', 7, 8, true)")))

    assert [row["n"] for row in held(spec.path)] == [9, 7, 8, 8] == [row["n"] for row in seen(engine, spec)]
    assert DeltaTable(spec.path).transaction_version("app") == 15
    assert all(Path(file).exists() for file in DeltaTable(spec.path).file_uris())


@pytest.mark.usefixtures("way")
def test_a_removed_file_is_named_as_it_was_added(tmp_path: Path) -> None:
    """Another writer's spelling of a path stays; else a reader would still find the file in the table."""
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "string")
    made(engine, spec, Append("select 'a' as k, 'x y' as v, 1 as n"))
    log = tmp_path / "t" / "_delta_log" / f"{1:020d}.json"
    file, spelled = (
        next(a["add"]["path"] for a in delta_table.actions(spec.path, 1) if "add" in a),
        "a%20b~(1):+.parquet",
    )
    (tmp_path / "t" / file).rename(tmp_path / "t" / "a b~(1):+.parquet")
    log.write_text(log.read_text().replace(file, spelled))

    write(engine, spec, 2, merging(rows("('a', 'z', 2, true)")))

    assert ours(spec.path, 2)
    assert [a["remove"]["path"] for a in delta_table.actions(spec.path, 2) if "remove" in a] == [spelled]
    assert [row["n"] for row in held(spec.path)] == [2] == [row["n"] for row in seen(engine, spec)]


def test_two_changes_of_one_row_are_refused_and_leave_no_file(tmp_path: Path) -> None:
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int")
    made(engine, spec, Append("select 'a' as k, 1 as v, 1 as n"))
    before = sorted(file.name for file in (tmp_path / "t").rglob("*"))

    with pytest.raises(EngineError, match="several source rows"):
        write(engine, spec, 2, merging(rows("('a', 2, 2, true)", "('a', 3, 3, true)")))

    assert sorted(file.name for file in (tmp_path / "t").rglob("*")) == before


@pytest.mark.slow
def test_one_of_two_writers_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that came between is never replaced; the files written beside it have no readers."""
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int")
    made(engine, spec, Append("select 'a' as k, 1 as v, 1 as n"))
    whole = delta_commit.commit

    def late(table: Any, write_: Write, change: Any) -> None:
        made_meanwhile = DuckDBEngine()
        monkeypatch.setattr(delta_commit, "commit", whole)
        write(made_meanwhile, spec, 3, merging(rows("('a', 7, 7, true)")))
        whole(table, write_, change)

    monkeypatch.setattr(delta_commit, "commit", late)
    with pytest.raises(EngineError, match="another writer wrote version"):
        write(engine, spec, 2, merging(rows("('a', 2, 2, true)")))

    assert [row["n"] for row in held(spec.path)] == [7]
    assert not list((tmp_path / "t" / "_delta_log").glob(".*"))


@pytest.mark.slow
def test_a_kill_before_the_commit_leaves_only_unread_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int")
    made(engine, spec, Append("select 'a' as k, 1 as v, 1 as n"))

    with killed_before_commit(monkeypatch):
        write(engine, spec, 2, merging(rows("('a', 2, 2, true)")))
    assert [row["n"] for row in held(spec.path)] == [1]

    write(engine, spec, 3, merging(rows("('a', 3, 3, true)")))
    assert [row["n"] for row in held(spec.path)] == [3]


def test_a_refused_commit_leaves_no_file(tmp_path: Path) -> None:
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int", ("n",))
    made(engine, spec, Append("select 'a' as k, 1 as v, 1 as n"))
    before = sorted((tmp_path / "t").rglob("*.parquet"))

    def overtaken() -> None:
        raise LockedError("another build was here")

    statements = (merging(rows("('a', 2, 1, true)", "('b', 2, 2, true)")), Append("select 'b' as k, 1 as v, 1 as n"))
    for statement in statements:
        with pytest.raises(LockedError):
            engine.write(Write(spec, 1, 2, "app", (), statement, may_commit=overtaken))
        assert engine.head(spec.path) == 1
        assert sorted((tmp_path / "t").rglob("*.parquet")) == before


def test_files_of_a_failed_write_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int")
    made(engine, spec, Append("select 'a' as k, 1 as v, 1 as n"))
    before = sorted((tmp_path / "t").rglob("*.parquet"))
    monkeypatch.setattr(delta_stats, "stats", lambda *_: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        write(engine, spec, 2, merging(rows("('a', 2, 2, true)")))

    assert sorted((tmp_path / "t").rglob("*.parquet")) == before


def test_a_lost_row_is_detected_before_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int")
    made(engine, spec, Append("select * from (values ('a', 1, 1), ('b', 1, 1)) as v(k, v, n)"))
    whole = duckdb_merge.rows
    monkeypatch.setattr(duckdb_merge, "rows", lambda *found, **more: f"from ({whole(*found, **more)}) where k <> 'b'")

    with pytest.raises(EngineError, match="1 rows were written where 2 were to be"):
        write(engine, spec, 2, merging(rows("('a', 2, 2, true)")))

    assert engine.head(spec.path) == 1


FOREIGN = {
    "a constraint": lambda t: t.alter.add_constraint({"small": "n < 100"}),
    "a property of others": lambda t: t.alter.set_table_properties({"delta.dataSkippingNumIndexedCols": "1"}),
    "append-only": lambda t: t.alter.set_table_properties({"delta.appendOnly": "false"}),
    "no change feed": lambda t: t.alter.set_table_properties({"delta.enableChangeDataFeed": "false"}),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_tables_with_foreign_features_are_left_to_delta_rs(tmp_path: Path, what: str) -> None:
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int")
    made(engine, spec, Append("select 'a' as k, 1 as v, 1 as n"))
    FOREIGN[what](DeltaTable(spec.path))
    table = DeltaTable(spec.path)

    assert not delta_commit.ours(table, Write(spec, 2, 2, "app", (), merging("")))


@pytest.mark.parametrize("names", [("filename", "v", "n"), ("k", "_Change_type", "n"), ("k", "v", "File_row_number")])
def test_columns_named_like_row_positions_are_left_to_delta_rs(tmp_path: Path, names: tuple[str, ...]) -> None:
    spec = TableSpec("t", str(tmp_path / "t"), tuple(StoredColumn(name, "int") for name in names))
    delta_create.create(spec)

    assert not delta_commit.ours(DeltaTable(spec.path), Write(spec, 0, 1, "app", (), merging("")))


@pytest.mark.slow
def test_many_partitions_and_an_empty_text_are_left_to_delta_rs(tmp_path: Path) -> None:
    """Readers of a partition read an empty text as NULL; delta-rs decides what it becomes."""
    engine = DuckDBEngine()
    many = spec_of(tmp_path, "int", ("v",), "many")
    count = duckdb_merge.MOST_PARTITIONS + 1
    delta = f"select 'k' || i as k, i::int as v, 1 as n, true as stays from range({count}) r(i)"
    made(engine, many, merging(delta), merging(delta.replace("1 as n", "2 as n")))
    empty = spec_of(tmp_path, "string", ("v",), "empty")
    made(engine, empty, Append("select 'a' as k, 'x' as v, 1 as n"), merging(rows("('a', '', 2, true)")))

    assert not ours(many.path, 1) and not ours(many.path, 2) and not ours(empty.path, 2)
    assert {row["n"] for row in held(many.path)} == {2} and len(held(many.path)) == count


@pytest.mark.slow
def test_many_partitions_of_many_rows_are_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """delta-rs holds merged rows in memory: a backfill of forty days must not go there (it took 8.6 GB)."""
    monkeypatch.setattr(duckdb_merge, "FEW_ROWS", 10)
    engine = DuckDBEngine()
    many = spec_of(tmp_path, "int", ("v",), "many")
    count = duckdb_merge.MOST_PARTITIONS + 1
    delta = f"select 'k' || i as k, (i % {count})::int as v, 1 as n, true as stays from range({count * 12}) r(i)"
    made(engine, many, merging(delta), merging(delta.replace("1 as n", "2 as n")))

    assert ours(many.path, 1) and ours(many.path, 2)
    assert {row["n"] for row in held(many.path)} == {2} and len(held(many.path)) == count * 12


@pytest.mark.parametrize(
    ("kind", "known", "expected"),
    [
        ("int", ("1", "2"), ("1", "2")),
        ("decimal(38,2)", ("-1.10", "99999999999999999999.01"), ("-1.10", "99999999999999999999.01")),
        ("double", ("-inf", "1.0"), (None, None)),
        ("double", ("1e-05", "1e+300"), ("1e-05", "1e+300")),
        ("string", ("a\n", 'ü"'), ('"a\\n"', '"\\u00fc\\""')),
        ("string", ("a", "b" * 65), (None, None)),
        ("date", ("-infinity", "2026-01-01"), (None, None)),
        ("date", ("0044-03-15 (BC)", "2026-01-01"), (None, None)),
        ("timestamp", ("2026-01-01 00:00:00.1239+00", "2026-01-01 00:00:00.1231+00"),
         ('"2026-01-01T00:00:00.123Z"', '"2026-01-01T00:00:00.124Z"')),
        ("timestamp_ntz", ("2026-01-01 00:00:00", "2026-01-01 00:00:00"), ('"2026-01-01T00:00:00.000"',) * 2),
        ("timestamp", ("2026-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00"),
         ('"2026-01-01T00:00:00.000Z"', None)),
        ("binary", ("00", "FF"), (None, None)),
        ("boolean", ("0", "1"), (None, None)),
    ],
)  # fmt: skip
def test_bounds_are_exact_or_left_out(
    kind: str, known: tuple[str, str], expected: tuple[str | None, str | None]
) -> None:
    low, high = known
    statistics = {"min": low, "max": high, "min_is_exact": "true", "max_is_exact": "true"}

    assert delta_stats.bounds(kind, statistics) == expected
    assert delta_stats.bounds(kind, statistics | {"has_nan": "true"}) == (None, None)
    assert delta_stats.bounds(kind, statistics | {"max_is_exact": "false"}) == (None, None)


@pytest.mark.slow
def test_statistics_cover_every_row(tmp_path: Path) -> None:
    """A reader that uses them finds each row, at the bounds and in between; a column of NULLs has none."""
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "timestamp")
    moments = [f"timestamptz '2026-01-01 00:00:00.{part}+00'" for part in ("000001", "123456", "999999")]
    made(engine, spec, merging(rows(*(f"('{n}', {moment}, null::int, true)" for n, moment in enumerate(moments)))))
    table = DeltaTable(spec.path)
    stats = json.loads(next(a["add"]["stats"] for a in delta_table.actions(spec.path, 1) if "add" in a))

    assert (stats["numRecords"], stats["nullCount"]) == (3, {"k": 0, "v": 0, "n": 3})
    assert (stats["minValues"]["k"], stats["maxValues"]["k"]) == ("0", "2") and "n" not in stats["minValues"]
    for number, moment in enumerate(("00:00:00.000001", "00:00:00.123456", "00:00:00.999999")):
        sql = f"select k from t where v = arrow_cast('2026-01-01T{moment}', 'Timestamp(Microsecond, Some(\"UTC\"))')"
        found = pa.table(QueryBuilder().register("t", table).execute(sql).read_all()).to_pylist()
        assert found == [{"k": str(number)}]


def test_partition_values_are_written_as_the_protocol_says() -> None:
    assert [delta_stats.partition_text(v) for v in (None, True, 3, date(2026, 1, 2), "x")] == [
        None, "true", "3", "2026-01-02", "x",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="invalid partition value"):
        delta_stats.partition_text("")


def test_a_rewritten_commit_is_read_again(tmp_path: Path) -> None:
    """Parsed commits are cached by the stamp of their log entry."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    entry = log / f"{7:020d}.json"
    entry.write_text('{"commitInfo": {"operation": "WRITE"}}\n')
    first = delta_table.actions(str(tmp_path), 7)
    assert delta_table.actions(str(tmp_path), 7) is first

    (log / "new").write_text('{"commitInfo": {"operation": "MERGE"}}\n')
    (log / "new").replace(entry)
    assert delta_table.actions(str(tmp_path), 7) == [{"commitInfo": {"operation": "MERGE"}}]

    entry.unlink()
    with pytest.raises(EngineError, match="is missing in its log"):
        delta_table.actions(str(tmp_path), 7)
