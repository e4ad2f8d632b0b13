"""The costs of a tick can be read again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from sqlrun.engine_api import Receipt, TableSpec
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.events import NodeResult, StageReceipt, TickResult
from sqlrun.system_tables import receipts

AT = datetime(2026, 1, 10, 12, 5, tzinfo=timezone.utc)


def result(tick: int, *tables: str) -> TickResult:
    receipt = Receipt(0.5, rows_read=7, files_read=2, commits=1)
    stages = tuple(StageReceipt(name, "merge", "SR541", 3, tick, receipt) for name in tables)
    return TickResult(tick, AT, True, 1.0, (NodeResult(1, 1, "m", "merge", "success", 0.5, stages=stages),))


def rows(warehouse: Path) -> list[dict[str, object]]:
    table = delta_table.open_table(receipts.path_of(str(warehouse)))
    return sorted(pa.table(table.to_pyarrow_table()).to_pylist(), key=lambda row: (row["tick"], row["table"]))


def test_a_row_for_each_table_and_tick(tmp_path: Path) -> None:
    receipts.write(str(tmp_path), result(1, "a", "b"), "duckdb", AT)
    receipts.write(str(tmp_path), result(2, "a"), "spark", AT)

    found = rows(tmp_path)

    assert [(r["tick"], r["engine"], r["table"], r["rows_read"], r["jobs"]) for r in found] == [
        (1, "duckdb", "a", 7, None), (1, "duckdb", "b", 7, None), (2, "spark", "a", 7, None),
    ]  # fmt: skip
    assert found[0]["as_of"] == AT


def test_the_time_of_checks_is_in_the_row_of_the_model_s_own_table(tmp_path: Path) -> None:
    """A hidden table's checksum counts there, too."""
    made = result(1, "m__state_1", "m")
    (node,) = made.nodes
    stages = (node.stages[0], replace(node.stages[1], check_seconds=0.2))
    made = replace(made, nodes=(replace(node, stages=stages),))
    receipts.write(str(tmp_path), made, "duckdb", AT)

    assert {row["table"]: row["check_seconds"] for row in rows(tmp_path)} == {"m__state_1": None, "m": 0.2}


def test_requests_of_a_tick(tmp_path: Path) -> None:
    """A table of an older version has no column for them."""
    path = receipts.path_of(str(tmp_path))
    receipts.write(str(tmp_path), replace(result(1, "a", "b"), requests=168), "duckdb", AT)
    receipts.write(str(tmp_path), result(2, "a"), "duckdb", AT)
    assert [row["tick_requests"] for row in rows(tmp_path)] == [168, 168, None]

    shutil.rmtree(path)
    delta_table.create(TableSpec("receipts", path, receipts.COLUMNS[:-2]))
    receipts.write(str(tmp_path), replace(result(3, "a"), requests=5), "duckdb", AT)
    assert [(row["tick"], "tick_requests" in row) for row in rows(tmp_path)] == [(3, False)]
    assert receipts.totals(str(tmp_path))[3].seconds == 0.5


def test_a_tick_without_affected_tables_writes_nothing(tmp_path: Path) -> None:
    receipts.write(str(tmp_path), result(1), "duckdb", AT)

    assert delta_table.head(receipts.path_of(str(tmp_path))) is None


def test_run_stats_are_compacted_from_time_to_time(tmp_path: Path) -> None:
    for tick in (98, 99, 100):
        receipts.write(str(tmp_path), result(tick, "a"), "duckdb", AT)

    assert len(rows(tmp_path)) == 3
    assert len(delta_table.files_at(delta_table.open_table(receipts.path_of(str(tmp_path))))) == 1


def test_a_failed_write_is_reported(tmp_path: Path) -> None:
    (tmp_path / "_sqlrun").write_text("not a folder")

    with pytest.raises(EngineError, match="receipts of tick 1"):
        receipts.write(str(tmp_path), result(1, "a"), "duckdb", AT)
