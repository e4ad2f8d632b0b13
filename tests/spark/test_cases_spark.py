"""Every `.case` file on Spark: after each step the kept table equals Spark's own answer to the whole query.

Engines that alternate need no run of their own for each order of turns: after each step all tables, hidden columns
included, hold the rows that they hold on DuckDB, so whoever takes the next step begins with the same.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.incremental.test_incremental import CASES, FAULTS
from tests.spark.spark_memory import SparkMemory
from tests.support.case_files import Case
from tests.support.memory import Memory
from tests.support.playing import play

pytestmark = [pytest.mark.spark, pytest.mark.slow]


PLAYED = [c for c in CASES if not c.values[0].refuse and c.values[0].name not in FAULTS]
# Of each file every ninth case, the first one included, is played in `make test`, all of them in `make test-all`.
FEW = 9
KEPT = [
    pytest.param(c.values[0], id=c.id, marks=[pytest.mark.long] * (number % FEW > 0))
    for _, group in itertools.groupby(PLAYED, key=lambda c: str(c.id).partition(":")[0])
    for number, c in enumerate(group)
]


@pytest.mark.parametrize("case", KEPT)
def test_case_on_spark(small_session: Any, case: Case) -> None:
    """The same steps, the same changes, by Spark's own arithmetic and comparisons."""
    beside = Memory(case.tables, case.views)
    play(case, SparkMemory(case.tables, case.views, session=small_session), beside)
