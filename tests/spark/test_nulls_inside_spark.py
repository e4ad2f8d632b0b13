"""Columns that may be NULL inside, on Spark: the same rows and reasons as on DuckDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from tests.land import test_nulls_inside

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_values_inside_may_be_missing(tmp_path: Path, engine: SparkEngine) -> None:
    test_nulls_inside.holds(test_nulls_inside.site(tmp_path, engine))
