"""Samples of a user's files: their format, their options, and their first records. Shell: files."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, cast

from sqlrun.decoding import compression
from sqlrun.decoding.decode import decode
from sqlrun.decoding.formats import AvroFile, Csv, Encoding, FileFormat, JsonDocument, JsonLines, Parquet
from sqlrun.decoding.undecodable import Undecodable
from sqlrun.errors import UsageError
from sqlrun.project import AVRO, CSV, JSON, PARQUET
from sqlrun.runtime import arrow_rows
from sqlrun.scaffold import inferred_types
from sqlrun.scaffold.tables import Sample
from sqlrun.sources.file_choice import COMPRESSED, ENDINGS

# What is read of a file: its first bytes, of which the last, perhaps incomplete line is left out; and of records.
BYTES = 8 * 1024 * 1024
RECORDS = 10_000
DELIMITERS = (",", ";", "\t", "|")


def format_of(name: str) -> str | None:
    """Return the format of a file by its ending; None for an ending that no format has.

    >>> format_of("a.csv.gz"), format_of("a.parquet"), format_of("a.doc")
    ('csv', 'parquet', None)
    """
    for kind, endings in ENDINGS.items():
        more = COMPRESSED if kind in (JSON, CSV) else COMPRESSED[:1]
        if name.lower().endswith(tuple(ending + each for ending in endings for each in more)):
            return kind
    return None


def sample(folder: Path, path: str) -> Sample:
    """Return the sample of a file by its path below a folder.

    Raises: UsageError if the file isn't of the format that its ending names, or has no record.
    """
    file = folder / path
    kind = format_of(file.name)
    if kind is None:
        known = ", ".join(ending for endings in ENDINGS.values() for ending in endings)
        raise UsageError(f"{file}: sqlrun reads files that end in {known}")
    try:
        data, is_whole = _beginning(file, kind)
        form, options = _form(kind, data, is_whole)
        decoded = decode(form, data, ())
    except (OSError, Undecodable) as error:
        raise UsageError(f"{file} can't be read: {error}") from error
    read = (
        inferred_types.record(text)
        for text, fault in zip(arrow_rows.values(decoded["value"]), arrow_rows.values(decoded["fault"]), strict=True)
        if fault is None
    )
    records = tuple(islice(_objects(read), RECORDS))
    if not records:
        raise UsageError(f"{file} has no record that can be read as {kind}")
    return Sample(path, kind, isinstance(form, JsonDocument), options, records)


def _objects(read: Iterator[Any]) -> Iterator[Mapping[str, Any]]:
    for each in read:
        if isinstance(each, dict) and each:
            yield each


def _beginning(file: Path, kind: str) -> tuple[bytes, bool]:
    """Return a file's first bytes, and whether these are all of it."""
    import pyarrow as pa

    if kind in (PARQUET, AVRO):
        return (_first_rows(file) if kind == PARQUET else file.read_bytes()), True
    try:
        codec = compression.CODECS.get(file.suffix.lower())
        stream = pa.input_stream(str(file), compression=codec, buffer_size=BYTES)
        with stream:
            data = stream.read(BYTES + 1)
    except pa.ArrowException as error:
        raise Undecodable(str(error)) from error
    if len(data) <= BYTES:
        return data, True
    return data[: data.rfind(b"\n", 0, BYTES) + 1], False


def _first_rows(file: Path) -> bytes:
    """Return the first rows of a Parquet file as a file of their own: the whole one may not fit into memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        source = pq.ParquetFile(file)
        batch = next(source.iter_batches(RECORDS), None)
    except pa.ArrowException as error:
        raise Undecodable(f"it isn't a Parquet file: {error}") from error
    if batch is None:
        raise Undecodable("it has no rows")
    written = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_batches([batch]), written)
    return cast(bytes, written.getvalue().to_pybytes())


def _form(kind: str, data: bytes, is_whole: bool) -> tuple[FileFormat, Mapping[str, str]]:
    match kind:
        case _ if kind == PARQUET:
            return Parquet(), {}
        case _ if kind == AVRO:
            return AvroFile(), {}
        case _ if kind == CSV:
            options = _csv_options(data)
            found = Csv(
                delimiter=options.get("delimiter", ","), encoding=cast(Encoding, options.get("encoding", "utf-8"))
            )
            _require_header(data, found)
            return found, options
        case _:
            return (JsonDocument(), {}) if is_whole and _is_document(data) else (JsonLines(), {})


def _is_document(data: bytes) -> bool:
    """Return whether the text is one JSON document rather than one object a line."""
    first = data.lstrip().partition(b"\n")[0].strip()
    return first.startswith(b"[") or not isinstance(inferred_types.record(first.decode("utf-8", "replace")), dict)


def _csv_options(data: bytes) -> dict[str, str]:
    """Return the delimiter that the header has most often, and the encoding if it isn't UTF-8."""
    options = {}
    try:
        data.decode()
    except UnicodeDecodeError:
        options["encoding"] = "windows-1252"
    header = data.partition(b"\n")[0].decode(options.get("encoding", "utf-8"), "replace")
    best = max(DELIMITERS, key=lambda mark: len(next(csv.reader([header], delimiter=mark), [])))
    return {**options, "delimiter": best} if best != DELIMITERS[0] else options


def _require_header(data: bytes, form: Csv) -> None:
    """Raise Undecodable for a first record that names no columns: empty, repeated or numeric names."""
    line = data.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode(form.encoding, "replace").rstrip("\r")
    names = next(csv.reader([line], delimiter=form.delimiter), [])
    for number, name in enumerate(names, 1):
        if not name.strip():
            raise Undecodable(f"column {number} of its header has no name")
        if name in names[: number - 1]:
            raise Undecodable(f"its header has the name `{name}` twice")
    if names and all(inferred_types.of_values([name], texts=True) != "string" for name in names):
        raise Undecodable(f"its first line has values instead of names: `{line[:80]}`. Add a header")
