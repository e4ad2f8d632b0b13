"""Checksums of tables: independent of how the rows came about, different after a corrupt, doubled or changed write."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from sqlrun.engine_api import StoredColumn
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.maintain import changed_rows, checksums, row_hash
from sqlrun.maintain.changed_rows import Change
from sqlrun.maintain.checksums import Checksum
from sqlrun.operations.outcome_lines import checksum as checksum_lines
from sqlrun.operations.verify import Sample, verify
from sqlrun.publish.table_state import Published, from_json, to_json
from sqlrun.transpile.writer import type_name
from tests.support import row_texts
from tests.support.projects import Site
from tests.support.script import FIVE, START, order, site_of_orders

ENGINE = DuckDBEngine()


def awkward_rows() -> list[str]:
    """Return queries of one row each, for DuckDB; each differs from the one before in one value."""

    def cast(text: str, kind: str) -> str:
        zone = " at time zone 'UTC'" if kind == "timestamp" else ""
        return f"cast({text}{zone} as {type_name(kind, 'duckdb')})"

    return list(row_texts.rows(row_texts.DUCKDB, cast))


def numbers(number: str = row_hash.number(row_texts.COLUMNS, "duckdb")) -> list[int]:
    """Return the numbers of the rows on DuckDB."""
    found = (ENGINE.query(f"select {number} as n from ({row})", ()) for row in awkward_rows())
    return [int(table.to_pylist()[0]["n"]) for table in found]


@pytest.mark.slow
def test_every_value_counts_except_inexact_ones() -> None:
    """Rows that differ in one value have different numbers; spark/test_checksums_spark.py has the same ones."""
    found = numbers()

    assert len(set(found[:-1])) == len(found) - 1
    assert found[-1] == found[-2]
    assert all(0 <= number < 16**15 for number in found)


@pytest.mark.slow
def test_every_value_counts_by_duckdb_s_hash_function() -> None:
    """Also inexact ones."""
    found = numbers(row_hash.duckdb_number(row_texts.COLUMNS))

    assert len(set(found)) == len(found)
    assert all(0 <= number < 16**15 for number in found)


@pytest.mark.slow
def test_rows_in_files_have_the_numbers_of_their_values(tmp_path: Path) -> None:
    """DuckDB reads values of a file in other vectors than those of a query: as dictionaries, constants, lists."""
    number = row_hash.duckdb_number(row_texts.COLUMNS)
    each = " union all ".join(f"select * from ({row}), range(300)" for row in awkward_rows())
    file = f"{tmp_path}/rows.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"set TimeZone = 'UTC'; copy ({each}) to '{file}' (row_group_size 2048)")
        counted = connection.sql(f"select {number} as n, count(*) as rows from '{file}' group by all").fetchall()
        ((inner,),) = connection.sql(f"select count(*) from '{file}' where {number} = {counted[0][0]}").fetchall()

    assert dict(counted) == dict.fromkeys(numbers(number), 300) and inner == 300


@pytest.mark.slow
def test_a_file_with_other_types_has_the_numbers_of_the_declared_ones(tmp_path: Path) -> None:
    """Another writer may store an `int` as INT64, or a time in nanoseconds."""
    columns = [StoredColumn("n", "int"), StoredColumn("at", "timestamp"), StoredColumn("d", "decimal(18,2)")]
    number = row_hash.duckdb_number(columns)
    at = datetime(2026, 3, 1, tzinfo=timezone.utc)
    plain = pa.table(
        {
            "n": pa.array([1, -2], pa.int32()),
            "at": pa.array([at, at], pa.timestamp("us", "UTC")),
            "d": pa.array([Decimal("1.50"), None], pa.decimal128(18, 2)),
        }
    )
    others = plain.cast(pa.schema([("n", pa.int64()), ("at", pa.timestamp("ns", "UTC")), ("d", pa.decimal128(30, 2))]))
    found = []
    for name, rows in (("plain", plain), ("others", others)):
        pq.write_table(rows, tmp_path / f"{name}.parquet", version="2.6")
        sql = f"select {number} as n from '{tmp_path}/{name}.parquet'"
        found.append(ENGINE.query(sql, ()).to_pylist())

    assert found[0] == found[1] and found[0][0] != found[0][1]


@pytest.mark.slow
def test_a_map_counts_in_any_order() -> None:
    number = row_hash.duckdb_number([StoredColumn("m", "map<string,int>")])
    maps = ("map(['a', 'b'], [1, 2])", "map(['b', 'a'], [2, 1])", "map(['b', 'a'], [1, 2])")
    found = [ENGINE.query(f"select {number} as n from (select {m} as m)", ()).to_pylist()[0]["n"] for m in maps]

    assert found[0] == found[1] != found[2]


@pytest.mark.slow
def test_row_numbers_match_existing_ledgers() -> None:
    """Faster code must still compute the checksums that ledgers have."""
    assert numbers()[:3] == [283297979502278800, 391728499445127486, 426544143608442522]
    assert hashlib.md5(repr(numbers()).encode()).hexdigest() == "d20f706e1c53c4a6cbc84d706e72e16c"


@pytest.mark.slow
def test_texts_of_nested_values_match_existing_ledgers() -> None:
    columns = [
        StoredColumn("lines", "array<struct<id:string,price:decimal(9,2),tags:array<string>>>"),
        StoredColumn("of", "struct<inner:struct<a:string>,n:int>"),
        StoredColumn("counts", "map<string,array<int>>"),
    ]
    values = (
        "[null, {'id': null, 'price': 1, 'tags': ['x', null]}, {'id': '', 'price': null, 'tags': null}]",
        "{'inner': null, 'n': null}",
        "map(['b', 'a'], [null, [1, null]])",
    )
    items = [f"cast({v} as {type_name(c.type, 'duckdb')}) as {c.name}" for v, c in zip(values, columns, strict=True)]
    text = row_hash.row(columns, "duckdb", "salt:")

    (row,) = ENGINE.query(f"select {text} as t from (select {', '.join(items)})", ()).to_pylist()

    assert row["t"] == "salt:[~,(~|1.00|[1:x,~]),(0:|~|~)]|(~|~)|[(1:a|[1,~]),(1:b|~)]|"


def test_adjacent_texts_stay_distinct() -> None:
    columns = [StoredColumn("a", "string"), StoredColumn("b", "string")]
    text = row_hash.row(columns, "duckdb")
    shown = [
        ENGINE.query(f"select {text} as t from (select {a} as a, {b} as b)", ()).to_pylist()[0]["t"]
        for a, b in (("'x'", "'|1:y'"), ("'x|1'", "'y'"), ("null", "'~'"), ("'~'", "null"), ("'x'", "'y'"))
    ]

    assert len(set(shown)) == len(shown)


def test_a_sample_has_about_its_share_and_depends_on_the_seed() -> None:
    key = [StoredColumn("n", "bigint")]

    def taken(percent: float, seed: int) -> set[int]:
        where = Sample(percent, seed).condition(key, "duckdb")
        table = ENGINE.query(f"select n from (select range as n from range(20000)) where {where}", ())
        return {row["n"] for row in table.to_pylist()}

    some, others = taken(10, 1), taken(10, 2)
    assert 1700 < len(some) < 2300 and 1700 < len(others) < 2300
    assert len(some & others) < 400
    assert taken(10, 1) == some <= taken(20, 1)
    assert len(taken(100, 3)) == 20000


@pytest.mark.parametrize("function", [checksums.PORTABLE, "duckdb:0123abcd"])
def test_a_checksum_is_written_and_read(function: str) -> None:
    made = Checksum(3, 2**64 - 1, function)

    assert checksums.read(str(made)) == made
    assert made.plus(Checksum(-1, 2, function)) == Checksum(2, 1, function)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Two ticks; in the second an order is corrected, one has an unknown field, and lines are quarantined."""
    made = site_of_orders(tmp_path_factory.mktemp("sums"), 19)
    made.tick(START)
    new = order("30", START).replace("{", '{"tip": 1, ', 1)
    made.write("1.jsonl", [order("3", START - 3 * FIVE, version=2, restaurant="r9001"), new, "{", "[]"])
    made.write("2.jsonl", ["no JSON"])
    made.tick(START + FIVE)
    return made


def published(site: Site) -> Published:
    found = site.ledger.read().published
    assert found is not None
    return found


def compared(site: Site, given: Published) -> dict[str, checksums.Found]:
    return {found.table: found for found in checksums.compare(site.warehouse, given, tuple(site.prepared.graph.order))}


@pytest.mark.slow
def test_every_table_adds_up_after_each_tick(site: Site) -> None:
    """Also hidden tables, seeds and landing tables; incremental checksums equal those of all rows."""
    now = published(site)
    found = compared(site, now)

    assert set(found) == set(now.tables)
    assert [name for name, one in found.items() if not one.ok] == []
    assert found["stg_orders"].recorded.rows == 20
    before = site.ledger.published(1)
    assert before is not None and all(one.ok for one in compared(site, before).values())
    assert before.tables["stg_orders"].checksum != now.tables["stg_orders"].checksum
    assert before.tables["restaurants"].checksum == now.tables["restaurants"].checksum
    assert from_json(to_json(now.tables)) == dict(now.tables)


@pytest.mark.slow
def test_a_change_read_at_once_equals_separate_queries(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    progress, changes = site.published[-1], dict[str, Change]()
    for model in progress.plan.models:
        state = progress.plan.tables[model.name].state
        assert state is not None
        commits = progress.commits(model.name, state.version, progress.states[model.name].version)
        at_once, by_itself = (way(progress, model, commits) for way in (changed_rows.read, changed_rows._one_by_one))
        changes[model.name] = at_once

        assert at_once.rows is not None and by_itself.rows is not None and at_once.added is not None
        assert sorted(map(str, at_once.rows.to_pylist())) == sorted(map(str, by_itself.rows.to_pylist()))
        assert replace(at_once, rows=None, added=None, grew=False) == replace(by_itself, rows=None)
        assert checksums.after(progress, model.name, at_once.added) == checksums.after(progress, model.name)
        if at_once.count:
            monkeypatch.setattr(changed_rows, "LARGE", at_once.count - 1)
            large = changed_rows.read(progress, model, commits)
            assert large == replace(at_once, rows=None, added=large.added, grew=large.grew)
            monkeypatch.undo()

    landed, orders = changes["stg_order_events"], changes["stg_orders"]
    assert (landed.count, landed.files, landed.rescued, landed.quarantined) == (2, 2, 1, 3)
    assert landed.grew and not orders.grew
    assert orders.added is not None and (orders.count, orders.added.rows) == (2, 1)


def test_sums_of_halves_do_not_overflow() -> None:
    most = 16**15 - 1
    found = pa.table({"_weight": [1] * 20 + [-1] * 3, "_sqlrun.number": [most] * 20 + [most, 1, 0]})

    assert changed_rows._added(found, "") == Checksum(17, (19 * most - 1) % 2**64)


@pytest.mark.slow
@pytest.mark.parametrize("given", ["portable", "other"])
def test_a_tick_continues_a_portable_checksum_and_replaces_one_of_another_duckdb(
    tmp_path: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that Spark has built keeps its function on DuckDB. Tables without changes get a new checksum, too."""
    function = {"portable": checksums.PORTABLE, "other": "duckdb:00000000"}[given]
    made = site_of_orders(tmp_path, 8)
    with monkeypatch.context() as patched:
        patched.setattr(checksums, "duckdb_function", lambda: function)
        made.tick(START)
        first = published(made)
        assert all(one.ok for one in compared(made, first).values())
    assert {checksums.read(state.checksum).function for state in first.tables.values()} == {function}
    if given == "other":
        failed = compared(made, first)["stg_orders"]
        assert not failed.ok
        lines = [str(getattr(line, "text", line)) for line in checksum_lines(failed)]
        assert lines[0] == "FAIL stg_orders can't be compared" and "The next build records a new checksum." in lines[1]

    made.write("1.jsonl", [order("30", START)])
    made.tick(START + FIVE)

    now = published(made)
    assert all(one.ok for one in compared(made, now).values())
    kept = function if given == "portable" else checksums.duckdb_function()
    assert {checksums.read(state.checksum).function for state in now.tables.values()} == {kept}


def test_the_hash_function_of_duckdb_has_a_name() -> None:
    """A failure means that this version of DuckDB hashes in another way: each table gets a new checksum once."""
    assert checksums.duckdb_function() == "duckdb:170f2786"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["doubled", "torn", "changed"])
def test_foreign_changes_are_found(site: Site, how: str) -> None:
    """A repeated write, one that lost a file, and one with a changed value: each table then differs."""
    now = published(site)
    state = now.tables["stg_orders"]
    path = f"{site.warehouse}/{state.path}"
    table = DeltaTable(path)
    match how:
        case "doubled":
            write_deltalake(path, pa.table(table.scan().read_all()).slice(0, 1), mode="append")
        case "torn":
            table.delete("order_id = 'x7'")
        case "changed":
            table.update(updates={"status": "'lost'"}, predicate="order_id = 'x7'")
    version = DeltaTable(path).version()
    after = replace(now, tables={**now.tables, "stg_orders": replace(state, version=version)})
    found = compared(site, after)
    table.update_incremental()
    table.restore(state.version)

    assert [name for name, one in found.items() if not one.ok] == ["stg_orders"]
    lines = [str(getattr(line, "text", line)) for line in checksum_lines(found["stg_orders"])]
    assert lines[0] == "FAIL stg_orders differs from the ledger's checksum"
    assert (len(lines) == 2) == (how == "changed")


@pytest.mark.slow
def test_a_missing_file_is_reported(site: Site) -> None:
    now = published(site)
    state = now.tables["stg_orders"]
    file = next(Path(file) for file in DeltaTable(f"{site.warehouse}/{state.path}", version=state.version).file_uris())
    kept = file.read_bytes()
    file.unlink()
    try:
        found = compared(site, now)["stg_orders"]
    finally:
        file.write_bytes(kept)

    assert found.actual is None and not found.ok and file.name in found.message


@pytest.mark.slow
def test_a_sample_of_keys_finds_wrong_keys(site: Site) -> None:
    """A 100 % sample of keys finds every error; in a smaller one some seed finds each wrong key, and no other."""
    now = published(site)
    names = ("stg_orders", "restaurant_windows")
    whole = list(verify(site.prepared.workspace, site.warehouse, now, names, 5, Sample(100, 0)))
    parts = [list(verify(site.prepared.workspace, site.warehouse, now, names, 5, Sample(30, s))) for s in (1, 2)]
    state = now.tables["stg_orders"]
    table = DeltaTable(f"{site.warehouse}/{state.path}")
    table.delete("order_id = 'x7'")
    after = replace(now, tables={**now.tables, "stg_orders": replace(state, version=table.version())})
    found = [
        next(verify(site.prepared.workspace, site.warehouse, after, ("stg_orders",), 5, Sample(30, seed))).missing
        for seed in range(8)
    ]
    table.restore(state.version)

    assert [(v.rows, v.ok) for v in whole] == [(20, True), (whole[1].rows, True)]
    assert all(v.ok and v.sampled and v.rows < 20 for v in [part[0] for part in parts])
    assert sorted(set(found)) == [0, 1]
