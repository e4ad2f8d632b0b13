"""The records of a file of any format. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlrun.decoding import avro, change_events, csv_file, json_document, json_lines, parquet, records
from sqlrun.decoding.formats import AvroFile, ChangeLines, Csv, FileFormat, JsonDocument, JsonLines, Parquet
from sqlrun.project import Column

if TYPE_CHECKING:
    import pyarrow as pa


def decode(form: FileFormat, data: bytes, columns: Sequence[Column]) -> pa.Table:
    """Return a file's records in order, as `value` and `fault`, two columns of large strings.

    `value` is the text of a JSON object. If `fault` isn't NULL, the record can't be read: `fault` is the reason, and
    `value` the record's own text.

    Raises: Undecodable if the file as a whole isn't of the format.
    """
    match form:
        case JsonLines():
            return records.table(json_lines.lines(data))
        case ChangeLines():
            return change_events.decode(form, data)
        case JsonDocument():
            return json_document.decode(form, data)
        case Csv():
            return csv_file.decode(form, data, columns)
        case Parquet():
            return parquet.decode(data, columns)
        case AvroFile():
            return avro.decode(form, data, columns)
