"""run_results.json: whole at any moment, in dbt's shape."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engine_api import Receipt
from sqlrun.errors import SqlrunError
from sqlrun.events import Event, NodeResult, StageReceipt, Started, Status, TickResult
from sqlrun.report.run_results_file import Artifacts
from sqlrun.runtime import atomic_files
from sqlrun.version import __version__
from tests.report.test_report import AS_OF, check

START = datetime(2026, 1, 1, 12, 5, tzinfo=timezone.utc)
# What dbt's own readers know; they refuse a file with more.
KEYS = {
    "unique_id", "status", "timing", "thread_id", "execution_time", "adapter_response", "message", "failures",
    "compiled", "compiled_code", "relation_name", "batch_results",
}  # fmt: skip
METADATA = {"dbt_schema_version", "dbt_version", "generated_at", "invocation_id", "invocation_started_at", "env"}


class Clock:
    """Each look at it takes a second."""

    def __init__(self) -> None:
        self.now = START - timedelta(seconds=1)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def read(folder: Path) -> Any:
    return json.loads((folder / "run_results.json").read_text())


def test_many_steps_are_not_written_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write contains all results, so writes for each step would grow with the square of the steps."""
    artifacts = Artifacts(tmp_path, "shop", Clock())
    counts, put = list[int](), atomic_files.put

    def counted(path: Path, text: str, *, synced: bool) -> None:
        counts.append(len(json.loads(text)["results"]))
        put(path, text, synced=synced)

    monkeypatch.setattr(atomic_files, "put", counted)
    monkeypatch.setattr("sqlrun.report.run_results_file.PAUSE", 3600.0)
    for number in range(1, 1001):
        status: Status = "error" if number == 700 else "success"
        artifacts.emit(NodeResult(number, 1000, f"m{number}", "merge", status, 0.1))

    assert counts == [*range(1, 101), 700]
    artifacts.finish(TickResult(12, AS_OF, False, 4.5, (), ()))
    assert counts[-1] == 1000


def test_the_file_is_in_dbt_s_shape(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path / "target", "shop", Clock(), {"threads": 4})
    own = StageReceipt("orders", "merge", "SR501", 20, 3, Receipt(0.7, rows_written=20, commits=1))
    hidden = StageReceipt("orders__state_1", "merge", "SR501", 9, 2, Receipt(0.1))
    node = NodeResult(1, 1, "orders", "merge", "success", 0.8, 20, 1, stages=(hidden, own))
    good = check(check_id="f81f8a0b1929b6a6")
    bad = check("fail", 3, samples=("order_id=é",), message="3 unexpected", check_id="0a1b2c3d4e5f6071")
    artifacts.emit(Started(1, 1, "merge model orders"))
    for event in (node, good, bad):
        artifacts.emit(event)
    artifacts.finish(TickResult(12, AS_OF, False, 4.5, (node,), (good, bad)))
    found = read(tmp_path / "target")

    assert set(found) == {"metadata", "results", "elapsed_time", "args"}
    assert set(found["metadata"]) == METADATA
    assert found["metadata"]["dbt_schema_version"] == "https://schemas.getdbt.com/dbt/run-results/v6.json"
    assert found["metadata"]["dbt_version"] == f"1.12.0+sqlrun.{__version__}"
    assert found["metadata"]["invocation_started_at"] == "2026-01-01T12:05:00.000000Z"
    assert found["elapsed_time"] == 4.5
    assert found["args"] == {
        "which": "build", "threads": 4, "tick": 12, "as_of": "2026-01-01T12:05:00+00:00", "published": False,
    }  # fmt: skip
    assert all(set(result) == KEYS for result in found["results"])
    assert [(result["unique_id"], result["status"], result["failures"]) for result in found["results"]] == [
        ("model.shop.orders", "success", None),
        ("test.shop.expect_column_values_to_be_between_stg_orders_order_total_f81f8a.f81f8a0b19", "pass", 0),
        ("test.shop.expect_column_values_to_be_between_stg_orders_order_total_0a1b2c.0a1b2c3d4e", "fail", 3),
    ]
    model, _, test = found["results"]
    assert model["timing"] == [
        {
            "name": "execute",
            "started_at": "2026-01-01T12:05:02.200000Z",
            "completed_at": "2026-01-01T12:05:03.000000Z",
        }
    ]
    response = model["adapter_response"]
    assert [response[key] for key in ("rows_affected", "rows_quarantined", "version", "strategy", "reason")] == [
        20, 1, 3, "merge", "SR501",
    ]  # fmt: skip
    assert [table["table"] for table in response["tables"]] == ["orders__state_1", "orders"]
    assert response["tables"][1]["receipt"]["rows_written"] == 20
    assert test["adapter_response"]["samples"] == ["order_id=é"]
    assert test["adapter_response"]["place"] == "expectations/staging/stg_orders.yml:12:5"
    assert test["message"] == "3 unexpected"


def test_every_result_is_in_the_file_as_soon_as_it_is_emitted(tmp_path: Path) -> None:
    (tmp_path / "run_results.json").write_text("of the build before")
    artifacts = Artifacts(tmp_path, "shop", Clock())
    counts = [len(read(tmp_path)["results"])]
    events: list[Event] = [
        Started(1, 2, "seed dishes"),
        NodeResult(1, 2, "dishes", "", "error", 0.1, message="\ud800"),
        check(),
        check("error", message="no column"),
        NodeResult(2, 2, "orders", "merge", "skipped", 0.0),
    ]
    for event in events:
        artifacts.emit(event)
        counts.append(len(read(tmp_path)["results"]))
    results = read(tmp_path)["results"]

    assert counts == [0, 0, 1, 2, 3, 4]
    assert results[0]["unique_id"] == "seed.shop.dishes"
    assert results[2]["failures"] is None
    assert results[3]["timing"] == []
    assert [file.name for file in tmp_path.iterdir()] == ["run_results.json"]


def test_a_step_is_written_with_its_checks(tmp_path: Path) -> None:
    """They are told in one breath; what isn't a pass doesn't wait for the rest of them."""
    artifacts = Artifacts(tmp_path, "shop", Clock())
    events = (NodeResult(1, 1, "orders", "merge", "success", 0.8, follow=4), check(), check("warn", 3), check())
    counts = []
    for event in (*events, check(), check()):
        artifacts.emit(event)
        counts.append(len(read(tmp_path)["results"]))

    assert counts == [0, 0, 3, 3, 5, 6]


def test_what_a_step_has_written_outlives_a_power_cut_though_its_checks_are_not_worth_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    artifacts = Artifacts(tmp_path, "shop", Clock())
    monkeypatch.setattr("os.fsync", synced.append)
    counts = []
    for event in (NodeResult(1, 1, "orders", "merge", "success", 0.8, follow=2), check(), check(), check()):
        artifacts.emit(event)
        counts.append(len(synced))

    assert counts == [0, 0, 2, 2]  # the file and its folder


def test_a_folder_that_cannot_be_written_is_reported_first(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("a file")

    with pytest.raises(SqlrunError, match=r"can't write .*run_results\.json"):
        Artifacts(tmp_path / "target", "shop", Clock())


def test_a_full_disk_does_not_stop_a_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifacts = Artifacts(tmp_path, "shop", Clock())

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        artifacts.emit(NodeResult(1, 1, "orders", "merge", "success", 0.1))
        with pytest.raises(SqlrunError, match="No space left on device"):
            artifacts.finish(TickResult(1, AS_OF, True, 1.0, ()))
    assert read(tmp_path)["results"] == []
    assert [file.name for file in tmp_path.iterdir()] == ["run_results.json"]

    artifacts.finish(TickResult(1, AS_OF, True, 1.0, ()))

    assert [result["unique_id"] for result in read(tmp_path)["results"]] == ["model.shop.orders"]


@pytest.mark.parametrize("write", [atomic_files.write, atomic_files.put, atomic_files.write_new])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path, write) -> None:
    """As on a full disk: who comes next finds no half of a file, under whatever name."""
    file = tmp_path / "file"
    file.write_text("old")

    with pytest.raises(UnicodeEncodeError):
        write(file, "new \ud800")

    assert [(f.name, f.read_text()) for f in tmp_path.iterdir()] == [("file", "old")]
