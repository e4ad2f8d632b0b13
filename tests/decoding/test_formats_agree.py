"""The same rows land the same from each format: their values, and the reasons of those in quarantine."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sqlrun.decoding.decode import decode
from sqlrun.decoding.formats import AvroFile, Csv, FileFormat, JsonDocument, JsonLines, Parquet
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.project import Source
from tests.line_fuzz.judges import plain
from tests.line_fuzz.sources import judging
from tests.support import decoded
from tests.support.decoded import HERE, columns

KINDS = {
    "id": "bigint",
    "name": "string",
    "price": "decimal(10,2)",
    "wide": "double",
    "yes": "boolean",
    "at": "timestamp",
    "on": "date",
    "tags": "array<string>",
    "size": "struct<w:int,h:int>",
}
SOURCE = Source("a", "b", "json", "data", columns(**KINDS), "It.", HERE)
FINE = {
    "id": 2**63 - 1,
    "name": 'ü "x"\\,\n\u2028🍕\x00',
    "price": Decimal("0.10"),
    "wide": 0.1,
    "yes": True,
    "at": datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc),
    "on": date(2020, 2, 29),
    "tags": ["a", '"', ""],
    "size": {"w": 1, "h": -2},
    "more": "é",
}
ROWS: list[dict[str, Any]] = [
    FINE,
    FINE | {"id": -1, "name": "", "price": Decimal("-99999999.99"), "wide": -1e-300, "yes": False, "tags": []},
    FINE | dict.fromkeys(("id", "name", "price", "wide", "yes", "at", "on", "tags", "more")),
    FINE | {"price": Decimal("100000000.00")},  # too many digits for the declared type
    FINE | {"wide": float("nan")},
    FINE | {"wide": float("inf")},
    FINE | {"name": "true", "more": "1e400"},
]
REASONS = [None, None, None, "price: not of type decimal(10, 2)", *["wide: not of type double"] * 2, None]
FLAT = replace(SOURCE, columns=SOURCE.columns[:2])
KIND_OF = {
    "price": pa.decimal128(20, 2),
    "at": pa.timestamp("us", "UTC"),
    "size": pa.struct([("w", pa.int32()), ("h", pa.int32())]),
}


def jsonable(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value) if isinstance(value, date | Decimal) else value


def as_objects(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: jsonable(value) for name, value in row.items()} for row in rows]


def as_lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in as_objects(rows)).encode()


def as_document(rows: list[dict[str, Any]]) -> bytes:
    return json.dumps(as_objects(rows), indent=2, ensure_ascii=False).encode()


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    """Write texts in quotes, and NULL without, which Python's writer can't."""

    def text(value: Any) -> str:
        if value is None:
            return ""
        shown = json.dumps(value) if isinstance(value, list | dict | bool) else str(jsonable(value))
        return '"' + shown.replace('"', '""') + '"'

    names = list(reversed(FINE))
    lines = [",".join(names), *(",".join(text(row[name]) for name in names) for row in rows)]
    return "\r\n".join(lines).encode()


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    names = list(reversed(FINE))
    arrays = [pa.array([row[name] for row in rows], KIND_OF.get(name)) for name in names]
    return decoded.parquet(pa.Table.from_arrays(arrays, names))


def as_avro(rows: list[dict[str, Any]]) -> bytes:
    size = {"type": "record", "name": "Size", "fields": [{"name": n, "type": "int"} for n in "wh"]}
    types: dict[str, Any] = {
        "id": "long",
        "name": "string",
        "price": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2},
        "wide": "double",
        "yes": "boolean",
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        "on": {"type": "int", "logicalType": "date"},
        "tags": {"type": "array", "items": "string"},
        "size": size,
        "more": "string",
    }
    fields = [{"name": name, "type": ["null", kind]} for name, kind in types.items()]
    return decoded.avro({"type": "record", "name": "Row", "fields": fields}, rows)


FORMATS: dict[str, tuple[FileFormat, Callable[[list[dict[str, Any]]], bytes]]] = {
    "lines": (JsonLines(), as_lines),
    "document": (JsonDocument(), as_document),
    "csv": (Csv(), as_csv),
    "parquet": (Parquet(), as_parquet),
    "avro": (AvroFile(), as_avro),
}


def landed(form: FileFormat, data: bytes, source: Source = SOURCE) -> list[tuple[Any, ...]]:
    """Return what the landing query makes of a file's records, in their order."""
    lines = decode(form, data, source.columns).select(["value"])
    lines = lines.append_column("file", pa.array([str(n) for n in range(len(lines))], pa.large_string()))
    kinds = [column.name for column in source.columns]
    names = ", ".join(f'"{name}"' for name in kinds)
    query = judging(source, "duckdb").replace(f"_absent, {names}", f"_absent, _file, {names}")
    rows = sorted(DuckDBEngine().query(query, (), {"lines": lines}).to_pylist(), key=lambda row: int(row["_file"]))
    return [
        (
            row["_reason"],
            row["_rescued"],
            row["_absent"],
            plain({name: row[name] for name in kinds}) if row["_reason"] is None else None,
        )
        for row in rows
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_rows_land_the_same(name: str) -> None:
    form, write = FORMATS[name]
    found = landed(form, write(ROWS))
    expected = landed(JsonLines(), as_lines(ROWS))

    assert [reason for reason, *_ in expected] == REASONS
    assert [(reason, absent, values) for reason, _, absent, values in found] == [
        (reason, absent, values) for reason, _, absent, values in expected
    ]
    assert [json.loads(rescued) for _, rescued, *_ in found if rescued] == [
        json.loads(rescued) for _, rescued, *_ in expected if rescued
    ]


def test_a_faulty_record_is_quarantined_and_the_others_land() -> None:
    """Its text isn't a JSON object even for a query that doesn't read `fault`."""
    for data in (b'id,name\n1,x\n{"id":1}\n2,y\n', b'id,name\n1,x\n1,"x"y\n2,y\n'):
        assert [reason for reason, *_ in landed(Csv(), data, FLAT)] == [None, "not a JSON object", None]
    assert [reason for reason, *_ in landed(JsonDocument("array"), b'[{"id":1},\n{"id":')] == ["not a JSON object"]


def test_bytes_are_texts_in_base64() -> None:
    data = decoded.parquet(pa.table({"name": [b"\xff"]}))
    assert landed(Parquet(), data, FLAT)[0][3]["name"] == ("str", base64.b64encode(b"\xff").decode())


def test_python_s_csv_lands() -> None:
    file = io.StringIO()
    csv.writer(file).writerows([["id", "size"], ["1", '{"w": 1, "h": 2}'], ["2", "oops"]])
    (first, second) = landed(Csv(), file.getvalue().encode())
    assert (first[0], first[3]["size"]) == (None, {"w": ("int", "1"), "h": ("int", "2")})
    assert second[0] == "not a JSON object"
