"""MERGEs into wide tables: keys are read first, then the rows that matched, with the same result."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sqlrun.engine_api import Append, Merge, StoredColumn
from sqlrun.engines.delta import file_layout
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb import merge as duckdb_merge
from sqlrun.engines.duckdb import merge_target
from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.engines.test_own_writes import feed, held, merging, rows, seen, spec_of, write

WIDE = (StoredColumn("k", "string"), StoredColumn("v", "array<int>"), StoredColumn("n", "int"))
BY_KEY = Merge("", ("k",), ("k",), (), ())


def test_keys_come_first_for_few_changes_of_many_wide_rows() -> None:
    many, plain = merge_target.MANY_ROWS, (WIDE[0], WIDE[2])

    assert merge_target.keys_first(BY_KEY, WIDE, [many // 2, many // 2], many // 100)
    assert not merge_target.keys_first(BY_KEY, WIDE, [many // 2, many // 2 - 1], 1)
    assert not merge_target.keys_first(BY_KEY, WIDE, [many], many // 100 + 1)
    assert not merge_target.keys_first(BY_KEY, WIDE, [many, None], 1)
    assert not merge_target.keys_first(BY_KEY, plain, [many], 1)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_target, "MANY_ROWS", 1)
    monkeypatch.setattr(merge_target, "FEW_KEYS", 0)


def value(chance: random.Random, key: int, tick: int) -> str:
    name = "null" if key == 9 else f"'{key}'"
    return (
        f"({name}, [{tick}, {key}], {chance.choice(('null', 1, 2))}::int, {chance.choice(('true', 'true', 'false'))})"
    )


@pytest.mark.parametrize("partition_by", [(), ("n",)])
@pytest.mark.parametrize(("copied", "large"), [(0, 0), (0, 4), (10_000, 4)])
@pytest.mark.slow
def test_rows_and_changes_are_those_of_one_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    always: None,
    partition_by: tuple[str, ...],
    copied: int,
    large: int,
) -> None:
    """Random merges over rewritten and marked files, each read alone or with others, with a NULL key."""
    monkeypatch.setattr(file_layout, "COPIED", copied)
    monkeypatch.setattr(merge_target, "LARGE", large)
    chance, engine = random.Random(7), DuckDBEngine()
    by = [spec_of(tmp_path, "array<int>", partition_by, name) for name in ("first", "at once")]
    for spec in by:
        engine.create(spec)
    for tick in range(1, 12):
        values = [value(chance, key, tick) for key in chance.sample(range(14), 6)]
        for spec in by:
            with monkeypatch.context() as patched:
                if spec.name == "at once":
                    patched.setattr(merge_target, "MANY_ROWS", 10**9)
                write(engine, spec, tick, merging(rows(*values)))
        first, once = (spec.path for spec in by)
        head = engine.head(first)
        assert head == engine.head(once) is not None
        assert held(first) == held(once) == seen(engine, by[0])
        assert feed(first, head) == feed(once, head)


@pytest.mark.slow
def test_whole_rows_come_from_files_with_a_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, always: None) -> None:
    """Of other files only the keys are read: the join names no other file."""
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "array<int>")
    engine.create(spec)
    for tick in range(1, 4):
        write(engine, spec, tick, Append(f"select '{tick}-' || i as k, [i::int] as v, 0 as n from range(50) r(i)"))
    files = [file["path"] for file in delta_table.files_at(delta_table.open_table(spec.path))]
    joined: list[str] = []
    really = duckdb_merge._hits

    def hits(write_: object, statement: object, target: str) -> str:
        joined.append(target)
        return really(write_, statement, target)  # type: ignore[arg-type]

    monkeypatch.setattr(duckdb_merge, "_hits", hits)
    for after, opened in (("2-7", 1), ("none", 0)):
        joined.clear()
        base = engine.head(spec.path) or 0
        write(engine, spec, base + 1, merging(rows(f"('{after}', [1], 5, true)")))
        assert [sum(path in target for path in files) for target in joined] == [opened]

    assert len(seen(engine, spec)) == 151
