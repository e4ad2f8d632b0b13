"""--fail-fast: no further table begins after a failure, and nothing is published, as without it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sqlrun.run import scheduler
from tests.artifacts.test_artifacts import project, read, run

pytestmark = pytest.mark.slow
CHECK = "expectations:\n  - type: expect_table_row_count_to_equal\n    kwargs: {value: 7}\n"


def statuses(root: Path, *words: str) -> dict[str, str]:
    assert run(root, "build", "--threads", "1", *words).exit_code == 1
    results = read(root, "run_results.json")["results"]
    return {one["unique_id"].split(".")[2]: one["status"] for one in results if one["unique_id"].startswith("model.")}


def test_no_table_begins_after_an_error(tmp_path: Path) -> None:
    project(
        tmp_path,
        models__a_sql="select cast(if(id = 1, 'x', '1') as int) as id from {{ ref('raw') }}",
        models__b_sql="select id from {{ ref('raw') }}",
        models__c_sql="select id from {{ ref('b') }}",
    )

    assert statuses(tmp_path) == {"a": "error", "b": "success", "c": "success"}
    # b begins first, because c waits for it.
    assert statuses(tmp_path, "--fail-fast") == {"a": "error", "b": "success", "c": "skipped"}
    assert "nothing is published" in run(tmp_path, "show", "b").output


def test_models_that_others_wait_for_begin_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(
        tmp_path,
        models__a_sql="select id from {{ ref('raw') }}",
        models__b_sql="select id from {{ ref('raw') }}",
        models__c_sql="select id from {{ ref('b') }}",
        models__d_sql="select id from {{ ref('c') }}",
    )
    begun, maintain = list[str](), scheduler.maintain

    def noted(context: Any, model: Any, *rest: Any) -> Any:
        begun.append(model.name)
        return maintain(context, model, *rest)

    monkeypatch.setattr(scheduler, "maintain", noted)

    assert run(tmp_path, "build", "--threads", "1").exit_code == 0
    assert begun == ["b", "c", "a", "d"]


def test_a_failed_check_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The readers of a table wait for its maintenance, not for its checks, so the first of them may have begun."""
    project(
        tmp_path,
        models__a_sql="select id from {{ ref('raw') }}",
        models__b_sql="select id from {{ ref('a') }}",
        models__c_sql="select id from {{ ref('b') }}",
        expectations__a_yml=CHECK,
    )
    checked, check, maintain = threading.Event(), scheduler.check, scheduler.maintain

    def noted(context: Any, model: Any, *rest: Any) -> Any:
        found = check(context, model, *rest)
        if model.name == "a":
            checked.set()
        return found

    def late(context: Any, model: Any, *rest: Any) -> Any:
        if model.name == "b":
            assert checked.wait(60)
            time.sleep(0.5)
        return maintain(context, model, *rest)

    monkeypatch.setattr(scheduler, "check", noted)
    monkeypatch.setattr(scheduler, "maintain", late)

    assert statuses(tmp_path, "-x") == {"a": "success", "b": "skipped", "c": "skipped"}


def test_a_published_tick_is_the_same(tmp_path: Path) -> None:
    project(tmp_path, models__a_sql="select id from {{ ref('raw') }}", models__b_sql="select id from {{ ref('a') }}")

    assert run(tmp_path, "build", "--fail-fast").exit_code == 0
    assert run(tmp_path, "verify").exit_code == 0
