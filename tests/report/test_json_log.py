"""A build's log as JSON lines, in the form of dbt's structured logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.events import NodeResult, Note, Started
from sqlrun.report.json_log import JsonLog
from sqlrun.report.log_lines import Line
from tests.report.test_report import AS_OF, check

LOG = JsonLog("an id", "shop", 7, {"model.shop.orders", "seed.shop.dishes", "test.shop.not_null_orders_id.f81f8a0b19"})


def of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    assert set(found) == {"info", "data"} and "\n" not in text
    assert (found["info"]["invocation_id"], found["info"]["pid"]) == ("an id", 7)
    return found


def test_a_step_is_a_start_and_a_result() -> None:
    start = of(LOG.event(Started(1, 2, "merge model orders"), AS_OF))
    done = of(LOG.event(NodeResult(1, 2, "orders", "merge", "success", 1.5, 20), AS_OF, "merge model orders"))

    assert start["info"]["name"] == "LogStartLine"
    assert start["data"]["node_info"]["unique_id"] == "model.shop.orders"
    assert (done["info"]["name"], done["info"]["level"], done["data"]["status"]) == (
        "LogModelResult",
        "info",
        "success",
    )
    node = done["data"]["node_info"]
    assert (node["unique_id"], node["node_status"]) == ("model.shop.orders", "success")
    assert node["node_started_at"] < node["node_finished_at"] == "2026-01-01T12:05:00.000000Z"
    assert "20 rows" in done["info"]["msg"]


def test_seeds_and_errors_have_their_names_and_levels() -> None:
    seed = of(LOG.event(NodeResult(1, 2, "dishes", "seed", "success", 0.1), AS_OF))
    bad = of(LOG.event(NodeResult(2, 2, "orders", "merge", "error", 0.1, message="no such column"), AS_OF))

    assert (seed["info"]["name"], seed["data"]["node_info"]["resource_type"]) == ("LogSeedResult", "seed")
    assert (bad["info"]["level"], bad["data"]["status"]) == ("error", "error")


def test_a_check_is_a_test_with_its_id() -> None:
    about = {"model": "orders", "type": "expect_column_values_to_not_be_null", "columns": ("id",)}
    bad = of(LOG.event(check("fail", 3, check_id="f81f8a0b1929b6a6", **about), AS_OF))

    assert bad["info"]["name"] == "LogTestResult"
    assert bad["data"]["node_info"]["unique_id"] == "test.shop.not_null_orders_id.f81f8a0b19"
    assert (bad["data"]["status"], bad["data"]["num_failures"]) == ("fail", 3)


def test_results_of_other_nodes_are_notes() -> None:
    """Readers look for a result's node among those that they asked for."""
    events = (
        Started(1, 1, "merge model days"),
        NodeResult(1, 1, "days", "merge", "no-op", 0.0),
        check(),
        Note("the clock went back"),
    )
    for event in events:
        found = of(LOG.event(event, AS_OF))
        assert found["info"]["name"] == "Note" and "node_info" not in found["data"]
    assert of(LOG.note(Line("late", style="warning"), AS_OF))["info"]["level"] == "warn"
    assert of(LOG.failure("a\nb", AS_OF))["info"] | {"name": "MainEncounteredError", "level": "error", "msg": "a\nb"}


def test_a_build_prints_nothing_but_json(tmp_path: Path) -> None:
    root = tmp_path / "cafe"
    CliRunner().invoke(main, ["init", str(root)])
    done = CliRunner().invoke(main, ["--project-dir", str(root), "build", "--log-format", "json"])
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    results = [line["data"]["node_info"]["unique_id"] for line in lines if line["info"]["name"].endswith("Result")]
    written = json.loads((root / "target" / "run_results.json").read_text())["results"]

    assert done.exit_code == 0
    assert sorted(results) == sorted(one["unique_id"] for one in written)
    assert any(line["info"]["msg"].startswith("Tick 1 published") for line in lines)


@pytest.mark.slow
def test_an_error_that_ends_a_build_is_an_event_and_on_stderr(tmp_path: Path) -> None:
    root = tmp_path / "cafe"
    CliRunner().invoke(main, ["init", str(root)])
    (root / "warehouse").write_text("a file")
    done = CliRunner().invoke(main, ["--project-dir", str(root), "build", "--log-format", "json"])
    last = json.loads(done.stdout.splitlines()[-1])

    assert done.exit_code != 0
    assert (last["info"]["name"], last["info"]["level"]) == ("MainEncounteredError", "error")
    assert last["info"]["msg"] in done.stderr
