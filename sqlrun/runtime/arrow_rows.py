"""Conversion between Arrow's rows and Python's, without pandas, and mostly without PyArrow. Pure.

PyArrow imports pandas to build a time with a zone, and to test whether its first value is a data frame. That import
takes longer than the rest of a build without changes; the import of PyArrow with numpy takes a sixth of it. Tables of
delta-rs are therefore read by delta-rs' own Arrow, if it supports their types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

from sqlrun.runtime import far_times
from sqlrun.runtime.far_times import EPOCH

if TYPE_CHECKING:
    import pyarrow as pa

# Microseconds by Arrow's time units, except for finer units.
MICROS = {"us": 1, "ms": 1_000, "s": 1_000_000}
_DAY = EPOCH.toordinal()
_PLAIN = {bool: "bool", int: "int64", float: "float64", str: "utf8"}


def table_of(lent: Any) -> pa.Table:
    """Return a table from any object with Arrow's stream interface, such as delta-rs' tables; no data is copied."""
    import pyarrow as pa

    return lent if isinstance(lent, pa.Table) else pa.RecordBatchReader.from_stream(lent).read_all()


def plain(lent: Any) -> list[dict[str, Any]]:
    """Return the rows of a table or of an object with Arrow's interface; times with a zone are in UTC."""
    held = lent.read_all() if hasattr(lent, "read_all") else lent
    columns = _own_columns(held)
    if columns is None:
        held = table_of(held)
        columns = [values(column) for column in held.columns]
    return [dict(zip(held.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _own_columns(held: Any) -> list[list[Any]] | None:
    """Return a table's columns by delta-rs' own Arrow; None for another table or an unsupported type."""
    from arro3.core import DataType, Table

    if not isinstance(held, Table):
        return None
    found: list[list[Any]] = []
    schema: Any = held.schema
    for place, kind in enumerate(field.type for field in schema):
        column: Any = held.column(place)
        if DataType.is_timestamp(kind) and kind == DataType.timestamp("us", tz="UTC"):
            moments = column.cast(DataType.int64()).to_pylist()
            found.append([at if at is None else far_times.moment(at) for at in moments])
        elif any(test(kind) for test in (DataType.is_integer, DataType.is_boolean, DataType.is_floating, _is_text)):
            found.append(column.to_pylist())
        else:
            return None
    return found


def _is_text(kind: Any) -> bool:
    from arro3.core import DataType

    return bool(DataType.is_string(kind) or DataType.is_large_string(kind) or DataType.is_string_view(kind))


def made(rows: Sequence[Mapping[str, Any]], schema: Any) -> Any:
    """Return a table of rows in delta-rs' schema; a column that a row lacks is NULL."""
    from arro3.core import Table

    fields = list(schema)
    return Table.from_arrays([_array([row.get(f.name) for row in rows], f.type) for f in fields], schema=schema)


def _array(values: list[Any], kind: Any) -> Any:
    """Return a column. delta-rs' Arrow can't build times or lists: they come from microseconds and from flat items."""
    from arro3.core import Array, DataType, list_array

    if DataType.is_list(kind):
        if None in values:
            raise TypeError("a list is there, be it an empty one")
        offsets = Array(list(accumulate(map(len, values), initial=0)), DataType.int32())
        return list_array(offsets, _array(list(chain.from_iterable(values)), kind.value_type), type=kind)
    if not DataType.is_timestamp(kind):
        return Array(values, kind)
    moments = [each if each is None else (each - EPOCH) // timedelta(microseconds=1) for each in values]
    return Array(moments, DataType.int64()).cast(kind)


def values(column: Any) -> list[Any]:
    """Return the values of a column; times with a zone are in UTC, those outside of Python's range are `far_times`."""
    import pyarrow as pa

    kind = column.type
    try:
        if not pa.types.is_timestamp(kind) or kind.tz is None:
            plainly: list[Any] = column.to_pylist()
            return plainly
        naive = column.cast(pa.timestamp(kind.unit)).to_pylist()
    except (OverflowError, ValueError):
        return [value(each) for each in column]
    return [moment if moment is None else moment.replace(tzinfo=timezone.utc) for moment in naive]


def value(scalar: Any) -> Any:
    """Return one value, as `values` does; a time or day outside of Python's range may be nested in it."""
    import pyarrow.types as is_a

    kind = scalar.type
    if not scalar.is_valid:
        return None
    if is_a.is_timestamp(kind):
        micros = scalar.value * MICROS[kind.unit] if kind.unit in MICROS else scalar.value // 1000
        return far_times.moment(micros, zoned=kind.tz is not None)
    if is_a.is_date32(kind):
        return far_times.day(scalar.value)
    if is_a.is_map(kind):
        return [(value(each["key"]), value(each["value"])) for each in scalar]
    if is_a.is_list(kind) or is_a.is_large_list(kind):
        return [value(each) for each in scalar]
    if is_a.is_struct(kind):
        return {name: value(each) for name, each in scalar.items()}
    return scalar.as_py()


def array(values: Sequence[bool] | Sequence[int] | Sequence[float] | Sequence[str]) -> pa.Array:
    """Return a column of values of one type, as PyArrow builds it: booleans, 64-bit integers, doubles or texts."""
    import pyarrow as pa
    from arro3.core import Array, DataType

    kind = getattr(DataType, _PLAIN[type(values[0])])() if values else DataType.bool()
    return pa.array(Array(list(values), kind))


def scalar(value: bool | int | float | str | date | Decimal) -> pa.Scalar:
    """Return one value as a scalar; a time has microseconds, and is in UTC if it has a zone."""
    import pyarrow as pa

    match value:
        case datetime(tzinfo=None):
            micros = _micros(value.replace(tzinfo=timezone.utc))
            return array([micros])[0].cast(pa.timestamp("us"))
        case datetime():
            return array([_micros(value)])[0].cast(pa.timestamp("us", "UTC"))
        case date():
            return array([value.toordinal() - _DAY])[0].cast(pa.int32()).cast(pa.date32())
        case Decimal():
            _, digits, exponent = value.as_tuple()
            places = int(exponent)
            scale = max(0, -places)
            size = max(len(digits) + max(0, places), scale)
            if not 0 < size <= 38:
                return pa.scalar(value)
            return array([format(value, "f")])[0].cast(pa.decimal128(size, scale))
        case _:
            plain: Any = value
            return array([plain])[0]


def _micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)
