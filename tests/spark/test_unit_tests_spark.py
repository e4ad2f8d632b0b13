"""Unit tests on Spark: the same as on DuckDB, a difference of the engines is found, and what DuckDB lacks passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqlrun import pipeline_cache
from sqlrun.parse import spark_only
from sqlrun.pipeline import prepare
from sqlrun.unit_tests import project_tests
from sqlrun.unit_tests.run import run as runner
from sqlrun.unit_tests.run.results import TestResult
from sqlrun.unit_tests.run.spark import OnSpark
from tests.support import broken
from tests.support.projects import prepared
from tests.unit_tests.test_unit_engine import HASHED

ROOT = Path(__file__).parent.parent.parent
pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(autouse=True)
def on_small_session(small_session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run tests in the session of all of Spark's tests."""
    monkeypatch.setattr(runner, "_computer", lambda engine: OnSpark(small_session))


def results(root: Path) -> list[TestResult]:
    project = prepared(root) if root == ROOT else prepare(root)
    return list(project_tests.results_of(project, project_tests.tests_of(project), engine="spark"))


@pytest.mark.long
def test_all_tests_of_the_reference_project_pass_on_spark_too() -> None:
    """Each compares what Spark says of every model with what DuckDB says, tick after tick."""
    found = results(ROOT)

    assert len(found) > 40
    assert [(one.name, one.status, one.message) for one in found if one.status != "pass"] == []


def test_a_function_of_spark_alone_passes_on_spark(tmp_path: Path) -> None:
    (found,) = results(broken.write(tmp_path, HASHED))

    assert found.status == "pass", found


def test_engines_that_differ_fail_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they would if sqlrun took a function for alike that isn't."""
    monkeypatch.setattr(spark_only, "problems", lambda *_: ())
    monkeypatch.setattr(pipeline_cache, "calls_alike", lambda *_: True)

    (found,) = results(broken.write(tmp_path, HASHED))

    assert (found.status, found.compared) == ("fail", "parity")
    assert "the engines differ on hashed" in found.message
    assert ("1", "-559580957") in found.unexpected
