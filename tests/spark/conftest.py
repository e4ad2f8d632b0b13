"""One Spark session for all tests of the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from tests.support.servers import jars


def connectors() -> dict[str, str]:
    """Return the setting for the jars of the Kafka connector, if they can be had."""
    try:
        return {"spark.jars": ",".join(map(str, jars.SPARK_KAFKA.files()))}
    except jars.MissingError:
        return {}


@pytest.fixture(scope="session")
def engine() -> Iterator[SparkEngine]:
    from pyspark import SparkContext

    # A JVM outlives its session, and a later session has the jars of the first: a test with its own runs it apart.
    assert SparkContext._gateway is None, "a test has started a JVM in this process"
    # Delta's VACUUM lists the files of a table in 10,000 tasks otherwise.
    listing = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "2"}
    made = SparkEngine({"spark.driver.memory": "1500m", **listing, **connectors()})
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="session")
def small_session(engine: SparkEngine) -> Any:
    """A session of its own for tests that change settings and make views."""
    return engine._spark.newSession()
