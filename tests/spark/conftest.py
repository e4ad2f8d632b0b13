"""One Spark session for all tests of the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sqlrun.engines.spark.engine import SparkEngine


@pytest.fixture(scope="session")
def engine() -> Iterator[SparkEngine]:
    made = SparkEngine({"spark.driver.memory": "1500m"})
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="session")
def small_session(engine: SparkEngine) -> Any:
    """A session of its own for tests that change settings and make views."""
    return engine._spark.newSession()
