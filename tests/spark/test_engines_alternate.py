"""Two engines on one warehouse, tick by tick: Spark lands, and either maintains what the other has written."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from tests.run.test_machine import QUERIES, project
from tests.support.projects import Site
from tests.support.script import FIVE, START
from tests.support.whole import differences

pytestmark = [pytest.mark.spark, pytest.mark.slow]
BELOW = tuple(name for name in QUERIES if name != "stg_lines")


def lines(step: int) -> list[str]:
    """Two new sales, one corrected, one that comes twice."""
    at = START + step * FIVE
    rows = [(f"{step}a", 1, 3), (f"{step}b", 1, 5), (f"{step}b", 1, 5), (f"{max(step - 1, 0)}a", 2, 7)]
    return [
        json.dumps({"id": i, "version": v, "shop": "xyz"[n % 3], "amount": f"{amount}.00",
                    "sold_at": f"{at - timedelta(minutes=n):%Y-%m-%dT%H:%M:%SZ}"})
        for n, (i, v, amount) in enumerate(rows)
    ]  # fmt: skip


def test_engines_alternate(engine: SparkEngine, tmp_path: Path) -> None:
    """Whole ticks of Spark, ticks in which it lands and DuckDB maintains, and idle ones of DuckDB: each is true."""
    spark = Site(project(tmp_path / "shops"), engine)
    duckdb = Site(spark.root, DuckDBEngine())
    for step, (lands, maintains) in enumerate(
        [("spark", "spark"), ("spark", "duckdb"), ("", "duckdb"), ("spark", "duckdb"), ("spark", "spark")]
    ):
        at = START + step * FIVE
        if lands:
            spark.write(f"{step}.jsonl", lines(step))
        if maintains == "spark":
            assert spark.tick(at).published
        else:
            assert not lands or spark.tick(at, ("stg_lines",)).published
            assert duckdb.tick(at, () if not lands else BELOW).published
        assert differences(duckdb, at) == {}, step

    spark.write("more.jsonl", lines(9))
    refused = duckdb.tick(START + 9 * FIVE)

    assert not refused.published
    assert "the engine spark landed" in next(node.message for node in refused.nodes if node.message)
