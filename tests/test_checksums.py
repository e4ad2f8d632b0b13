"""What a table's rows add up to: the same however it came about, another when a write is torn, doubled or changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from sqlrun import checksums, row_text, sampling
from sqlrun.checksums import Checksum
from sqlrun.engines.duckdb import DuckDBEngine
from sqlrun.engines.protocol import StoredColumn
from sqlrun.incremental.sql import type_name
from sqlrun.report import checksum as told
from sqlrun.ticks import Published, from_json, to_json
from sqlrun.verify import verify
from tests import row_texts
from tests.projects import Site
from tests.script import FIVE, START, order, site_of_orders

ENGINE = DuckDBEngine()


def numbers() -> list[int]:
    """Number the rows on DuckDB."""

    def cast(text: str, kind: str) -> str:
        zone = " at time zone 'UTC'" if kind == "timestamp" else ""
        return f"cast({text}{zone} as {type_name(kind, 'duckdb')})"

    number = row_text.number(row_texts.COLUMNS, "duckdb")
    found = (ENGINE.query(f"select {number} as n from ({row})", ()) for row in row_texts.rows(row_texts.DUCKDB, cast))
    return [int(table.to_pylist()[0]["n"]) for table in found]


@pytest.mark.slow
def test_each_value_counts_but_inexact_ones() -> None:
    """Rows that differ in one value have other numbers; spark/test_checksums_spark.py has the same ones."""
    found = numbers()

    assert len(set(found[:-1])) == len(found) - 1
    assert found[-1] == found[-2]
    assert all(0 <= number < 16**15 for number in found)


def test_texts_can_not_run_into_each_other() -> None:
    columns = [StoredColumn("a", "string"), StoredColumn("b", "string")]
    text = row_text.row(columns, "duckdb")
    shown = [
        ENGINE.query(f"select {text} as t from (select {a} as a, {b} as b)", ()).to_pylist()[0]["t"]
        for a, b in (("'x'", "'|1:y'"), ("'x|1'", "'y'"), ("null", "'~'"), ("'~'", "null"), ("'x'", "'y'"))
    ]

    assert len(set(shown)) == len(shown)


def test_a_sample_takes_about_its_share_and_others_for_another_seed() -> None:
    key = [StoredColumn("n", "bigint")]

    def taken(percent: float, seed: int) -> set[int]:
        where = sampling.Sample(percent, seed).condition(key, "duckdb")
        table = ENGINE.query(f"select n from (select range as n from range(20000)) where {where}", ())
        return {row["n"] for row in table.to_pylist()}

    some, others = taken(10, 1), taken(10, 2)
    assert 1700 < len(some) < 2300 and 1700 < len(others) < 2300
    assert len(some & others) < 400
    assert taken(10, 1) == some <= taken(20, 1)
    assert len(taken(100, 3)) == 20000


def test_a_checksum_is_written_and_read() -> None:
    made = Checksum(3, 2**64 - 1)

    assert checksums.read(str(made)) == made
    assert made.plus(Checksum(-1, 2)) == Checksum(2, 1)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Two ticks; in the second an order is corrected and one comes."""
    made = site_of_orders(tmp_path_factory.mktemp("sums"), 19)
    made.tick(START)
    made.write("1.jsonl", [order("3", START - 3 * FIVE, version=2, restaurant="r9001"), order("30", START)])
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
    """Hidden tables, seeds and landing tables too; added to by a tick, they are what is there."""
    now = published(site)
    found = compared(site, now)

    assert set(found) == set(now.tables)
    assert [name for name, one in found.items() if not one.ok] == []
    assert found["stg_orders"].told.rows == 20
    before = site.ledger.published(1)
    assert before is not None and all(one.ok for one in compared(site, before).values())
    assert before.tables["stg_orders"].checksum != now.tables["stg_orders"].checksum
    assert before.tables["restaurants"].checksum == now.tables["restaurants"].checksum
    assert from_json(to_json(now.tables)) == dict(now.tables)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["doubled", "torn", "changed"])
def test_what_was_done_behind_its_back_is_found(site: Site, how: str) -> None:
    """A write that came twice, one that lost a file, and one of a value: each table is then another."""
    now = published(site)
    state = now.tables["stg_orders"]
    path = f"{site.warehouse}/{state.path}"
    table = DeltaTable(path)
    match how:
        case "doubled":
            write_deltalake(path, table.to_pyarrow_table().slice(0, 1), mode="append")
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
    lines = [str(getattr(line, "text", line)) for line in told(found["stg_orders"])]
    assert lines[0] == "FAIL stg_orders doesn't add up"
    assert (len(lines) == 2) == (how == "changed")


@pytest.mark.slow
def test_a_file_that_is_gone_is_told(site: Site) -> None:
    now = published(site)
    state = now.tables["stg_orders"]
    file = next(Path(file) for file in DeltaTable(f"{site.warehouse}/{state.path}", version=state.version).file_uris())
    kept = file.read_bytes()
    file.unlink()
    try:
        found = compared(site, now)["stg_orders"]
    finally:
        file.write_bytes(kept)

    assert found.there is None and not found.ok and file.name in found.message


@pytest.mark.slow
def test_a_sample_of_keys_finds_what_is_wrong_with_them(site: Site) -> None:
    """A hundred of 100 keys is all; of a few, each that is wrong is found by some seed, and none by another."""
    now = published(site)
    names = ("stg_orders", "restaurant_windows")
    whole = list(verify(site.prepared.space, site.warehouse, now, names, 5, sampling.Sample(100, 0)))
    parts = [list(verify(site.prepared.space, site.warehouse, now, names, 5, sampling.Sample(30, s))) for s in (1, 2)]
    state = now.tables["stg_orders"]
    table = DeltaTable(f"{site.warehouse}/{state.path}")
    table.delete("order_id = 'x7'")
    after = replace(now, tables={**now.tables, "stg_orders": replace(state, version=table.version())})
    found = [
        next(verify(site.prepared.space, site.warehouse, after, ("stg_orders",), 5, sampling.Sample(30, seed))).missing
        for seed in range(8)
    ]
    table.restore(state.version)

    assert [(v.rows, v.ok) for v in whole] == [(20, True), (whole[1].rows, True)]
    assert all(v.ok and v.sampled and v.rows < 20 for v in [part[0] for part in parts])
    assert sorted(set(found)) == [0, 1]
