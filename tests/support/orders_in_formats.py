"""The same orders, hostile values included, as files of each format. Pure."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Order = dict[str, Any]
COLUMNS = (
    "          - {name: price, data_type: 'decimal(9,2)', description: It.}\n"
    "          - {name: wide, data_type: double, description: It.}\n"
    "          - {name: paid, data_type: boolean, description: It.}\n"
    "          - {name: at, data_type: timestamp, description: It.}\n"
    "          - {name: tags, data_type: 'array<string>', description: It.}\n"
)
SELECT = ", price, wide, paid, at, tags"
TEXTS = (
    "plain", "", " blanks ", 'a "quote"', "comma, semicolon; tab\t", "line\nbreak", "carriage\r\nreturn", "back\\slash",
    "ünïcode \u2028 🍕",
    "null", "NULL", "NaN", "true", "007", "1e400", "{}", '{"id": "x"}', "[1]", "=1+1", "'", "x" * 5000,
    "\x00\x1f", "__HIVE_DEFAULT_PARTITION__", "--", "%20", "\u202eright to left",
)  # fmt: skip
NUMBERS = (0, -1, 2**31 - 1, -(2**31), 2**31, 2**40, None)
PRICES = (Decimal("0.10"), Decimal("-9999999.99"), Decimal("10000000.00"), None, Decimal("0.00"))
WIDES = (0.1, -0.0, 1e-300, 1.7976931348623157e308, float("nan"), float("inf"), 5e-324, None, 1e22)
START = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)


def orders(count: int) -> list[Order]:
    """Return so many orders; the periods of their values have no common factor, so that all combinations occur."""
    return [
        {
            "id": f"{number}-{TEXTS[number % len(TEXTS)][:40]}",
            "shop": None if number % 29 == 0 else TEXTS[number % len(TEXTS)],
            "n": NUMBERS[number % len(NUMBERS)] if number % 11 == 0 else number,
            "price": PRICES[number % len(PRICES)] if number % 13 == 0 else Decimal(number % 99999) / 100,
            "wide": WIDES[number % len(WIDES)] if number % 17 == 0 else number / 7,
            "paid": (True, False, None)[number % 3],
            "at": None if number % 31 == 0 else START + timedelta(microseconds=number * 1_234_567_891),
            "tags": None if number % 37 == 0 else list(TEXTS[number % 5 : number % 5 + number % 4]),
        }
        for number in range(count)
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value.isoformat() if isinstance(value, datetime) else value


def _json(row: Order) -> str:
    """Return an order as JSON; a decimal has its digits, as a number."""
    members = (
        f"{json.dumps(name)}:{value if isinstance(value, Decimal) else json.dumps(_plain(value), ensure_ascii=False)}"
        for name, value in row.items()
    )
    return f"{{{','.join(members)}}}"


def json_lines(rows: list[Order]) -> bytes:
    return "".join(_json(row) + "\n" for row in rows).encode()


def json_array(rows: list[Order]) -> bytes:
    return f"[\n  {','.join(map(_json, rows))}\n]".encode()


def csv(rows: list[Order]) -> bytes:
    """Return texts in quotes, and no text without, which Python's writer can't distinguish."""

    def field(value: Any) -> str:
        if value is None:
            return ""
        text = json.dumps(value) if isinstance(value, list | bool) else str(_plain(value))
        return '"' + text.replace('"', '""') + '"'

    lines = [",".join(rows[0]), *(",".join(map(field, row.values())) for row in rows)]
    return "".join(line + "\r\n" for line in lines).encode()


def parquet(rows: list[Order]) -> bytes:
    types = {
        "n": pa.int64(), "price": pa.decimal128(12, 2), "at": pa.timestamp("us", "UTC"), "tags": pa.list_(pa.string())
    }  # fmt: skip
    table = pa.table({name: pa.array([row[name] for row in rows], types.get(name)) for name in rows[0]})
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=1000)
    return out.getvalue()


def avro(rows: list[Order]) -> bytes:
    import fastavro

    types: dict[str, Any] = {
        "id": "string", "shop": "string", "n": "long", "wide": "double", "paid": "boolean",
        "price": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        "tags": {"type": "array", "items": "string"},
    }  # fmt: skip
    fields = [{"name": name, "type": ["null", types[name]]} for name in rows[0]]
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "Order", "fields": fields}, rows, codec="deflate")
    return out.getvalue()


# For each format: the keys of its source, the ending of its files, and what writes them.
FORMATS: dict[str, tuple[str, str, Callable[[list[Order]], bytes]]] = {
    "lines": ("format: json", "jsonl", json_lines),
    "nested lines": ('format: json\n        files: "**/*.jsonl"', "jsonl", json_lines),
    "document": ("format: json\n        document: array", "json", json_array),
    "csv": ("format: csv", "csv", csv),
    "parquet": ("format: parquet", "parquet", parquet),
    "avro": ("format: avro", "avro", avro),
}
