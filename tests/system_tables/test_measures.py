"""The measures of every tick can be read again, and are compared with their own history."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.events import Measure, TickResult
from sqlrun.system_tables import measures

AT = datetime(2026, 1, 10, 12, 5, tzinfo=timezone.utc)
FIVE = timedelta(minutes=5)


def result(tick: int, *found: Measure, as_of: datetime = AT, published: bool = True) -> TickResult:
    return TickResult(tick, as_of, published, 1.0, (), (), found)


def rows(value: float | None) -> Measure:
    return Measure("stg", "rows", value, "orders.events", 300.0, 5.0, 15.0, value == 99, "of 300 s")


def test_a_row_for_each_measure_and_tick(tmp_path: Path) -> None:
    measures.write(str(tmp_path), result(1, rows(9), Measure("fct", "null_share:a", None)), AT)
    measures.write(str(tmp_path), result(2, rows(99), as_of=AT + FIVE, published=False), AT + FIVE)

    found = measures.read(str(tmp_path))

    assert [(r["tick"], r["subject"], r["value"], r["published"], r["unusual"]) for r in found] == [
        (1, "stg", 9.0, True, False),
        (1, "fct", None, True, False),
        (2, "stg", 99.0, False, True),
    ]
    first = found[0]
    assert (first["as_of"], first["written_at"], first["source"]) == (AT, AT, "orders.events")
    assert (first["low"], first["high"], first["detail"], first["interval_seconds"]) == (5.0, 15.0, "of 300 s", 300.0)
    assert delta_table.head(measures.path_of(str(tmp_path))) == 2  # one commit a tick


@pytest.mark.slow
def test_only_requested_measures_are_read(tmp_path: Path) -> None:
    for tick in range(1, 30):
        measures.write(str(tmp_path), result(tick, rows(tick), as_of=AT + tick * FIVE), AT)

    since = AT + 10 * FIVE
    found = measures.read(str(tmp_path), since=since, measures=("rows",), hours=(13,), columns=("tick", "as_of"))

    assert [r["tick"] for r in found] == list(range(12, 24))
    assert set(found[0]) == {"tick", "as_of"}
    assert measures.read(str(tmp_path), measures=("files",)) == []
    assert measures.read(str(tmp_path), "dev") == []


@pytest.mark.slow
def test_an_empty_history_is_read_without_pandas() -> None:
    """PyArrow imports pandas to concatenate zero chunks, which takes longer than all checks of a small tick."""
    code = (
        "import sys, pyarrow as pa; from sqlrun.system_tables.measure_history import NEEDED, _values\n"
        "none = pa.Table.from_batches([], pa.schema([(n, pa.timestamp('us', 'UTC')) for n in NEEDED]))\n"
        "print(_values(none), 'pandas' in sys.modules)"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "{} False"


def test_a_tick_without_measures_writes_nothing(tmp_path: Path) -> None:
    measures.write(str(tmp_path), result(1), AT)

    assert delta_table.head(measures.path_of(str(tmp_path))) is None
    assert measures.read(str(tmp_path)) == []


def test_rolled_back_ticks_are_not_history(tmp_path: Path) -> None:
    for tick in (1, 2, 3):
        measures.write(str(tmp_path), result(tick, rows(tick), as_of=AT + tick * FIVE), AT)

    measures.take_back(str(tmp_path), 1)
    measures.take_back(str(tmp_path), 1, "dev")

    assert [(r["tick"], r["published"]) for r in measures.read(str(tmp_path))] == [(1, True), (2, False), (3, False)]


@pytest.mark.slow
def test_maintenance_deletes_measures_of_old_ticks(tmp_path: Path) -> None:
    for tick, weeks in ((1, 30), (2, 11), (3, 9), (4, 0)):
        measures.write(str(tmp_path), result(tick, rows(tick), as_of=AT - timedelta(weeks=weeks)), AT)

    measures.forget(str(tmp_path), 2, AT)
    assert [r["tick"] for r in measures.read(str(tmp_path))] == [2, 3, 4]

    measures.forget(str(tmp_path), 4, AT)
    assert [r["tick"] for r in measures.read(str(tmp_path))] == [3, 4]


def test_a_failed_write_is_reported(tmp_path: Path) -> None:
    (tmp_path / "_sqlrun").write_text("not a folder")

    with pytest.raises(EngineError, match="measures of tick 1"):
        measures.write(str(tmp_path), result(1, rows(1)), AT)
