"""The range of dates and times: its bounds survive Python's types, DuckDB and Parquet unchanged."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlrun.incremental.landing import time_range


@pytest.mark.parametrize("outside", [time_range.FIRST_DAY - 1, time_range.LAST_DAY + 1, 2**31 - 1, -(2**31)])
def test_a_day_outside_is_none(outside: int) -> None:
    assert time_range.day(outside) is None


@pytest.mark.parametrize(
    "outside", [time_range.FIRST_MICROSECOND - 1, time_range.LAST_MICROSECOND + 1, 2**63 - 1, -(2**63)]
)
def test_a_moment_outside_is_none(outside: int) -> None:
    assert time_range.moment(outside) is None


def test_the_ends_are_the_counts_that_arrow_stores() -> None:
    days = pa.array([time_range.FIRST_DATE, time_range.LAST_DATE]).cast(pa.int32()).to_pylist()
    assert days == [time_range.FIRST_DAY, time_range.LAST_DAY]
    ends = (time_range.FIRST_TIME, time_range.LAST_TIME)
    counts = pa.array(ends, pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    assert counts == [time_range.FIRST_MICROSECOND, time_range.LAST_MICROSECOND]
    assert tuple(time_range.moment(count) for count in counts) == ends


def test_the_ends_come_back_from_parquet_and_duckdb(tmp_path: Path) -> None:
    times = pa.array([time_range.FIRST_TIME, time_range.LAST_TIME], pa.timestamp("us", "UTC"))
    days = pa.array([time_range.FIRST_DATE, time_range.LAST_DATE])
    table = pa.table({"moment": times, "day": days})
    file = tmp_path / "ends.parquet"
    pq.write_table(table, file)
    found = duckdb.sql(f"select epoch_us(moment), day from read_parquet('{file}') order by moment").fetchall()
    ends = (time_range.FIRST_MICROSECOND, time_range.LAST_MICROSECOND)
    assert found == list(zip(ends, days.to_pylist(), strict=True))


def test_a_shift_stays_inside() -> None:
    assert time_range.shifted(time_range.FIRST_TIME, timedelta(days=-1)) == time_range.FIRST_TIME
    assert time_range.shifted(time_range.FIRST_TIME, timedelta(days=1)) > time_range.FIRST_TIME
