"""Python values as Arrow's, without pandas: PyArrow imports it to look at the first value that it is given. Pure.

Its import takes longer than all checks of a tick, and nothing here needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlrun.runtime.far_times import EPOCH

if TYPE_CHECKING:
    import pyarrow as pa

_DAY = EPOCH.toordinal()
_PLAIN = {bool: "bool", int: "int64", float: "float64", str: "utf8"}


def array(values: Sequence[bool] | Sequence[int] | Sequence[float] | Sequence[str]) -> pa.Array:
    """Make a column of values of one type, as PyArrow does: booleans, integers of 64 bits, doubles or texts."""
    import pyarrow as pa
    from arro3.core import Array, DataType

    kind = getattr(DataType, _PLAIN[type(values[0])])() if values else DataType.bool()
    return pa.array(Array(list(values), kind))


def scalar(value: bool | int | float | str | date | Decimal) -> pa.Scalar:
    """Make one value; a time is of microseconds, in UTC where it has a zone."""
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
