"""Random lines: Spark judges them as a strict reader in plain Python does, and parts files into the same lines."""

from __future__ import annotations

import random

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from tests.incremental.test_line_fuzz import LINES
from tests.line_fuzz import judges, spark_judge
from tests.line_fuzz.mutations import Lines
from tests.line_fuzz.sources import SOURCES, sources

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.parametrize("name", list(SOURCES))
def test_spark_judges_lines_as_a_strict_reader_does(name: str, engine: SparkEngine) -> None:
    source, counts = sources()[name], judges.Counts()
    data = Lines.of(source, random.Random(name)).file(LINES)
    with spark_judge.judging_by_spark(engine) as judge:
        assert judges.differences(judges.by_python(source, data), judge(source, data), counts) == []
    assert LINES / 8 < counts.landed < counts.lines
