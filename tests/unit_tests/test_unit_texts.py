"""Statements of unit tests are compiled once: the next run reads them from the cache while they are the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlrun import pipeline
from sqlrun.runtime.disk_cache import Cache
from sqlrun.unit_tests import project_tests
from sqlrun.unit_tests.run.results import TestResult
from tests.support import broken
from tests.support.marks import rest_slow

TESTS = """\
unit_tests:
  - name: steps
    model: top
    given:
      - {input: ref('once'), rows: [{id: 1}, {id: 2}]}
    expect: {rows: [{id: 3}, {id: 5}]}
    then:
      - changes: [{input: ref('once'), left: [{id: 1}], came: [{id: 4}]}]
        expect: {rows: [{id: 5}, {id: 9}]}
"""
FILES = {
    "seeds/once.csv": "id\n1\n",
    "seeds/once.yml": broken.contract("once").replace("models:", "seeds:"),
    "models/twice.sql": "select id * 2 as id from {{ ref('once') }}\n",
    "models/twice.yml": broken.contract("twice"),
    "models/top.sql": "select id + 1 as id from {{ ref('twice') }}\n",
    "models/top.yml": broken.contract("top") + TESTS,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return broken.write(tmp_path, FILES)


def run(root: Path) -> tuple[TestResult, Mapping[str, int]]:
    """Run the test as a separate process would; return the number of compiled statements by kind."""
    cache = Cache.of(root)
    assert cache is not None
    prepared = pipeline.prepare(root, cache)
    (result,) = project_tests.results_of(prepared, project_tests.tests_of(prepared), cache)
    cache.save()
    return result, {kind: cache.made.get(kind, 0) for kind in ("statement", "whole query", "duckdb")}


@pytest.mark.slow
def test_the_second_run_compiles_nothing(root: Path) -> None:
    first, written = run(root)
    second, again = run(root)

    assert (first.status, second.status) == ("pass", "pass"), (first, second)
    assert min(written.values()) > 0
    assert set(again.values()) == {0}


@pytest.mark.parametrize(
    ("file", "old", "new", "status"),
    rest_slow(
        [
            ("models/twice.sql", "id * 2", "id * 3", "fail"),
            ("models/twice.sql", "id * 2", "id + id", "pass"),
            ("models/top.sql", "id + 1", "id + 2", "fail"),
            ("seeds/once.yml", "'int'", "'bigint'", "pass"),
            ("models/twice.yml", "'int'", "'decimal(18,2)'", "pass"),
        ],
        fast=2,
    ),
)
@pytest.mark.slow
def test_an_edit_compiles_dependent_texts_again(root: Path, file: str, old: str, new: str, status: str) -> None:
    """A model in the chain, one below it, a type of an input."""
    run(root)
    text = (root / file).read_text()
    assert old in text
    (root / file).write_text(text.replace(old, new))

    result, written = run(root)

    assert result.status == status, result
    assert written["statement"] > 0


@pytest.mark.slow
def test_given_rows_do_not_affect_texts(root: Path) -> None:
    run(root)
    file = root / "models/top.yml"
    file.write_text(file.read_text().replace("{id: 2}]}", "{id: 7}]}"))

    result, written = run(root)

    assert (result.status, written["statement"]) == ("fail", 0)
