"""Relationships on Spark find what they find on DuckDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from tests.load.test_promises import TO_SHOPS, of_type, promising, sale, shops
from tests.run.test_machine import project
from tests.support.projects import Site
from tests.support.script import FIVE, START

pytestmark = pytest.mark.spark


def test_unknown_keys_and_keys_that_left_are_counted(engine: SparkEngine, tmp_path: Path) -> None:
    root = project(tmp_path / "shops")
    shops(root, "x", "y")
    promising(root, "stg_sales", "shop", TO_SHOPS)
    site = Site(root, engine)
    site.write("1.jsonl", [sale("a", "x"), sale("b", "y"), sale("c", "y")])
    assert of_type(site.tick(START, select=("shops", "stg_lines", "stg_sales"))).status == "pass"
    shops(root, "x")
    site.write("2.jsonl", [sale("d", "q"), sale("e", "x")])

    found = of_type(Site(root, engine).tick(START + FIVE, select=("shops", "stg_lines", "stg_sales")))

    assert (found.status, found.evaluated, found.unexpected) == ("fail", 3, 3)
    assert found.samples == ("id=d, shop=q", "id=b, shop=y", "id=c, shop=y")
