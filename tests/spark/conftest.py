"""One Spark session for all tests of the process."""

from __future__ import annotations

import gc
import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.spark import object_store
from sqlrun.engines.spark.engine import SparkEngine
from tests.support.servers import jars

# Spark prints nothing (sqlrun turns its log off), so why a session ended would stay unknown.
LOG = """\
rootLogger.level = error
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%ex{{6}}
logger.context.name = org.apache.spark.SparkContext
logger.context.level = info
"""
# Last characters of the log that the message shows.
SHOWN = 3_000
# Tests between two times of clearing the session's memory.
CLEARED = 10


def connectors() -> dict[str, str]:
    """Return the settings for the jars of the Kafka connector, if there are any, and with STORE=s3 for those of S3."""
    found: list[Path] = []
    in_s3 = os.environ.get("STORE") == "s3"
    with suppress(jars.MissingError):
        found += jars.SPARK_KAFKA.files()
    if not in_s3:
        return {"spark.jars": ",".join(map(str, found))} if found else {}
    jars.spark_jar()
    found += jars.S3A.files()
    settings = object_store.settings({}, os.environ)
    return {"spark.jars": ",".join(map(str, found)), "spark.sqlrun.connectors": "s3", **settings}


@pytest.fixture(scope="session")
def spark_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of Spark's errors."""
    return tmp_path_factory.mktemp("spark") / "spark.log"


@pytest.fixture(scope="session")
def engine(spark_log: Path) -> Iterator[SparkEngine]:
    from pyspark import SparkContext

    # A JVM outlives its session, and a later session has the jars of the first: a test with its own runs it apart.
    assert SparkContext._gateway is None, "a test has started a JVM in this process"
    log4j = spark_log.with_name("log4j2.properties")
    log4j.write_text(LOG.format(file=spark_log))
    settings = {
        "spark.driver.memory": "3g",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        # Delta's VACUUM lists the files of a table in 10,000 tasks otherwise.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    made = SparkEngine(settings | connectors())
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="session")
def small_session(engine: SparkEngine) -> Any:
    """A session of its own for tests that change settings and make views."""
    return engine._spark.newSession()


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    """The tests on the shared session, counted."""
    return itertools.count(1)


@pytest.fixture(autouse=True)
def session_lasts(request: pytest.FixtureRequest, spark_log: Path, numbers: Iterator[int]) -> Iterator[None]:
    """End the run with Spark's reason once the shared session has ended: each later test would fail without one."""
    yield
    if "engine" not in request.fixturenames:
        return
    engine = request.getfixturevalue("engine")
    if _has_ended(engine):
        pytest.exit(f"Spark's session has ended in {request.node.nodeid}:\n{spark_log.read_text()[-SHOWN:]}", 1)
    if next(numbers) % CLEARED == 0:
        _clear(engine)


def _clear(engine: SparkEngine) -> None:
    """Forget the tables of earlier tests: Delta keeps each one's log for an hour, and Python each query until it looks.

    They filled 1.2 GB after 600 tests; the JVM then looked for garbage all the time, and gave up.
    """
    gc.collect()
    engine._spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]


def _has_ended(engine: SparkEngine) -> bool:
    from py4j.protocol import Py4JError

    try:
        return bool(engine._spark.sparkContext._jsc.sc().isStopped())  # type: ignore[union-attr]
    except Py4JError:  # the JVM itself
        return True
