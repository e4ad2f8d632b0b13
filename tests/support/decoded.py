"""Files in each format, and the records that are decoded from them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from sqlrun.decoding.decode import decode
from sqlrun.decoding.formats import FileFormat
from sqlrun.errors import Place
from sqlrun.project import Column
from tests.support import strict_reader

HERE = Place("_sources.yml")


def columns(**kinds: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind, "It.", HERE) for name, kind in kinds.items())


def records(form: FileFormat, data: bytes, **kinds: str) -> list[str]:
    """Return the records of a file that has no fault."""
    found = decode(form, data, columns(**kinds))
    found.validate(full=True)
    assert found.schema == pa.schema([("value", pa.large_string()), ("fault", pa.large_string())])
    assert found.column("fault").null_count == len(found), found.to_pylist()
    values: list[str] = found.column("value").to_pylist()
    return values


def faults(form: FileFormat, data: bytes, **kinds: str) -> list[tuple[str, str]]:
    """Return the records with a fault, and the faults."""
    rows = decode(form, data, columns(**kinds)).to_pylist()
    return [(row["value"], row["fault"]) for row in rows if row["fault"] is not None]


def parsed(text: str) -> Any:
    """Return a record's values with the text of each number. It also has to be an object for the strict reader."""
    strict_reader._Text(text).whole()
    return json.loads(text, parse_float=str, parse_int=str)


def parquet(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def avro(schema: Any, rows: Sequence[Any], **options: Any) -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, schema, rows, **options)
    return file.getvalue()


def avro_message(schema: Any, value: Any) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, schema, value)
    return file.getvalue()
