"""The three days' script through a topic on Spark and Delta, fewer ticks."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from tests.support.from_kafka import played
from tests.support.servers import jars
from tests.support.servers.kafka import Broker

# py4j leaves the sockets of finished threads to the garbage collector.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_every_tick_through_a_topic_is_true_on_spark(tmp_path: Path, broker: Broker, engine: SparkEngine) -> None:
    """The same script and the same oracles as on DuckDB, the first ten minutes of it."""
    jars.needed(jars.SPARK_KAFKA)

    assert played(tmp_path, engine, broker, 2) == 3
