"""Queries of each way to be kept, on Spark and real Delta tables: hidden keys, NULL keys, one row, whole partitions."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from tests.support.operators import Play, write_project
from tests.support.projects import Site
from tests.support.script import START
from tests.support.whole import differences

# py4j leaves the sockets of finished threads to the garbage collector.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NAMES = (
    "hidden key", "one row", "full join", "anti join", "not in, tied", "in as a column", "scalar, tied",
    "except all", "cube",
    "distinct counts", "all and any", "extremes of what grows", "limit", "gaps", "clock in a sum", "clock and widths",
    "bag by partition", "explode in the select list",
)  # fmt: skip


@pytest.mark.long
def test_queries_are_true_on_spark(tmp_path: Path, engine: SparkEngine) -> None:
    """After the first tick, one of changes and one that jumps over a window."""
    site = Site(write_project(tmp_path, NAMES), engine)
    play, now = Play(tmp_path, 5), START
    for minutes in (0, 5, 90):
        now += timedelta(minutes=minutes)
        play.write(now, 40)

        result = site.tick(now)

        assert result.published, [node.message for node in result.nodes if node.message]
        assert differences(site, now) == {}
