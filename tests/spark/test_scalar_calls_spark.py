"""A sample of the scalar functions, called with columns of every type: DuckDB's values are Spark's, or it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scalar_calls import calls, differences

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]
SAMPLE = ("length", "trim", "concat", "pmod", "sign", "greatest", "date_add", "datediff", "nullif", "coalesce")


@pytest.mark.parametrize("name", SAMPLE)
def test_duckdb_says_what_spark_says(small_session: Any, name: str) -> None:
    """With one argument of each type, and with two."""
    assert differences(small_session, list(calls((name,)))) == []
