"""Rows of an Arrow table as Python values, without pandas. Pure.

PyArrow asks pandas to make a time with a zone, and whether a value of another library is a data frame. Its import
takes longer than all else of a build that finds nothing to do.
"""

from __future__ import annotations

from datetime import timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def table_of(lent: Any) -> pa.Table:
    """Make a table of what lends itself as a stream of Arrow's, such as delta-rs' tables; nothing is copied."""
    import pyarrow as pa

    return lent if isinstance(lent, pa.Table) else pa.RecordBatchReader.from_stream(lent).read_all()


def plain(lent: Any) -> list[dict[str, Any]]:
    """Give the rows of a table, or of what lends itself as one; times with a zone are in UTC."""
    held = table_of(lent)
    columns = [_values(column) for column in held.columns]
    return [dict(zip(held.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: Any) -> list[Any]:
    import pyarrow as pa

    kind = column.type
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        values: list[Any] = column.to_pylist()
        return values
    naive = column.cast(pa.timestamp(kind.unit)).to_pylist()
    return [value if value is None else value.replace(tzinfo=timezone.utc) for value in naive]
