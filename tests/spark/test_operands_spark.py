"""What cases/operands.txt says of Spark, asked of Spark's analyzer: one of eleven, all with SQLRUN_WRITE=1."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from tests.support.operands import COLUMNS, read, write

pytestmark = pytest.mark.spark


@pytest.fixture
def session(engine: SparkEngine) -> Iterator[Any]:
    """A session with the settings that ticks have."""
    with engine._session() as lent:
        yield lent


@pytest.mark.long
def test_spark_takes_what_is_recorded(session: Any) -> None:
    columns = ", ".join(f"`{name}` {kind}" for name, kind in {"id": "int", **COLUMNS}.items())
    session.createDataFrame([], columns).createOrReplaceTempView("operated")
    asked = read() if os.environ.get("SQLRUN_WRITE") else read()[::11]
    taken = {one.text: takes(session, one.sql("operated")) for one in asked}
    if os.environ.get("SQLRUN_WRITE"):
        write(taken)

    assert taken == {one.text: one.taken for one in asked}


def takes(session: Any, sql: str) -> bool:
    try:
        session.sql(sql).schema  # noqa: B018
    except Exception:
        return False
    return True
