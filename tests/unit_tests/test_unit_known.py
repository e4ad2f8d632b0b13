"""A build doesn't repeat passed unit tests while nothing has changed that they depend on."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from sqlrun import pipeline
from sqlrun.report.console import Console
from sqlrun.runtime.disk_cache import Cache
from sqlrun.unit_tests import command
from sqlrun.unit_tests.run.results import TestResult
from tests.support import broken
from tests.support.marks import rest_slow

TEST = """\
unit_tests:
  - name: doubles
    model: twice
    given:
      - {input: ref('once'), rows: [{id: 1}]}
    expect: {rows: [{id: 2}]}
"""
FILES = {
    "seeds/once.csv": "id\n1\n",
    "seeds/once.yml": broken.contract("once").replace("models:", "seeds:"),
    "models/twice.sql": "select id * {{ factor() }} as id from {{ ref('once') }}\n",
    "models/twice.yml": broken.contract("twice") + TEST,
    "macros/factor.sql": "{% macro factor() %}2{% endmacro %}\n",
}


def builds(root: Path) -> tuple[bool, bool]:
    """Return whether a build's tests passed, and whether they ran."""
    cache = Cache.of(root)
    prepared = pipeline.prepare(root, cache)
    with mock.patch.object(command, "results_of", side_effect=command.results_of) as run:
        ran = command.before_build(root, prepared, ("once", "twice"), Console(quiet=True), cache)
        return ran is not None, run.called


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return broken.write(tmp_path, FILES)


def test_passed_tests_do_not_run_again(root: Path) -> None:
    assert builds(root) == (True, True)
    assert builds(root) == (True, False)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    rest_slow(
        [
            ("macros/factor.sql", "2", "1 + 1"),
            ("models/twice.sql", "select id", "select id + 0"),
            ("models/twice.yml", "rows: [{id: 1}]", "rows: [{id: 1}, {id: 1}]"),
            ("seeds/once.csv", "1\n", "1\n7\n"),
            ("models/twice.yml", "doubles", "doubles_it"),
        ],
        fast=1,
    ),
)
@pytest.mark.slow
def test_tests_run_again_after_an_edit(root: Path, file: str, old: str, new: str) -> None:
    """A macro, the query, the given rows, a seed, a test's name: everything that a test can depend on."""
    builds(root)
    text = (root / file).read_text()
    assert old in text
    (root / file).write_text(text.replace(old, new))

    assert builds(root)[1]


@pytest.mark.slow
def test_failed_tests_run_until_they_pass(root: Path) -> None:
    builds(root)
    (root / "macros" / "factor.sql").write_text("{% macro factor() %}3{% endmacro %}\n")

    assert builds(root) == (False, True)
    assert builds(root) == (False, True)


def test_without_a_cache_all_tests_run(root: Path) -> None:
    prepared = pipeline.prepare(root)
    with mock.patch.object(command, "results_of", return_value=iter(())) as run:
        for _ in range(2):
            command.before_build(root, prepared, ("twice",), Console(quiet=True))

    assert run.call_count == 2


def test_the_summary_says_when_tests_ran() -> None:
    from sqlrun.errors import Place
    from sqlrun.unit_tests.output.shown import brief

    ran, known = (TestResult("doubles", "twice", Place("f"), "pass", seconds) for seconds in (0.5, 0.0))

    assert str(brief([ran])[0]).endswith("[PASS in 0.50s]")
    assert str(brief([known])[0]).endswith("[PASS before, unchanged since]")
