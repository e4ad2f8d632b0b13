"""Ranges of keys: every row that shares a key with a changed one is found."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import date, datetime, timezone
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrun.check import key_ranges
from sqlrun.engine_api import Append, Relation, StoredColumn, TableSpec, Write
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.duckdb.scan import overlapping
from sqlrun.errors import EngineError

rows = st.lists(st.tuples(st.text(max_size=3), st.integers(0, 3)), min_size=1)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(rows)
def test_every_key_lies_in_a_range(found: list[tuple[str, int]]) -> None:
    table = pa.table({"id": [name for name, _ in found], "day": [day for _, day in found]})

    for partition_by in ((), ("day",), ("id",)):
        ranges = key_ranges.of(table, ["id"], partition_by)
        assert all(any(low <= name <= high for _, low, high in ranges) for name, _ in found)


def test_nulls_and_floats_have_no_ranges() -> None:
    assert key_ranges.of(pa.table({"id": ["a", None]}), ["id"], ()) == ()
    assert key_ranges.of(pa.table({"id": [1.5]}), ["id"], ()) == ()
    assert key_ranges.of(pa.table({"id": pa.array([], pa.int64())}), ["id"], ()) == ()


def test_each_partition_has_its_range_however_many_there_are() -> None:
    """NULL is a partition too, and so is NaN, which equals nothing."""
    for days in ([1, 2, None, 1], [1.5, 2.5, float("nan"), 1.5], [0, *range(1, key_ranges.LOOKS + 2), 0]):
        table = pa.table({"id": [*range(len(days) - 1), 100], "day": days})
        ranges = key_ranges.of(table, ["id"], ["day"])

        expected = [(n, n) for n in range(1, len(days) - 1)]
        assert ranges == (("id", 0, 100), *(("id", low, high) for low, high in expected))


@pytest.mark.slow
def test_ranges_of_a_few_partitions_load_no_other_library() -> None:
    """Neither PyArrow's group_by nor pandas: they would delay a small tick's checks."""
    code = (
        "import sys; from array import array; import pyarrow as pa; from sqlrun.check import key_ranges\n"
        "ids = pa.Array.from_buffers(pa.int64(), 2, [None, pa.py_buffer(array('q', [1, 2]))])\n"
        "table = pa.table([ids, ids], ['id', 'day'])\n"
        "print(key_ranges.of(table, ['id'], ['day']), key_ranges.of(table, ['id'], []))\n"
        "print([name for name in ('pandas', 'pyarrow.acero', 'pyarrow.dataset') if name in sys.modules])"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout == "(('id', 1, 1), ('id', 2, 2)) (('id', 1, 1), ('id', 2, 2))\n[]\n"


def test_many_ranges_become_one() -> None:
    many = key_ranges.MOST + 1

    assert key_ranges.of(pa.table({"id": list(range(many))}), ["id"], ["id"]) == (("id", 0, many - 1),)


def test_files_are_selected_by_partition_or_statistics() -> None:
    """A file without statistics is opened."""
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    held = Relation(
        "held", "t", (), "new", ranges=(("id", "b", "d"), ("at", at, at), ("day", date(2026, 1, 2), date(2026, 1, 2)))
    )
    keep = overlapping(held.ranges)

    assert [keep({"min.id": low, "max.id": high, "min.at": at.replace(year=2027), "max.at": at.replace(year=2028),
                  "partition.day": date(2026, 1, 1)})
            for low, high in (("a", "a"), ("a", "b"), ("e", "f"))] == [False, True, False]  # fmt: skip
    assert keep({"min.id": "e", "max.id": "f", "min.at": at, "max.at": at, "partition.day": date(2026, 1, 1)})
    assert keep({"min.id": "e", "max.id": "f", "min.at": at.replace(year=2027), "max.at": at.replace(year=2028),
                 "partition.day": date(2026, 1, 2)})  # fmt: skip
    assert keep({})


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), min_size=1), st.integers(0, 20), st.integers(0, 5))
@pytest.mark.slow
def test_a_file_that_overlaps_any_range_is_selected(ranges: list[tuple[int, int]], least: int, length: int) -> None:
    held = Relation("held", "t", (), "new", ranges=tuple(("n", low, low + more) for low, more in ranges))

    kept = overlapping(held.ranges)({"min.n": least, "max.n": least + length})

    assert kept == any(low <= least + length and least <= low + more for low, more in ranges)


def test_only_files_that_overlap_are_opened(tmp_path: Path) -> None:
    """Two days of keys that don't overlap, and a third file that repeats a key of the second."""
    columns = (StoredColumn("id", "string"), StoredColumn("day", "date"))
    table = TableSpec("t", str(tmp_path / "t"), columns, ("day",))
    engine = DuckDBEngine()
    engine.create(table)
    for number, (name, day) in enumerate((("a", 1), ("m", 2), ("m", 3))):
        engine.write(
            Write(table, number, number + 1, "t", (), Append(f"select '{name}' as id, date '2026-01-0{day}' as day"))
        )
    changed = pa.table({"id": ["m"], "day": [date(2026, 1, 3)]})
    ranges = key_ranges.of(changed, ["id"], ["day"])

    found = engine.query(
        "select * from held order by day", (Relation("held", table.path, columns, "new", 3, ranges=ranges),)
    )

    assert found.to_pylist() == [{"id": "m", "day": date(2026, 1, 2)}, {"id": "m", "day": date(2026, 1, 3)}]
    engine.close()


def test_files_are_listed_with_the_statistics_of_the_columns_asked_for(tmp_path: Path) -> None:
    columns = (StoredColumn("id", "string"), StoredColumn("n", "int"), StoredColumn("day", "date"))
    table = TableSpec("t", str(tmp_path / "t"), columns, ("day",))
    engine = DuckDBEngine()
    engine.create(table)
    engine.write(
        Write(table, 0, 1, "t", (), Append("select 'a' as id, range::int as n, date '2026-01-01' as day from range(3)"))
    )

    (file,) = delta_table.files_at(delta_table.open_table(table.path, 1), ["n", "day", "no_column"])

    size = (tmp_path / "t" / unquote(file.pop("path"))).stat().st_size
    day = date(2026, 1, 1)
    assert file == {"size_bytes": size, "num_records": 3, "min.n": 0, "max.n": 2, "partition.day": day}
    engine.close()


@pytest.mark.slow
def test_cached_versions_of_tables_are_never_confused(tmp_path: Path) -> None:
    """Versions stay open for readers: written and restored ones, and those of a new table at its path."""
    columns = (StoredColumn("n", "int"),)
    table = TableSpec("t", str(tmp_path / "t"), columns)
    engine = DuckDBEngine()

    def held(version: int) -> list[int]:
        rows = engine.query("select n from held order by n", (Relation("held", table.path, columns, "new", version),))
        return [row["n"] for row in rows.to_pylist()]

    def append(base: int, n: int) -> None:
        engine.write(Write(table, base, base + 1, "t", (), Append(f"select {n}::int as n")))

    engine.create(table)
    append(0, 1)
    append(1, 2)
    assert (held(1), held(2)) == ([1], [1, 2])
    engine.restore(table.path, 1)
    append(3, 3)
    assert (held(1), held(2), held(3), held(4)) == ([1], [1, 2], [1], [1, 3])
    shutil.rmtree(table.path)
    engine.create(table)
    append(0, 7)
    assert held(1) == [7]
    with pytest.raises(EngineError):
        held(2)
    engine.close()
