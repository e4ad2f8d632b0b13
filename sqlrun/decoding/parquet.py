"""Parquet files to records, by the files' own types. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sqlrun.decoding import json_text, records
from sqlrun.decoding.records import quoted
from sqlrun.decoding.undecodable import Undecodable
from sqlrun.project import Column

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 64 * 1024  # number of rows that become texts at once


def decode(data: bytes, columns: Sequence[Column]) -> pa.Table:
    """Return a file's rows as JSON objects with all of the file's columns.

    Raises: Undecodable.
    """
    import pyarrow as pa

    try:
        texts = list(_texts(data, columns))
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise Undecodable(f"the file can't be read as Parquet: {error}") from error
    return records.table(pa.chunked_array(texts, pa.large_string()))


def _texts(data: bytes, columns: Sequence[Column]) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Microseconds have room for all years, nanoseconds are exact: see `_exact`.
    file, exact = (
        pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True, coerce_int96_timestamp_unit=unit)
        for unit in ("us", "ns")
    )
    found = records.matched(file.schema_arrow.names, columns)
    records.require_any(found, columns, "the Parquet file", records.OTHER)
    legacy = _legacy(file)
    nanos = exact.iter_batches(ROWS, columns=sorted(legacy)) if legacy else iter(())
    for batch in file.iter_batches(ROWS):
        other = next(nanos, None)
        members = []
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            text = json_text.texts(array)
            members.append(_exact(array, text, other.column(name)) if other is not None and name in legacy else text)
        yield json_text.objects(found, members, batch.num_rows)


def _legacy(file: Any) -> Collection[str]:
    """Return the names of columns with times of the old type INT96, as older versions of Spark write it."""
    leaves = (file.schema.column(number) for number in range(len(file.schema)))
    return {leaf.path.partition(".")[0] for leaf in leaves if leaf.physical_type == "INT96"}


def _exact(array: Any, text: Any, nanos: Any) -> Any:
    """Return the texts of a column of INT96, from the column as microseconds and as nanoseconds.

    PyArrow cuts the former without a message, and the latter overflow outside of the years 1678 to 2261. Their
    difference is the number of cut nanoseconds all the same. If a list or an object differs, both texts are in the
    record, so that it is quarantined.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(array.type):
        other = json_text.texts(nanos)
        both = [quoted(f"{a} or {b}") for a, b in zip(text.to_pylist(), other.to_pylist(), strict=True)]
        return pc.if_else(pc.equal(text, other), text, pa.array(both, pa.large_string()))
    whole = pc.multiply(array.cast(pa.int64()), 1000)
    cut = pc.subtract(nanos.cast(pa.int64()), whole)
    digits = pc.utf8_lpad(cut.cast(pa.large_string()), 3, "0")
    long = json_text.joined(pc.utf8_slice_codeunits(text, 0, -1), digits, '"')
    return pc.if_else(pc.fill_null(pc.equal(cut, 0), True), text, long)
