"""Rows with the keys of the last merge: read from what it wrote, and the same as if the table were searched."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sqlrun.engine_api import Append, GivenKeys, Merge, Relation, TableSpec
from sqlrun.engines.delta import file_layout
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb import matching_rows
from sqlrun.engines.duckdb import merge as duckdb_merge
from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.engines.test_own_writes import merging, rows, spec_of, write

ASKED = "select held.* from held semi join changed using (k) order by all"


def of_change(spec: TableSpec, version: int, *commits: int) -> Relation:
    """Return the relation of the rows with a key of `changed`, whose rows these commits changed."""
    keys = GivenKeys("changed", ("k",), commits=commits)
    return Relation("held", spec.path, spec.columns, "new", version=version, given_keys=keys)


def both(engine: DuckDBEngine, spec: TableSpec, keys: list[str], *commits: int) -> tuple[pa.Table, pa.Table]:
    """Return the rows with keys, by what the last merge found out and by a search of the table."""
    version, changed = engine.head(spec.path) or 0, pa.table({"k": keys})
    near = of_change(spec, version, *(commits or (version,)))
    whole = replace(near, given_keys=GivenKeys())
    first, second = (engine.query(ASKED, (relation,), {"changed": changed}) for relation in (near, whole))
    return first, second


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the queries of relations with given keys."""
    found: list[str] = []
    really = matching_rows.of_relation

    def of_relation(*arguments: Any) -> str:
        found.append(really(*arguments))
        return found[-1]

    monkeypatch.setattr(matching_rows, "of_relation", of_relation)
    return found


def changing(*values: str) -> Merge:
    """Merge rows; one with the stored number leaves the stored row as it is."""
    return replace(merging(rows(*values), null_safe=()), update_when="s.n is distinct from t.n")


@pytest.mark.parametrize("partition_by", [(), ("n",)])
@pytest.mark.parametrize(("copied", "large"), [(0, 0), (10_000, 100)])
@pytest.mark.slow
def test_the_rows_are_those_of_a_search(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read: list[str],
    partition_by: tuple[str, ...],
    copied: int,
    large: int,
) -> None:
    """Random merges over rewritten and marked files insert, update, delete and leave rows as they are."""
    monkeypatch.setattr(file_layout, "COPIED", copied)
    monkeypatch.setattr(matching_rows, "LARGE", large)
    chance, engine, spec = random.Random(11), DuckDBEngine(), spec_of(tmp_path, "int", partition_by)
    engine.create(spec)
    searched: set[bool] = set()
    for tick in range(1, 14):
        keys = [str(key) for key in chance.sample(range(14), 6)]
        values = [
            f"('{key}', {tick}, {chance.randrange(2)}, {chance.choice(('true', 'true', 'false'))})" for key in keys
        ]
        before = engine.head(spec.path)
        paths = {file["path"] for file in delta_table.files_at(delta_table.open_table(spec.path))}
        write(engine, spec, (before or 0) + 1, changing(*values))
        read.clear()
        near, whole = both(engine, spec, keys)
        assert near == whole
        searched.add(any(path in read[0] for path in paths))
    # Stored files are opened for rows that the merge left as they are.
    assert searched == {False, True}


def test_a_stored_copy_of_a_key_is_found(tmp_path: Path, read: list[str]) -> None:
    """The merge changes one of two rows with the key, and leaves the other as it is."""
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int")
    engine.create(spec)
    write(engine, spec, 1, Append("select * from (values ('a', 1, 1), ('a', 2, 2), ('b', 1, 1)) as r(k, v, n)"))
    write(engine, spec, 2, changing("('a', 9, 2, true)"))

    near, whole = both(engine, spec, ["a"])

    assert near == whole and near.column("v").to_pylist() == [2, 9]


@pytest.mark.parametrize(
    ("merge", "most", "commits"),
    [
        # Also changed by an earlier commit.
        (changing("('a', 9, 9, true)"), 1, (1, 2)),
        (changing("('a', 9, 9, true)", "('z', 9, 9, true)"), 1, ()),
        (replace(changing("('a', 9, 9, true)"), repeats=True), 1, ()),
    ],
)
def test_the_table_is_searched_if_the_merge_does_not_know_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[str], merge: Merge, most: int, commits: tuple[int, ...]
) -> None:
    monkeypatch.setattr(file_layout, "COPIED", 0)
    monkeypatch.setattr(duckdb_merge, "MOST_JOINED", most)
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int")
    engine.create(spec)
    some = "select unnest(['1', 'a', 'b', 'c', 'd', 'e']) as k, 1 as v, 1 as n"
    write(engine, spec, 1, Append(some))
    (stored,) = delta_table.files_at(delta_table.open_table(spec.path))
    write(engine, spec, 2, merge)

    near, whole = both(engine, spec, ["a", "b", "1", "1.0"], *commits)

    assert near == whole and near.num_rows
    assert stored["path"] in read[0]


def test_the_table_is_searched_if_the_merge_compared_another_type(tmp_path: Path, read: list[str]) -> None:
    """1.4 matched no row, and then became a second 1."""
    engine, spec = DuckDBEngine(), spec_of(tmp_path, "int")
    engine.create(spec)
    write(engine, spec, 1, Append("select 'a' as k, 1 as v, 1 as n"))
    write(engine, spec, 2, replace(changing("('b', 2, 1.4, true)"), key=("n",)))
    near = replace(of_change(spec, 2, 2), given_keys=GivenKeys("changed", ("n",), commits=(2,)))

    found = engine.query(
        "select k from held semi join changed using (n) order by k", (near,), {"changed": pa.table({"n": [1]})}
    )

    assert found.column("k").to_pylist() == ["a", "b"]
