"""Cache of facts about an open table: for that object, at that version, as long as it is open."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from deltalake import DeltaTable

from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta import table_facts


def table(folder: Path) -> DeltaTable:
    delta_table.create(TableSpec("t", str(folder), (StoredColumn("a", "int"),)))
    return DeltaTable(str(folder))


def test_a_fact_is_computed_once_for_each_version(tmp_path: Path) -> None:
    one, counted = table(tmp_path), []

    def find() -> int:
        counted.append(one.version())
        return one.version()

    assert [table_facts.once(one, "x", find) for _ in range(3)] == [0, 0, 0] and counted == [0]
    delta_table.append_rows(DeltaTable(str(tmp_path)), [{"a": 1}])
    assert table_facts.once(one, "x", find) == 0
    one.update_incremental()
    assert table_facts.once(one, "x", find) == 1 and counted == [0, 1]
    assert table_facts.once(DeltaTable(str(tmp_path)), "x", lambda: 7) == 7


def test_a_fact_about_the_next_version_is_valid_from_then_on(tmp_path: Path) -> None:
    one = table(tmp_path)
    table_facts.note(one, 1, "x", "next")
    table_facts.note(one, 0, "y", "now")
    assert [table_facts.once(one, what, lambda: "looked for") for what in "xy"] == ["looked for", "now"]
    delta_table.append_rows(DeltaTable(str(tmp_path)), [{"a": 1}])
    one.update_incremental()
    assert [table_facts.once(one, what, lambda: "looked for") for what in "xy"] == ["next", "looked for"]


def test_facts_about_another_version_are_dropped(tmp_path: Path) -> None:
    one = table(tmp_path)
    table_facts.note(one, 1, "x", "of the first")
    for _ in range(2):
        delta_table.append_rows(DeltaTable(str(tmp_path)), [{"a": 1}])
    one.update_incremental()
    assert one.version() == 2 and table_facts.once(one, "x", lambda: "looked for") == "looked for"


@pytest.mark.slow
def test_facts_about_a_deleted_table_object_are_dropped(tmp_path: Path) -> None:
    one = table(tmp_path)
    before = len(table_facts._cached)
    for version in (0, 1):
        table_facts.note(one, version, "x", 1)
    assert len(table_facts._cached) == before + 1
    del one
    gc.collect()
    assert len(table_facts._cached) <= before


def test_callers_get_their_own_list_of_files(tmp_path: Path) -> None:
    one = table(tmp_path)
    delta_table.append_rows(one, [{"a": 1}])
    one.update_incremental()
    delta_table.files_at(one).clear()
    assert delta_table.files_at(one, ["a"])[0]["min.a"] == 1
    assert delta_table.files_at(one)[0]["num_records"] == 1
