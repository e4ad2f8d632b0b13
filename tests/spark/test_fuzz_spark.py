"""A sample of the random queries on Spark: its own rules' results against its own whole queries."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sqlrun.errors import ProjectError
from sqlrun.unit.memory import Computer, Memory
from sqlrun.unit.spark import OnSpark
from tests.case_files import Case
from tests.fuzz.running import Statistics, play, search
from tests.spark.spark_memory import SparkMemory

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SHARDS, EXAMPLES = 4, 10
PART = re.compile(r"^(\w+) as \($", re.MULTILINE)
# Spark's analyzer writes each part out wherever it is read: so many take it a minute, and thousands all of its memory.
MOST_PARTS = 400


class TooLargeError(Exception):
    """A statement that Spark would analyse for minutes."""


class Bounded(OnSpark):
    """Runs statements whose parts, each written out wherever it is read, are few enough."""

    def _collect(self, memory: Memory, text: str) -> None:
        if written_out(text) > MOST_PARTS:
            raise TooLargeError
        super()._collect(memory, text)


class BoundedMemory(SparkMemory):
    """Models kept by Spark where their statements are not too large for it."""

    def computer(self) -> Computer:
        return Bounded(self.session)


def written_out(text: str) -> int:
    """Count the parts of a statement, each as often as it is read."""
    starts = [(found[1], found.end()) for found in PART.finditer(text)]
    sizes: dict[str, int] = {}
    for number, (name, start) in enumerate(starts):
        body = text[start : starts[number + 1][1] if number + 1 < len(starts) else len(text)]
        sizes[name] = 1 + sum(sizes.get(word, 0) for word in re.findall(r"\w+", body))
    return max(sizes.values(), default=0)


def test_parts_are_counted_as_often_as_they_are_read() -> None:
    text = "with\na as (\n  select 1\n),\nb as (\n  from a union from a\n),\nc as (\n  from b, b, a\n)\nselect * from c"

    assert written_out(text) == 8


@pytest.mark.parametrize("number", range(SHARDS))
@pytest.mark.long
def test_random_queries_on_spark(small_session: Any, number: int) -> None:
    """Spark's text of the same rules, with Spark's own arithmetic, comparisons and NULLs."""

    def checked(case: Case, statistics: Statistics) -> None:
        statistics.examples += 1
        try:
            memory = BoundedMemory(case.tables, case.views, session=small_session)
        except ProjectError as error:
            statistics.refused[error.problems[0].code] += 1
            return
        try:
            play(case, memory, statistics, evaluated=True)
        except TooLargeError:
            statistics.refused["too large"] += 1

    statistics = Statistics()
    search(1000 + number, EXAMPLES, checked, statistics, most=3, shrink=False)

    assert statistics.examples - sum(statistics.refused.values()) >= EXAMPLES // 2
