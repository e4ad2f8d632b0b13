"""`sqlrun source freshness`: the newest event of a source against its limits, and dbt's sources.json."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from dbt_artifacts_parser.parsers.manifest.manifest_v12 import ManifestV12
from dbt_artifacts_parser.parsers.sources.sources_v3 import SourcesV3

from sqlrun.artifacts.nodes import criteria
from sqlrun.cli.main import main
from sqlrun.commands.freshness import source_freshness
from sqlrun.errors import Place
from sqlrun.project import Freshness

# When the newest order of the test's files was made, which isn't in the future.
NEWEST = datetime(2026, 1, 2, 12, 0, tzinfo=timezone.utc)
LINE = '{"order_id": "%s", "customer_id": "c", "ordered_at": "%s", "status": "paid", "amount": 1.50}\n'


def run(root: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["--project-dir", str(root), *words])


def cafe(folder: Path, limits: str) -> Path:
    """Make a starter project with two orders, one of them in the far future."""
    root = folder / "cafe"
    CliRunner().invoke(main, ["init", str(root)])
    for file in (root / "data" / "orders").iterdir():
        file.unlink()
    times = ("2026-01-01T00:00:00Z", "2026-01-02T12:00:00Z", "2999-01-01T00:00:00Z")
    lines = "".join(LINE % (f"o{number}", at) for number, at in enumerate(times))
    (root / "data" / "orders" / "1.jsonl").write_text(lines)
    model = root / "models" / "staging" / "stg_orders.yml"
    fresh = f"event_time: ordered_at\n    freshness: {limits}\n    columns:"
    model.write_text(model.read_text().replace("columns:", fresh, 1))
    return root


def read(root: Path) -> Any:
    found = json.loads((root / "target" / "sources.json").read_text())
    SourcesV3(**found)
    return found["results"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("age", "status", "code"),
    [
        (timedelta(minutes=59), "pass", 0),
        (timedelta(hours=1, seconds=1), "warn", 0),
        (timedelta(days=2), "error", 1),
    ],
)
def test_the_newest_event_up_to_now_decides(tmp_path: Path, age: timedelta, status: str, code: int) -> None:
    root = cafe(tmp_path, "{warn_after: 1 hour, error_after: 1 day}")
    assert run(root, "build", "--skip-tests", "--as-of", "2026-01-02T12:05").exit_code == 0

    assert source_freshness(root, None, None, None, NEWEST + age) == code
    (one,) = read(root)
    assert (one["unique_id"], one["status"]) == ("source.cafe.raw.orders", status)
    assert one["max_loaded_at"] == "2026-01-02T12:00:00.000000Z"
    assert one["max_loaded_at_time_ago_in_s"] == age.total_seconds()
    assert one["criteria"]["warn_after"] == {"count": 1, "period": "hour"}


def test_it_prints_a_line_for_each_source(tmp_path: Path) -> None:
    root = cafe(tmp_path, "{error_after: 1 hour}")
    assert run(root, "build", "--skip-tests", "--quiet", "--as-of", "2026-01-02T12:05").exit_code == 0
    done = run(root, "source", "freshness", "raw.orders")

    assert done.exit_code == 1
    assert "1 of 1 FAIL freshness of raw.orders: " in done.output and "(error after 1 h)" in done.output
    assert "Wrote target/sources.json" in done.output
    manifest = json.loads((root / "target" / "manifest.json").read_text())
    ManifestV12(**manifest)
    source = manifest["sources"]["source.cafe.raw.orders"]
    assert (source["loaded_at_field"], source["freshness"]["error_after"]["count"]) == ("ordered_at", 1)


@pytest.mark.slow
def test_a_source_without_events_is_an_error(tmp_path: Path) -> None:
    root = cafe(tmp_path, "{warn_after: 1 hour}")
    (root / "data" / "orders" / "1.jsonl").write_text("")
    assert run(root, "build", "--skip-tests", "--quiet").exit_code == 0
    done = run(root, "source", "freshness")

    assert done.exit_code == 1 and "no event" in done.output
    assert read(root) == [
        {"unique_id": "source.cafe.raw.orders", "error": "no event has landed", "status": "runtime error"}
    ]


@pytest.mark.slow
def test_a_project_without_limits_says_so(tmp_path: Path) -> None:
    root = tmp_path / "cafe"
    CliRunner().invoke(main, ["init", str(root)])
    assert run(root, "source", "freshness").exit_code == 2  # nothing is published
    assert run(root, "build", "--skip-tests", "--quiet").exit_code == 0
    done = run(root, "source", "freshness")

    assert done.exit_code == 0 and "No landing model declares `event_time` and `freshness`." in done.output
    assert read(root) == []
    assert run(root, "source", "freshness", "raw.order").exit_code == 2


@pytest.mark.parametrize(
    ("seconds", "limit"),
    [
        (None, {"count": None, "period": None}),
        (90.0, {"count": 2, "period": "minute"}),
        (1800.0, {"count": 30, "period": "minute"}),
        (5400.0, {"count": 90, "period": "minute"}),
        (7200.0, {"count": 2, "period": "hour"}),
        (86400.0, {"count": 1, "period": "day"}),
    ],
)
def test_limits_have_dbt_s_form(seconds: float | None, limit: dict[str, object]) -> None:
    assert criteria(Freshness(Place("x"), warn_after=seconds))["warn_after"] == limit
