"""Lines of messages as Arrow tables. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

FAULT = "fault"


def of(values: list[Any], origins: list[bytes], faults: Sequence[str | None] | None = None) -> Any:
    """Return messages as `value` and `file`, and as `fault`, if there are faults: the reason, or NULL.

    Bytes that aren't UTF-8 are replaced.
    """
    import pyarrow as pa

    lines = _texts(values)
    if not lines.isascii:
        try:
            lines.array.validate(full=True)
        except pa.ArrowInvalid:
            lines = _texts([value.decode("utf-8", "replace").encode() for value in values])
    table = pa.Table.from_arrays([lines.array, _texts(origins).array], ["value", "file"])
    return table if faults is None else table.append_column(FAULT, pa.array(faults, pa.large_string()))


def joined(tables: list[Any], piece: int, *, with_faults: bool) -> Any:
    """Return tables of messages as one, in pieces of this number of lines, which DuckDB's threads share."""
    import pyarrow as pa

    names = ("value", "file", FAULT) if with_faults else ("value", "file")
    schema = pa.schema([(name, pa.large_string()) for name in names])
    table = pa.concat_tables(tables) if tables else schema.empty_table()
    return pa.Table.from_batches(table.to_batches(piece), schema)


@dataclass(frozen=True, slots=True)
class _Texts:
    """An Arrow array of texts, which may not be UTF-8 unless `isascii`."""

    array: Any
    isascii: bool


def _texts(values: list[bytes]) -> _Texts:
    """Return an array by its buffers: PyArrow would inspect each value of a list, and import pandas to do so."""
    import pyarrow as pa

    data = b"".join(values)
    ends = pa.py_buffer(array("q", accumulate(map(len, values), initial=0)))
    return _Texts(pa.LargeStringArray.from_buffers(len(values), ends, pa.py_buffer(data)), data.isascii())
