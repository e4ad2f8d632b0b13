"""The three days' script on Spark and Delta, fewer ticks."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from tests.support.alternating import at_random, auto
from tests.support.projects import Site, copy_project
from tests.support.script import play

# py4j leaves the sockets of finished threads to the garbage collector.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_every_tick_is_true_on_spark(tmp_path: Path, engine: SparkEngine) -> None:
    """The same script and the same oracles as on DuckDB, the first twenty minutes of it."""
    site = Site(copy_project(tmp_path), engine)

    assert play(site, 4) == 5


@pytest.mark.long
def test_every_tick_is_true_with_engines_that_alternate(tmp_path: Path, engine: SparkEngine) -> None:
    """All two hours of it: each table of each tick is one engine's, which is drawn; Spark's is one in twelve."""
    site = Site(copy_project(tmp_path), auto(engine))

    with at_random("8", 1 / 12) as drawn:
        assert play(site, 24) == 25

    assert {"spark", "duckdb"} <= set(drawn)
