"""The order of rows in files that a merge writes: by the key's time, or by its first text."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.engines.delta import file_layout
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb import copy as duckdb_copy
from sqlrun.engines.duckdb import row_order
from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.engines.test_matching_rows import by_time, events
from tests.engines.test_own_writes import merging, write


@pytest.mark.parametrize(("first", "sorted_"), [(0, True), (3, True), (30, False)])
def test_the_rows_of_a_new_partition_are_stored_in_the_order_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int, sorted_: bool
) -> None:
    """A reader of some minutes then skips the others; a few rows may have come before."""
    monkeypatch.setattr(file_layout, "COPIED", 10_000)
    engine, spec = DuckDBEngine(), events(tmp_path, ("day",))
    engine.create(spec)
    chance = random.Random(3)
    before = [("z" + str(number), chance.randrange(24)) for number in range(first)]
    # One of the rows that came before changes, so its file is written again.
    after = [*((k, minute) for k, minute in before[:1]), *(("a", minute) for minute in chance.sample(range(24), 24))]
    for tick, came in enumerate((before, after), 1):
        if came:
            write(engine, spec, tick, by_time(", ".join(f"('{k}', {minute}, {tick}, true)" for k, minute in came)))

    (file,) = delta_table.files_at(delta_table.open_table(spec.path))
    times = pq.read_table(f"{spec.path}/{file['path']}")["at"].to_pylist()
    assert len(times) == first + 24
    assert (times == sorted(times)) is sorted_


STATE = (StoredColumn("n", "int"), StoredColumn("k", "string"), StoredColumn("v", "int"))


def shops(engine: DuckDBEngine, spec: TableSpec, tick: int, numbers: list[int], key: tuple[str, ...]) -> list[str]:
    """Merge a row for each number; return the texts of the only file, in its order."""
    listed = ", ".join(map(str, numbers))
    columns = f"i % 3 as n, lpad((i // 3)::varchar, 5, '0') as k, {tick} as v, true as stays"
    every = tuple((column.name, f"s.{column.name}") for column in STATE)
    merge = merging(f"select {columns} from unnest([{listed}]) r(i)", key=key, null_safe=())
    write(engine, spec, tick, replace(merge, update=every, insert=every))
    (file,) = delta_table.files_at(delta_table.open_table(spec.path))
    texts: list[str] = pq.read_table(f"{spec.path}/{file['path']}")["k"].to_pylist()
    return texts


def runs(texts: list[str]) -> int:
    """Return the number of maximal runs in order."""
    return 1 + sum(after < before for before, after in pairwise(texts))


@pytest.mark.parametrize(("key", "is_sorted"), [(("n", "k"), True), (("k",), False)])
def test_a_large_file_is_in_the_order_of_its_first_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: tuple[str, ...], is_sorted: bool
) -> None:
    """A key of one column has another value in each row, so its order spares nothing."""
    monkeypatch.setattr(row_order, "LARGE", 40)
    monkeypatch.setattr(row_order, "LARGE_FILE", 40)
    engine, spec = DuckDBEngine(), TableSpec("shops", str(tmp_path / "shops"), STATE)
    engine.create(spec)
    some = [3 * i if len(key) == 1 else i for i in range(45)]
    random.Random(1).shuffle(some)

    small, large = (shops(engine, spec, tick, numbers, key) for tick, numbers in ((1, some[:39]), (2, some[38:])))

    assert (len(small), len(large)) == (39, 45)
    assert runs(small) > 1
    assert (runs(large) == 1) is is_sorted


def test_rows_in_order_are_not_sorted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the others are, so that a small change of a large file costs little."""
    monkeypatch.setattr(duckdb_copy, "ROW_GROUP", 2048)
    monkeypatch.setattr(row_order, "LARGE", 9_000)
    monkeypatch.setattr(row_order, "LARGE_FILE", 9_000)
    monkeypatch.setattr(file_layout, "COPIED", 20_000)
    engine, spec = DuckDBEngine(), TableSpec("shops", str(tmp_path / "shops"), STATE)
    engine.create(spec)
    some = list(range(10_500))
    random.Random(1).shuffle(some)
    found = [
        shops(engine, spec, tick, numbers, ("n", "k"))
        for tick, numbers in enumerate((some[:8_000], some[7_990:10_000], some[9_900:]), 1)
    ]

    assert [len(texts) for texts in found] == [8_000, 10_000, 10_500]
    # Two threads copy the row groups of a file.
    assert runs(found[0]) > 3_000 and runs(found[1]) == 1 and 2 <= runs(found[2]) <= 6
    assert sorted(found[2]) == sorted(f"{i // 3:05}" for i in some)
