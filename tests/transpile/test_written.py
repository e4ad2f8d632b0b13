"""Queries as analysts write them: maintained and equal to plain Python, or refused."""

from __future__ import annotations

import contextlib
import os

import pytest

from sqlrun.errors import ProjectError
from tests.support import evaluator, reference
from tests.support.evaluator import stable
from tests.support.written import Written, kept, last, made, queries

pytestmark = pytest.mark.slow

STEP = 1 if os.environ.get("SQLRUN_EXHAUSTIVE") else 30
KEPT = [query for query in queries() if not query.refused]
REFUSED = [query for query in queries() if query.refused]


@pytest.mark.parametrize("query", KEPT[::STEP], ids=lambda query: query.sql[:60])
def test_a_maintained_query_has_the_result_of_its_text(query: Written) -> None:
    """After five ticks the table equals the evaluator's result and that of the whole query."""
    memory = made(query.sql)

    rows = kept(memory, 7)

    assert stable(rows) == stable(memory.oracle("m", last()))
    with contextlib.suppress(evaluator.Unknown):  # Spark tests it
        assert stable(rows) == reference.answer(memory, "m", last())


@pytest.mark.parametrize("query", REFUSED[::STEP], ids=lambda query: query.sql[:60])
def test_unsupported_queries_are_refused(query: Written) -> None:
    """With the code in front of it, and a place."""
    with pytest.raises(ProjectError) as caught:
        made(query.sql)

    assert caught.value.problems[0].code == query.refused
    assert caught.value.problems[0].place.line


def test_the_file_has_all_kinds() -> None:
    """No construct is missing."""
    text = " ".join(query.sql for query in queries())
    for word in (
        "union all",
        "intersect",
        "with rollup",
        "grouping sets",
        "exists (select max",
        "natural",
        "using (k)",
    ):
        assert word in text
