"""Some of TPC-H's queries on Spark and real Delta tables: hidden sums, first rows, EXISTS, an outer join."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from tests.tpch.project import play

# py4j leaves the sockets of finished threads to the garbage collector.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
# None of them has a quotient: Spark divides decimals to decimals, DuckDB to doubles.
NAMES = ["q03", "q04", "q13", "q21"]


@pytest.mark.long
def test_queries_are_true_on_spark(tmp_path: Path, engine: SparkEngine) -> None:
    """After the load and a tick in which all changes at once."""
    assert play(tmp_path, engine, NAMES, (0, 5)) == {}
