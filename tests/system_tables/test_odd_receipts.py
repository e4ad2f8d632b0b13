"""Corrupt, foreign or implausible run stats are ignored, and never change a result."""

from __future__ import annotations

import math
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from sqlrun.errors import EngineError
from sqlrun.plan import strategy_cost
from sqlrun.runtime.lru import Recent
from sqlrun.system_tables import receipts
from sqlrun.system_tables.receipts import MOST_ROWS
from tests.system_tables.test_receipts import AT, result

odd: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just(10**400) | st.dates()
)
FOREIGN = {
    "other columns": pa.table({"name": ["x"], "day": [date(2026, 1, 1)]}),
    "texts for numbers": pa.table({
        "tick": ["one"], "engine": ["spark"], "table": ["fct"], "strategy": ["merge"], "rows_in": ["many"],
        "rows_read": ["more"], "seconds": ["long"], "commits": ["yes"],
    }),
    "NULL in all": pa.table({
        name: pa.array([None], kind)
        for name, kind in {
            "tick": pa.int64(), "engine": pa.string(), "table": pa.string(), "strategy": pa.string(),
            "rows_in": pa.int64(), "rows_read": pa.int64(), "seconds": pa.float64(), "commits": pa.int64(),
        }.items()
    }),
    "numbers that can't be": pa.table({
        "tick": [-5], "engine": ["spark"], "table": ["fct"], "strategy": ["merge"], "rows_in": [-(2**63)],
        "rows_read": [2**63 - 1], "seconds": [math.nan], "commits": [1],
    }),
}  # fmt: skip
UNFIT = ("other columns", "texts for numbers")


@given(st.lists(st.tuples(odd, odd)))
@pytest.mark.slow
def test_any_run_stats_give_an_amplification_or_none(found: list[tuple[Any, Any]]) -> None:
    rate = strategy_cost.amplification(found)

    assert rate is None or (math.isfinite(rate) and rate >= 0)


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.slow
def test_a_foreign_table_of_run_stats_gives_no_advice(tmp_path: Path, kind: str) -> None:
    """Appending a tick's rows to it fails with an error that the build reports before it continues, or works."""
    write_deltalake(receipts.path_of(str(tmp_path)), FOREIGN[kind])

    rates = receipts.read_for_changes(str(tmp_path), "fct", "merge")

    assert strategy_cost.amplification(rates) is None
    with pytest.raises(EngineError, match="receipts of tick 1 can't be written") if kind in UNFIT else nullcontext():
        receipts.write(str(tmp_path), result(1, "a"), "duckdb", AT)


ROWS = (
    {"rows_changed": None, "seconds": None, "checks": None, "checks_warned": None, "checks_failed": None},
    {"rows_changed": -7, "seconds": -3.0, "checks": -1, "checks_warned": -1, "checks_failed": -1},
    {"rows_changed": 2**63 - 1, "seconds": 1e308, "checks": 2**63 - 1},
    {"rows_changed": 2**63 - 1, "seconds": math.inf},
    {"seconds": math.nan},
)


def spoil(warehouse: str, kind: str, **values: Any) -> None:
    """Add run stats with impossible values, or of another version, for a tick."""
    path = receipts.path_of(warehouse)
    receipts.write(warehouse, result(1, "a"), "duckdb", AT)
    table = DeltaTable(path).to_pyarrow_table()
    match kind:
        case "of another version":
            table = table.drop_columns(["engine", "checks_warned"])
        case _:
            for name, value in values.items():
                field = table.schema.field(name)
                column = pa.array([value] * table.num_rows, field.type)
                table = table.set_column(table.schema.get_field_index(name), name, column)
            table = pa.table(dict(zip(table.column_names, table.columns, strict=True)))
    write_deltalake(path, table, mode="overwrite", schema_mode="overwrite")


@pytest.mark.parametrize("values", ROWS, ids=str)
def test_sums_over_ticks_ignore_implausible_values(tmp_path: Path, values: dict[str, Any]) -> None:
    """`sqlrun ticks` used to end with a Python traceback."""
    warehouse = str(tmp_path)
    spoil(warehouse, "nonsense", **values)

    total = receipts.totals(warehouse)[1]

    assert total.seconds == 0.0
    assert 0 <= total.rows_changed < MOST_ROWS and 0 <= total.failed <= total.checks


def test_run_stats_of_another_version_are_ignored(tmp_path: Path) -> None:
    spoil(str(tmp_path), "of another version")

    assert receipts.totals(str(tmp_path)) == {}


@pytest.mark.parametrize("corrupt", ["log", "file", "folder"])
@pytest.mark.slow
def test_corrupt_run_stats_give_no_advice(tmp_path: Path, corrupt: str) -> None:
    receipts.write(str(tmp_path), result(1, "a"), "duckdb", AT)
    folder = Path(receipts.path_of(str(tmp_path)))
    match corrupt:
        case "log":
            (folder / "_delta_log" / f"{1:020}.json").write_text("torn")
        case "file":
            next(folder.glob("*.parquet")).write_bytes(b"PAR1")
        case _:
            for file in sorted(folder.rglob("*"), reverse=True):
                file.rmdir() if file.is_dir() else file.unlink()
            folder.rmdir()
            folder.write_text("a file")

    assert receipts.read_for_changes(str(tmp_path), "a", "merge") == []


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the environments whose run stats are read."""
    found: list[str] = []
    real = receipts._advice

    def counted(warehouse: str, env: str, columns: list[str]) -> list[dict[str, Any]]:
        found.append(env)
        return real(warehouse, env, columns)

    monkeypatch.setattr(receipts, "_advice", counted)
    return found


def reads(warehouse: Path, *tables: str) -> list[int]:
    """Return the number of known run stats of each table."""
    return [len(receipts.read_for_changes(str(warehouse), table, "merge")) for table in tables]


def test_a_process_reads_the_run_stats_once(tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a tick's tables reads them, in threads, and each tick adds to them."""
    receipts.write(str(tmp_path), result(1, "a"), "duckdb", AT)
    assert reads(tmp_path, "a") == reads(tmp_path, "a") == [1]
    receipts.write(str(tmp_path), result(2, "a", "b"), "duckdb", AT)
    receipts.write(str(tmp_path), result(3, "b"), "spark", AT)
    found = reads(tmp_path, "a", "b")
    assert asked == [""]

    monkeypatch.setattr(receipts, "_known", Recent(4))
    assert found == reads(tmp_path, "a", "b") == [2, 2]
    assert receipts.read_for_changes(str(tmp_path), "b", "merge") == [(7, 0), (7, 0)]


@pytest.mark.parametrize("other", ["before", "between"])
def test_run_stats_of_another_process_are_read(tmp_path: Path, asked: list[str], other: str) -> None:
    receipts.write(str(tmp_path), result(1, "a"), "duckdb", AT)
    assert reads(tmp_path, "a") == [1]

    def foreign() -> None:
        rows = DeltaTable(receipts.path_of(str(tmp_path))).to_pyarrow_table()
        write_deltalake(receipts.path_of(str(tmp_path)), rows, mode="append")

    if other == "before":
        foreign()
        receipts.write(str(tmp_path), result(2, "b"), "duckdb", AT)
    else:
        receipts.write(str(tmp_path), result(2, "b"), "duckdb", AT)
        foreign()

    assert reads(tmp_path, "a", "b") == ([2, 1] if other == "before" else [2, 2])
    assert len(asked) == 2


def test_compacted_run_stats_give_the_same_advice(tmp_path: Path) -> None:
    for tick in (98, 99, 100, 101):
        receipts.write(str(tmp_path), result(tick, "a"), "duckdb", AT)
        assert reads(tmp_path, "a") == [tick - 97]
