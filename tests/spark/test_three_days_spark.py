"""The three days' script on Spark and Delta, fewer ticks."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.spark import SparkEngine
from tests.projects import Site, copy_project
from tests.script import play

# py4j leaves the sockets of finished threads to the garbage collector.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_every_tick_is_true_on_spark(tmp_path: Path, engine: SparkEngine) -> None:
    """The same script and the same oracles as on DuckDB, the first twenty minutes of it."""
    site = Site(copy_project(tmp_path), engine)

    assert play(site, 4) == 5
