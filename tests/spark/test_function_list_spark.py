"""The functions that sqlrun admits, and how many arguments each takes, asked of Spark itself."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

from sqlrun.transpile import function_arity, function_catalogue
from tests.transpile.test_function_counts import LISTED_BY_SPARK, spark_functions

pytestmark = pytest.mark.spark
# What Delta adds to a session of its own.
OF_DELTA = {"table_changes", "table_changes_by_path"}
# Up to how many arguments Spark is asked about.
MOST = 8
# Of every how many functions: Spark takes two minutes to answer for all.
STEP = 1 if os.environ.get("SQLRUN_EXHAUSTIVE") else 4
# What these take is told by their place: over a window, or behind a unit.
BY_PLACE = {
    "cume_dist", "date_add", "date_diff", "dateadd", "datediff", "dense_rank", "lag", "lead", "mode", "nth_value",
    "percent_rank", "rank", "current_date", "current_timestamp", "hour", "minute", "second",
    "explode", "explode_outer", "inline", "inline_outer", "posexplode", "posexplode_outer",
}  # fmt: skip


def accepted(session: Any, name: str) -> set[int]:
    """Ask the analyzer with NULLs: another error than that of the number is one of their type."""
    parser = session._jsparkSession
    found = set()
    for count in range(MOST + 1):
        try:
            parser.sql(f"select {name}({', '.join(['null'] * count)})")
        except Exception as error:
            if "WRONG_NUM_ARGS" in str(error):
                continue
        found.add(count)
    return found


def test_spark_has_every_function(small_session: Any) -> None:
    """SHOW ALL FUNCTIONS is what the list of the fast test says, of the same version."""
    assert small_session.version == function_arity.SPARK
    assert {row[0] for row in small_session.sql("show all functions").collect()} - OF_DELTA == spark_functions()
    assert re.search(rf"\b{re.escape(small_session.version)}\b", LISTED_BY_SPARK.read_text())


@pytest.mark.long
def test_spark_takes_as_many_arguments(small_session: Any) -> None:
    """Of every fourth function that is admitted, with SQLRUN_EXHAUSTIVE of each."""
    names = sorted(function_catalogue.names() & function_arity.COUNTS.keys() - BY_PLACE)[::STEP]
    wrong = {
        name: (found, function_arity.COUNTS[name])
        for name in names
        if (found := accepted(small_session, name)) != {n for n in range(MOST + 1) if function_arity.takes(name, n)}
    }

    assert wrong == {}
