"""Rows of Arrow tables as Python values: the same as PyArrow's, without pandas."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arro3.core import Table
from deltalake import Schema

from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.engines.delta import table as delta_table
from sqlrun.land import quarantine_query
from sqlrun.publish import ledger
from sqlrun.runtime.arrow_rows import made, plain
from sqlrun.system_tables import check_results, completeness, measures, receipts

AT = datetime(2026, 1, 31, 12, 5, 0, 123456, timezone.utc)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+05:30", None])
@pytest.mark.parametrize("unit", ["us", "ms", "s"])
def test_rows_equal_pyarrows(zone: str | None, unit: str) -> None:
    """Times, NULLs, times before 1970, texts and lists; a time in any zone is the same instant."""
    kind = pa.timestamp(unit, zone)
    times = [AT.replace(microsecond=0), None, AT.replace(year=1899, microsecond=0)]
    values = times if zone else [t and t.replace(tzinfo=None) for t in times]
    table = pa.table({"at": pa.array(values, kind), "n": [1, None, 3], "t": [["a"], [], None]})

    assert plain(table) == table.to_pylist()


def test_times_are_in_utc() -> None:
    (row,) = plain(pa.table({"at": pa.array([AT], pa.timestamp("us", "Europe/Berlin"))}))

    assert row["at"] == AT and row["at"].utcoffset() == timedelta(0)


def test_an_empty_table_has_no_rows() -> None:
    assert plain(pa.table({"at": pa.array([], pa.timestamp("us", "UTC"))})) == []
    assert plain(pa.table({})) == []


@pytest.mark.slow
def test_pandas_is_not_imported() -> None:
    code = (
        "import struct, sys, pyarrow as pa; from sqlrun.runtime.arrow_rows import plain\n"
        "at = pa.Array.from_buffers(pa.timestamp('us', 'UTC'), 1, [None, pa.py_buffer(struct.pack('<q', 0))])\n"
        "plain(pa.Table.from_arrays([at], names=['at'])); print('pandas' in sys.modules)"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "False"


@pytest.mark.slow
def test_a_system_table_is_read_without_pyarrow(tmp_path: Path) -> None:
    """A table of delta-rs with the types of system tables; `seconds` and times among them."""
    path = str(tmp_path / "receipts")
    delta_table.create(TableSpec("receipts", path, receipts.COLUMNS))
    delta_table.append_rows(delta_table.open_table(path), [{"tick": 1, "as_of": AT, "seconds": 0.5, "model": "a"}])
    code = (
        "import sys; from sqlrun.engine_api import TableSpec; from sqlrun.system_tables import receipts\n"
        f"(row,) = receipts.rows(TableSpec('receipts', {path!r}, receipts.COLUMNS), ['tick', 'as_of', 'seconds'])\n"
        "print(row['as_of'], row['seconds'], [m for m in ('pyarrow', 'numpy', 'pandas') if m in sys.modules])"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == f"{AT} 0.5 []"


def test_delta_rs_rows_of_any_type_equal_pyarrows() -> None:
    """Types that its own Arrow doesn't support go through PyArrow, with all columns."""
    day = pa.array([AT.date(), None], pa.date32())
    price = pa.array([Decimal("1.50"), None], pa.decimal128(10, 2))
    names = pa.array(["a", None]).dictionary_encode()
    for array in (day, price, names):
        table = pa.table({"at": pa.array([AT, None], pa.timestamp("us", "UTC")), "x": array})
        assert plain(Table.from_arrow(table)) == plain(table)


def schema_of(columns: tuple[StoredColumn, ...]) -> Any:
    return Schema.from_json(json.dumps(delta_table.struct_of(columns))).to_arrow()


VALUES: dict[str, list[Any]] = {
    "bigint": [0, -(2**63), 2**63 - 1], "int": [1, -(2**31), 0], "string": ["", "\u00e4 \U0001f35c", "a\nb"],
    "boolean": [True, False, True], "double": [0.1, -1e300, 5e-324],
    "timestamp": [AT, AT.replace(year=1899), AT.replace(year=9999)],
}  # fmt: skip


def test_rows_survive_a_round_trip() -> None:
    """All types of system tables, with NULL, and a column that no row has."""
    columns = tuple(StoredColumn(kind, kind) for kind in VALUES)
    rows = [{kind: values[n] for kind, values in VALUES.items()} for n in range(3)]

    table = made([*rows, dict.fromkeys(VALUES), {}], schema_of((*columns, StoredColumn("more", "string"))))

    assert plain(table) == [{**row, "more": None} for row in (*rows, dict.fromkeys(VALUES), dict.fromkeys(VALUES))]
    assert plain(made([], schema_of(columns))) == []


def test_lists_survive_a_round_trip() -> None:
    """Empty lists too; a missing list is rejected."""
    schema = schema_of((StoredColumn("t", "array<string>"),))
    rows: list[dict[str, Any]] = [{"t": ["a", "b"]}, {"t": []}, {"t": ["c"]}]

    assert plain(made(rows, schema)) == rows
    with pytest.raises(TypeError, match="a list is there"):
        made([{"t": None}], schema)


@pytest.mark.parametrize(
    "columns",
    [
        ledger.COLUMNS,
        receipts.COLUMNS,
        check_results.COLUMNS,
        measures.COLUMNS,
        completeness.COLUMNS,
        quarantine_query.BOOK,
    ],
)
def test_system_tables_have_supported_types(columns: tuple[StoredColumn, ...]) -> None:
    assert {column.type for column in columns} <= {*VALUES, "array<string>"}


@pytest.mark.parametrize("value", ["1", 1.5, 2**63])
def test_a_value_of_another_type_is_refused(value: object) -> None:
    with pytest.raises((TypeError, OverflowError)):
        made([{"n": value}], schema_of((StoredColumn("n", "bigint"),)))
