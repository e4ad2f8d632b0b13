"""CSV files to records: a JSON object per record, with the declared columns by name or by position. Pure."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlrun.decoding import csv_records, json_text, json_values, records
from sqlrun.decoding.formats import Csv
from sqlrun.decoding.records import Fault, quoted
from sqlrun.decoding.undecodable import Undecodable
from sqlrun.project import Column

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
NESTED = ("array", "struct", "map")


def decode(form: Csv, data: bytes, columns: Sequence[Column]) -> pa.Table:
    """Return a file's records; a record that isn't as wide as the header, or not well-formed, has a fault.

    Raises: Undecodable if the header can't be read or has none of the declared columns.
    """
    import pyarrow as pa

    text = _text(form, data)
    header, start = _header(form, text, columns)
    if header is None:
        return records.table([])
    kinds = {column.name: column.type for column in columns}
    tables = []
    for piece in csv_records.pieces(text, form, len(header), start):
        members = [_member(c, kinds.get(n, "string")) for n, c in zip(header, piece.columns, strict=True)]
        tables.append(records.table(json_text.objects(header, members, piece.count), piece.faults))
    return pa.concat_tables([records.table([]), *tables])


def _text(form: Csv, data: bytes) -> str:
    if form.encoding != "utf-8":
        return data.decode(form.encoding, "replace")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Undecodable("the CSV file is encoded as UTF-16: convert it to UTF-8")
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")


def _header(form: Csv, text: str, columns: Sequence[Column]) -> tuple[list[str] | None, int]:
    """Return the names of the fields, and the position of the first record; None if the file is empty."""
    if not form.header:
        return [column.name for column in columns], 0
    found = csv_records.first(text, form)
    if found is None:
        return None, 0
    record, start = found
    if isinstance(record, Fault):
        raise Undecodable(f"the CSV file's header can't be read: {record.reason.removeprefix('CSV: ')}")
    header = records.matched([name or "" for name in record], columns)
    advice = "If the file has no header, declare `header: false`; otherwise check the delimiter"
    records.require_any(header, columns, "the CSV file's header", advice)
    return header, start


def _member(array: Any, kind: str) -> Any:
    """Return the JSON texts of a column's fields, by the declared type."""
    import pyarrow as pa

    name = kind.partition("(")[0].partition("<")[0]
    if name in NESTED:
        return pa.array([_nested(text) for text in array.to_pylist()], pa.large_string())
    if name in NUMBERS:
        return json_text.numbers_or_strings(array)
    return json_text.booleans_or_strings(array) if name == "boolean" else json_text.strings(array)


def _nested(text: str | None) -> str:
    """Return a field's text itself if it is JSON, otherwise as a JSON text, which no array or struct accepts."""
    if text is None:
        return "null"
    start = json_values.blanks(text, 0)
    end = json_values.valid_end(text, start)
    if end is None or json_values.blanks(text, end) < len(text):
        return quoted(text)
    return json_values.on_one_line(text, start, end, is_valid=True)
