"""Histories on Spark: the same versions as on DuckDB, by the same judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from tests.maintain.test_histories import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("unchecked")]


def test_each_tick_adds_the_versions_that_it_sees(engine: SparkEngine, tmp_path: Path) -> None:
    shop = Shop(tmp_path, 1, engine)
    for number in range(3):
        shop.change()
        shop.tick(refresh=number == 1)
