"""A sample of the random queries on Spark: its own rules' results against its own whole queries."""

from __future__ import annotations

from typing import Any

import pytest

from sqlrun.errors import ProjectError
from tests.fuzz.running import Statistics, play, search
from tests.spark.spark_memory import SparkMemory
from tests.support.case_files import Case

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SHARDS, EXAMPLES = 4, 10


@pytest.mark.parametrize("number", range(SHARDS))
@pytest.mark.long
def test_random_queries_on_spark(small_session: Any, number: int) -> None:
    """Spark's text of the same rules, with Spark's own arithmetic, comparisons and NULLs."""

    def checked(case: Case, statistics: Statistics) -> None:
        statistics.examples += 1
        try:
            memory = SparkMemory(case.tables, case.views, session=small_session)
        except ProjectError as error:
            statistics.refused[error.problems[0].code] += 1
            return
        play(case, memory, statistics, evaluated=True)

    statistics = Statistics()
    search(1000 + number, EXAMPLES, checked, statistics, most=3, shrink=False)

    assert statistics.examples - sum(statistics.refused.values()) >= EXAMPLES // 2
