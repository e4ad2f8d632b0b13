"""The three days' script on Spark and Delta, fewer ticks."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.spark import SparkEngine
from tests.projects import Site, copy_project
from tests.script import play

pytestmark = pytest.mark.spark


def test_every_tick_is_true_on_spark(tmp_path: Path, engine: SparkEngine) -> None:
    """The same script and the same oracles as on DuckDB, up to the skipped and the empty tick."""
    site = Site(copy_project(tmp_path), engine)

    assert play(site, 5) == 6
