"""One Spark session for all tests of the process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sqlrun.engines.spark import SparkEngine


@pytest.fixture(scope="session")
def engine() -> Iterator[SparkEngine]:
    made = SparkEngine({"spark.driver.memory": "2g"})
    made.start()
    yield made
    made.close()
