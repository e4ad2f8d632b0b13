"""Rows of Arrow tables as Python values: the same as PyArrow's, without pandas."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest

from sqlrun.arrow_rows import plain

AT = datetime(2026, 1, 31, 12, 5, 0, 123456, timezone.utc)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+05:30", None])
@pytest.mark.parametrize("unit", ["us", "ms", "s"])
def test_rows_are_those_of_pyarrow(zone: str | None, unit: str) -> None:
    """Times, NULLs, times before 1970, texts and lists; a time in any zone is the same instant."""
    kind = pa.timestamp(unit, zone)
    times = [AT.replace(microsecond=0), None, AT.replace(year=1899, microsecond=0)]
    values = times if zone else [t and t.replace(tzinfo=None) for t in times]
    table = pa.table({"at": pa.array(values, kind), "n": [1, None, 3], "t": [["a"], [], None]})

    assert plain(table) == table.to_pylist()


def test_times_come_in_utc() -> None:
    (row,) = plain(pa.table({"at": pa.array([AT], pa.timestamp("us", "Europe/Berlin"))}))

    assert row["at"] == AT and row["at"].utcoffset() == timedelta(0)


def test_an_empty_table_has_no_rows() -> None:
    assert plain(pa.table({"at": pa.array([], pa.timestamp("us", "UTC"))})) == []
    assert plain(pa.table({})) == []


def test_pandas_is_not_imported() -> None:
    code = (
        "import struct, sys, pyarrow as pa; from sqlrun.arrow_rows import plain\n"
        "at = pa.Array.from_buffers(pa.timestamp('us', 'UTC'), 1, [None, pa.py_buffer(struct.pack('<q', 0))])\n"
        "plain(pa.Table.from_arrays([at], names=['at'])); print('pandas' in sys.modules)"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "False"
