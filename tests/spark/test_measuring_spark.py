"""Both engines measure the same in a tick."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from tests.check.test_measuring import FRESH, lines, project
from tests.support.projects import Site
from tests.support.script import FIVE, START

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_spark_and_duckdb_measure_the_same(engine: SparkEngine, tmp_path: Path) -> None:
    sites = [Site(project(tmp_path / each.name, FRESH), each) for each in (engine, DuckDBEngine())]
    first = [*lines(40, START, nulls=0.25), "no json", '{"id": "x", "more": 1, "amount": null, "sold_at": null}']
    found = []
    for site in sites:
        site.write("1.jsonl", first)
        one = site.tick(START)
        site.write("2.jsonl", lines(7, START + FIVE, late=timedelta(hours=1)))
        site.write("3.jsonl", lines(3, START + FIVE))
        two = site.tick(START + FIVE)
        found.append([sorted(result.measures, key=lambda m: (m.subject, m.measure)) for result in (one, two)])
        said = [check.message for result in (one, two) for check in result.checks if check.type == "freshness"]
        found[-1].append(said)

    assert found[0] == found[1]
    values = {m.measure: m.value for m in found[0][1] if m.subject == "stg"}
    assert (values["rows"], values["files"], values["freshness_seconds"]) == (10.0, 2.0, 150.0)
    assert {m.measure: m.value for m in found[0][0]}["rescued"] == 1.0
