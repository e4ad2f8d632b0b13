"""The files that merges leave in a partition: few, none too large to be written again at once, and few deleted rows."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sqlrun.engine_api import Append
from sqlrun.engines.delta import file_layout
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta import vacuum as delta_vacuum
from sqlrun.engines.delta.file_layout import FAR_TOO_DEAD, LARGE, MOST_DEAD, Standing, rewritten, rows_of_each
from sqlrun.engines.duckdb import copy as duckdb_copy
from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.engines.test_own_writes import held, merging, rows, seen, spec_of, write


@dataclass(slots=True)
class Partition:
    """The files of a partition, each with its rows and deleted rows, and how many rows each merge wrote."""

    files: dict[str, tuple[int, int]]
    written: list[int] = field(default_factory=list)

    def merge(self, share: float, inserted: int = 0) -> None:
        """Replace a share of all rows, spread evenly over them."""
        standings = [Standing(name, n, dead, int((n - dead) * share)) for name, (n, dead) in self.files.items()]
        new = inserted + sum(file.hit for file in standings)
        chosen = rewritten(standings, new)
        self.written.append(new + sum(file.live for file in standings if file.file in chosen))
        live = new + sum(file.live for file in standings)
        each = rows_of_each(self.written[-1], live) or self.written[-1]
        self.files = {file.file: (file.rows, file.dead + file.hit) for file in standings if file.file not in chosen}
        for part in range(0, self.written[-1], each):
            self.files[f"{len(self.written)}.{part}"] = min(each, self.written[-1] - part), 0

    @property
    def dead(self) -> float:
        """Return the share of deleted rows of all files."""
        return sum(dead for _, dead in self.files.values()) / sum(n for n, _ in self.files.values())


def test_small_files_are_compacted_by_size() -> None:
    """Each row is copied a few times, however many merges come: files grow by a factor, few of each size."""
    partition, most = Partition({"first": (100_000, 0)}), 0
    for _ in range(600):
        partition.merge(0, inserted=1000)
        most = max(most, len(partition.files))
    assert sum(n for n, _ in partition.files.values()) == 700_000
    assert most <= 20 and sum(partition.written) < 6 * 600_000


@pytest.mark.parametrize("rows", [3_600_000, 40_000_000])
@pytest.mark.parametrize("share", [0.003, 0.02, 0.11])
def test_no_merge_writes_much_more_than_the_others(rows: int, share: float) -> None:
    """A table of one file is divided once. Then each merge writes at most one large file, and few rows are dead."""
    partition, dead, most = Partition({"first": (rows, 0)}), 0.0, 0
    for _ in range(round(2 / share)):
        partition.merge(share)
        dead, most = max(dead, partition.dead), max(most, len(partition.files))
    assert sum(n - gone for n, gone in partition.files.values()) == rows
    assert sorted(partition.written)[-2] <= 1.1 * max(LARGE, rows / 4)
    assert dead <= MOST_DEAD and most <= 16


@pytest.mark.parametrize("dead", [MOST_DEAD, FAR_TOO_DEAD])
def test_a_large_file_waits_for_another_one_unless_most_of_it_is_dead(dead: float) -> None:
    files = [Standing(str(n), 2_000_000, int(2_000_000 * dead) + n, 1) for n in range(4)]
    assert rewritten(files, 4) == (frozenset("0123") if dead == FAR_TOO_DEAD else frozenset("3"))


@pytest.mark.slow
def test_a_large_partition_is_divided_and_written_again_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_copy, "ROW_GROUP", 2048)
    monkeypatch.setattr(file_layout, "COPIED", 100)
    monkeypatch.setattr(file_layout, "LARGE", 10_000)
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int", ())
    engine.create(spec)
    write(engine, spec, 1, Append("select 'k' || i as k, i::int as v, 0 as n from range(40000) r(i)"))
    chance, expected, written = random.Random(5), {f"k{i}": 0 for i in range(40_000)}, []
    for tick in range(2, 14):
        some = chance.sample(range(40_000), 4_400)
        expected.update((f"k{i}", tick) for i in some)
        before = set(files(spec.path))
        write(engine, spec, tick, merging(rows(*(f"('k{i}', {i}, {tick}, true)" for i in some))))
        written.append(sum(n for name, n in files(spec.path).items() if name not in before))

    assert max(written) > 25_000 and sorted(written)[-2] < 16_000
    assert len(files(spec.path)) >= 4
    assert {row["k"]: row["n"] for row in seen(engine, spec)} == expected
    assert seen(engine, spec) == held(spec.path)


@pytest.mark.slow
@pytest.mark.parametrize("vectors", [True, False])
def test_compaction_leaves_what_merges_write_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: bool
) -> None:
    """A MERGE would divide a large file of the newest day. An old day becomes one file once, not with each late row."""
    monkeypatch.setattr(file_layout, "SMALL", 1_000)
    monkeypatch.setattr(file_layout, "ROW_GROUP", 2_048)
    engine, spec = DuckDBEngine(), replace(spec_of(tmp_path, "date", ("v",)), vectors=vectors)
    engine.create(spec)
    days = {"2026-01-01": 10, "2026-01-02": 8_000, "2026-01-03": 8_000, "9999-12-31": 10, None: 10}
    ticks = count(1)

    def append(day: str | None, number: int) -> None:
        tick, value = next(ticks), f"date '{day}'" if day else "null"
        write(engine, spec, tick, Append(f"select '{tick}.' || i as k, {value} as v, 0 as n from range({number}) r(i)"))

    def files_of_days() -> list[int]:
        found = Counter(file["partition.v"] for file in delta_table.files_at(delta_table.open_table(spec.path)))
        return [found[day and date.fromisoformat(day)] for day in days]

    for day, number in [*days.items()] * 3:
        append(day, number)
    expected = seen(engine, spec)
    assert files_of_days() == [3, 3, 3, 3, 3]

    merged, made = delta_vacuum.compact(spec.path)

    # delta-rs has no filter that finds NULL.
    assert files_of_days() == ([1, 1, 3, 1, 3] if vectors else [1, 1, 1, 1, 1])
    assert (merged, made) == ((9, 3) if vectors else (15, 5))
    assert seen(engine, spec) == held(spec.path) == expected
    (large,) = (path for path in files(spec.path) if "2026-01-02" in path)
    footer = pq.read_metadata(Path(spec.path) / large)
    assert footer.row_group(0).column(0).compression == "SNAPPY"
    assert max(footer.row_group(n).num_rows for n in range(footer.num_row_groups)) <= 2_048
    assert delta_vacuum.compact(spec.path) == (0, 0)

    append("2026-01-02", 10)
    append("2026-01-02", 10)
    assert delta_vacuum.compact(spec.path) == ((0, 0) if vectors else (3, 1))
    assert seen(engine, spec) == held(spec.path)


@pytest.mark.parametrize(
    ("kind", "small", "large"),
    [
        ("string", "'a b%/=é'''", "'x'"),
        ("int", "-1", "2"),
        ("boolean", "true", "false"),
        ("timestamp", "timestamptz '2026-01-01 00:00:00.004+00'", "timestamptz '2026-01-02 00:00:00+00'"),
    ],
)
def test_small_partitions_of_any_type_are_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, small: str, large: str
) -> None:
    """delta-rs finds them by their values as the log spells them; the large one gets rows all the time."""
    monkeypatch.setattr(file_layout, "SMALL", 1_000)
    engine, spec = DuckDBEngine(), replace(spec_of(tmp_path, kind, ("v",)), vectors=True)
    engine.create(spec)
    for tick, (value, number) in enumerate([(small, 10), (large, 2_000)] * 3, 1):
        new = f"select '{tick}.' || i as k, {value} as v, 0 as n from range({number}) r(i)"
        write(engine, spec, tick, Append(new))

    assert delta_vacuum.compact(spec.path) == (3, 1)

    assert sorted(files(spec.path).values()) == [30, 2_000, 2_000, 2_000]
    assert seen(engine, spec) == held(spec.path)


def files(path: str) -> dict[str, int]:
    """Return a table's files with their numbers of live rows."""
    table = delta_table.open_table(path)
    return {file["path"]: file["num_records"] for file in delta_table.files_at(table)}
