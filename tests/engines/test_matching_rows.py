"""Reads of stored rows by their keys: one column or the keys first, with the result of one read."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sqlrun.engine_api import Append, GivenKeys, Merge, Relation, StoredColumn, TableSpec
from sqlrun.engines.delta import file_layout
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb import matching_rows
from sqlrun.engines.duckdb import merge as duckdb_merge
from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.engines.test_own_writes import feed, held, merging, rows, seen, spec_of, write, write_both

WIDE = (StoredColumn("k", "string"), StoredColumn("v", "array<int>"), StoredColumn("n", "int"))


def stored(counts: list[int | None], columns: tuple[StoredColumn, ...] = WIDE) -> matching_rows.Stored:
    rows = {f"{number}.parquet": count for number, count in enumerate(counts)}
    return matching_rows.Stored(columns, rows, {}, {}, "_target")


def test_keys_come_first_for_few_changes_of_many_wide_rows() -> None:
    many, plain = matching_rows.MANY_ROWS, (WIDE[0], WIDE[2])

    def first(
        counts: list[int | None], changed: int, columns: tuple[StoredColumn, ...] = WIDE, few_rows: bool = False
    ) -> bool:
        keys = matching_rows.Keys(("k",), ("k",), changed, few_rows=few_rows)
        return matching_rows.keys_first(keys, stored(counts, columns))

    assert first([many // 2, many // 2], many // 100)
    assert not first([many // 2, many // 2 - 1], 1)
    assert not first([many], many // 100 + 1)
    assert not first([many, None], 1)
    assert not first([many], 1, plain)
    # Many keys, but few stored rows have one.
    assert first([many], many, few_rows=True) and not first([many - 1], many, few_rows=True)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching_rows, "MANY_ROWS", 1)
    monkeypatch.setattr(matching_rows, "FEW_KEYS", 0)


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
    monkeypatch.setattr(matching_rows, "LARGE", large)
    chance, engine = random.Random(7), DuckDBEngine()
    by = [spec_of(tmp_path, "array<int>", partition_by, name) for name in ("first", "at once")]
    for spec in by:
        engine.create(spec)
    for tick in range(1, 12):
        values = [value(chance, key, tick) for key in chance.sample(range(14), 6)]
        write_both(monkeypatch, engine, by, tick, merging(rows(*values)), (matching_rows, "MANY_ROWS", 10**9))
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
    really = duckdb_merge._joined

    def joined_rows(write_: object, statement: object, target: str) -> str:
        joined.append(target)
        return really(write_, statement, target)  # type: ignore[arg-type]

    monkeypatch.setattr(duckdb_merge, "_joined", joined_rows)
    for after, opened in (("2-7", 1), ("none", 0)):
        joined.clear()
        base = engine.head(spec.path) or 0
        write(engine, spec, base + 1, merging(rows(f"('{after}', [1], 5, true)")))
        assert [sum(path in target for path in files) for target in joined] == [opened]

    assert len(seen(engine, spec)) == 151


# ── one column first ─────────────────────────────────────────────────────────────────────────────────────────────

EVENTS = (
    StoredColumn("k", "string"),
    StoredColumn("at", "timestamp"),
    StoredColumn("n", "int"),
    StoredColumn("day", "date"),
)
AT = "timestamptz '2026-01-01 00:00:00+00' + to_minutes({})"


def events(folder: Path, partition_by: tuple[str, ...] = (), name: str = "events") -> TableSpec:
    return TableSpec(name, str(folder / name), EVENTS, partition_by)


def by_time(values: str, key: tuple[str, ...] = ("at", "k"), null_safe: tuple[str, ...] = ()) -> Merge:
    """Merge rows (k, minute, n, stays); the day has 24 minutes."""
    delta = (
        f"select k, {AT.format('minute')} as at, n, date '2026-01-01' + minute // 24 as day, stays "
        f"from (values {values}) as r(k, minute, n, stays)"
    )
    names = ("k", "at", "n", "day")
    update, insert = [tuple((name, f"s.{name}") for name in names)] * 2
    return Merge(delta, key, null_safe, update, insert, "not s.stays", "s.n is distinct from t.n", "s.stays")


def in_order(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: (row["k"] or "", row["at"]))


def many(folder: Path) -> tuple[DuckDBEngine, TableSpec]:
    """Return a table of 4,000 rows: 400 minutes, ten of 1,000 persons in each."""
    engine, spec = DuckDBEngine(), events(folder)
    engine.create(spec)
    rows = f"select 'p' || (i * 7) % 1000 as k, {AT.format('i // 10')} as at, i as n, date '2026-01-01' as day"
    write(engine, spec, 1, Append(f"{rows} from (select i::int as i from range(4000) r(i))"))
    return engine, spec


def chosen(engine: DuckDBEngine, spec: TableSpec, delta: str, null_safe: tuple[str, ...] = ()) -> str | None:
    """Return the column that is compared before the others."""
    (file,) = delta_table.files_at(delta_table.open_table(spec.path))
    where = {f"{spec.path}/{file['path']}": 4_000}
    with engine.lent("") as session:
        session.execute(f"create temp table s as {delta}")
        count = session.execute("select count(*) from s").fetchall()[0][0]
        keys = matching_rows.Keys(("at", "k"), null_safe, count)
        return matching_rows.first_column(session, keys, matching_rows.Stored(EVENTS, where, {}, {}, "_target"))


@pytest.fixture
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching_rows, "SAMPLE_FROM", 4_000)


@pytest.mark.slow
def test_the_column_that_matches_the_fewest_rows_is_compared_first(tmp_path: Path, few_are_enough: None) -> None:
    engine, spec = many(tmp_path)
    few_minutes = f"select {AT.format('380 + i // 40')} as at, 'p' || i as k from range(400) r(i)"
    few_persons = f"select {AT.format('i')} as at, 'p' || i % 5 as k from range(400) r(i)"
    all_of_both = f"select {AT.format('i')} as at, 'p' || (i * 5) % 1000 as k from range(400) r(i)"

    assert chosen(engine, spec, few_minutes) == "at"
    assert chosen(engine, spec, few_persons) == "k"
    # A fifth of the persons is too many for a text.
    assert chosen(engine, spec, all_of_both) is None
    # A NULL matches nothing by `=`.
    assert chosen(engine, spec, few_minutes, ("at",)) is None


@pytest.mark.slow
def test_no_column_is_compared_first_for_few_rows_or_many_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_are_enough: None
) -> None:
    engine, spec = many(tmp_path)
    one = f"select {AT.format('1')} as at, 'p' || i as k from range(401) r(i)"

    assert chosen(engine, spec, one) is None
    assert chosen(engine, spec, f"{one} limit 400") == "at"
    monkeypatch.setattr(matching_rows, "SAMPLE_FROM", 4_001)
    assert chosen(engine, spec, f"{one} limit 400") is None


@pytest.fixture
def always_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching_rows, "SAMPLE_FROM", 1)
    monkeypatch.setattr(matching_rows, "FEW_COMPARED", 0)
    monkeypatch.setattr(matching_rows, "MOST_SHARE", 1.0)
    monkeypatch.setattr(matching_rows, "MOST_OF_TEXT", 1.0)


@pytest.mark.parametrize("partition_by", [(), ("day",)])
@pytest.mark.parametrize("copied", [0, 10_000])
@pytest.mark.slow
def test_merges_with_one_column_first_are_those_of_one_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, always_one: None, partition_by: tuple[str, ...], copied: int
) -> None:
    """Random merges over rewritten and marked files, with a NULL key."""
    monkeypatch.setattr(file_layout, "COPIED", copied)
    chance, engine = random.Random(5), DuckDBEngine()
    by = [events(tmp_path, partition_by, name) for name in ("first", "at_once")]
    used: list[str | None] = []
    really = matching_rows.first_column

    def first(*arguments: Any) -> str | None:
        used.append(really(*arguments))
        return used[-1]

    monkeypatch.setattr(matching_rows, "first_column", first)
    for spec in by:
        engine.create(spec)
    for tick in range(1, 12):
        picked = chance.sample([(who, minute) for who in "abcd" for minute in range(0, 72, 6)], 12)
        values = [f"('{who}', {minute}, {tick % 4}, {chance.random() < 0.7})" for who, minute in picked]
        values += [f"(null, 30, {tick}, true)"]
        merge = by_time(", ".join(values), null_safe=("at", "k"))
        write_both(monkeypatch, engine, by, tick, merge, (matching_rows, "SAMPLE_FROM", 10**9))
        first_, once = (spec.path for spec in by)
        head = engine.head(first_)
        assert head == engine.head(once) is not None
        assert in_order(held(first_)) == in_order(held(once)) == in_order(seen(engine, by[0]))
        assert feed(first_, head) == feed(once, head)
    # The person is NULL in each merge.
    assert set(used) == {"at", None}


@pytest.mark.parametrize("partition_by", [(), ("day",)])
@pytest.mark.slow
def test_a_query_gets_the_rows_with_given_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, always: None, always_one: None, partition_by: tuple[str, ...]
) -> None:
    monkeypatch.setattr(file_layout, "COPIED", 0)
    engine, spec = DuckDBEngine(), events(tmp_path, partition_by)
    engine.create(spec)
    for tick in range(1, 5):
        values = [f"('{who}', {minute}, {tick}, {minute % 5 != tick})" for who in "abcd" for minute in range(0, 72, 6)]
        write(engine, spec, tick, by_time(", ".join(values)))
    given = pa.table(
        {"at": pa.array([datetime(2026, 1, 1, 0, m, tzinfo=UTC) for m in (6, 30, 7)]), "k": ["a", "c", "b"]}
    )
    whole = Relation("stored", spec.path, EVENTS, "new", version=engine.head(spec.path) or 0)
    sql = 'select stored.* from stored semi join given using ("at", k) order by all'

    some = replace(whole, given_keys=GivenKeys("given", ("at", "k")))
    near = engine.query("select * from stored", (some,), {"given": given})

    assert engine.query(sql, (some,), {"given": given}) == engine.query(sql, (whole,), {"given": given})
    # Rows of other minutes are left out, and no row of a given key is.
    assert {row["at"].minute for row in near.to_pylist()} == {6, 30}
    condition = replace(some, where="n > 100")
    assert engine.query("select * from stored", (condition,), {"given": given}).num_rows == 0
