"""Values of Spark SQL in plain Python: comparison, order and casts.

NULL is None; a decimal is a `Decimal` with its scale; a timestamp is an aware UTC datetime; arrays are tuples,
structs and maps are tuples of (name, value) pairs, as tests/support/memory.py freezes DuckDB's values.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any, NamedTuple

from sqlglot import exp

Value = Any
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
WHOLE = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
TIMES = ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ")


class Unknown(Exception):
    """A construct that the evaluator doesn't support: it never guesses."""


class Failure(Exception):
    """The query fails on these rows, as in Spark's ANSI mode."""


class Struct(tuple[tuple[str, Value], ...]):
    """Fields by name, in order."""

    def field(self, name: str) -> Value:
        for key, value in self:
            if key.lower() == name.lower():
                return value
        raise Unknown(f"a struct without field {name}: {self}")


class MapValue(tuple[tuple[Value, Value], ...]):
    """Entries, in order."""

    def get(self, key: Value) -> Value:
        return next((value for k, value in self if order(k, key) == 0), None)


class Interval(NamedTuple):
    """Months, and a length of time."""

    months: int
    time: timedelta


def order(a: Value, b: Value) -> int:
    """Return -1, 0 or 1, by Spark's order of values; NULL comes first and equals NULL."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    a, b = alike(a, b)
    if isinstance(a, Struct) and isinstance(b, Struct):
        a, b = tuple(v for _, v in a), tuple(v for _, v in b)
    if isinstance(a, tuple) and not isinstance(a, Interval):
        for left, right in zip(a, b, strict=False):
            found = order(left, right)
            if found:
                return found
        return (len(a) > len(b)) - (len(a) < len(b))
    return (a > b) - (a < b)


def alike(a: Value, b: Value) -> tuple[Value, Value]:
    """Return two values converted to one kind, as Spark's ANSI mode does before a comparison."""
    if isinstance(a, str) and not isinstance(b, str):
        return alike(_from_text(a, b), b)
    if isinstance(b, str) and not isinstance(a, str):
        return alike(a, _from_text(b, a))
    if isinstance(a, float) and isinstance(b, Decimal):
        return a, float(b)
    if isinstance(a, Decimal) and isinstance(b, float):
        return float(a), b
    if isinstance(a, datetime) != isinstance(b, datetime) and isinstance(a, date) and isinstance(b, date):
        return instant(a), instant(b)
    if isinstance(a, bool) != isinstance(b, bool) or _kind(a) != _kind(b):
        raise Unknown(f"a comparison of {a!r} with {b!r}")
    return a, b


def _kind(value: Value) -> str:
    for kinds, name in (((int, float, Decimal), "number"), ((date,), "date"), ((tuple,), "nested")):
        if isinstance(value, kinds):
            return name
    return type(value).__name__


def _from_text(text: str, other: Value) -> Value:
    match other:
        case bool():
            return to_type(text, exp.DataType.build("boolean"))
        case int() | Decimal() | float():
            return _number(text)
        case datetime():
            return instant(text)
        case date():
            return day(text)
    raise Unknown(f"a comparison of text with {other!r}")


def _number(text: str) -> Decimal:
    try:
        return Decimal(text.strip())
    except InvalidOperation:
        raise Failure(f"{text!r} is no number") from None


def instant(value: Value) -> datetime:
    """Return a date, a time or its text as a timestamp."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        except ValueError:
            raise Failure(f"{value!r} is no timestamp") from None
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc) if value.tzinfo else value.replace(tzinfo=timezone.utc)
    return datetime(value.year, value.month, value.day, tzinfo=timezone.utc)


def day(value: Value) -> date:
    """Return a timestamp, a date or its text as a date."""
    if isinstance(value, str):
        try:
            return date.fromisoformat(value.strip()[:10])
        except ValueError:
            raise Failure(f"{value!r} is no date") from None
    return value.date() if isinstance(value, datetime) else value


def rounded(value: Decimal, scale: int, how: str = ROUND_HALF_UP) -> Decimal:
    """Return a decimal rounded to a scale, halves away from zero."""
    return value.quantize(Decimal(1).scaleb(-scale), rounding=how)


def text_of(value: Value) -> str:
    """Return a value as text, as Spark casts it to string."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int():
            return str(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            text = value.strftime("%Y-%m-%d %H:%M:%S")
            return text + (f".{value.microsecond:06d}".rstrip("0") if value.microsecond else "")
        case date():
            return value.isoformat()
    raise Unknown(f"the text of {value!r}")


def to_type(value: Value, kind: exp.DataType) -> Value:
    """Return a value cast to a type. Raises: Failure where ANSI mode fails."""
    if value is None:
        return None
    name = kind.this.name
    inner = kind.expressions
    match name:
        case "TEXT" | "VARCHAR":
            return text_of(value)
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return _whole(value, WHOLE[name])
        case "DECIMAL":
            sizes = [int(p.name) for p in inner] or [10, 0]
            return _decimal(value, sizes[0], sizes[1] if len(sizes) > 1 else 0)
        case "DOUBLE" | "FLOAT":
            return float(_number(value)) if isinstance(value, str) else float(value)
        case "BOOLEAN":
            return _truth(value)
        case "DATE":
            return day(value)
        case _ if name in TIMES:
            return instant(value)
        case "ARRAY" | "LIST":
            return tuple(to_type(v, inner[0]) for v in value)
        case "STRUCT":
            pairs = [v for _, v in value.items()] if isinstance(value, dict) else [v for _, v in value]
            return Struct((f.name, to_type(v, f.args["kind"])) for f, v in zip(inner, pairs, strict=True))
        case "MAP":
            pairs = value.items() if isinstance(value, dict) else value
            return MapValue((to_type(k, inner[0]), to_type(v, inner[1])) for k, v in pairs)
    raise Unknown(f"a cast to {kind.sql('databricks')}")


def _whole(value: Value, bits: int) -> int:
    if isinstance(value, datetime):
        value = (value - EPOCH) // timedelta(seconds=1)
    if isinstance(value, date):
        raise Unknown("a cast of a date to a number")
    if isinstance(value, str):
        value = _number(value)
        if value != value.to_integral_value():
            raise Failure(f"{value} is no whole number")
    whole = int(value)
    if not -(1 << (bits - 1)) <= whole < 1 << (bits - 1):
        raise Failure(f"{whole} doesn't fit in {bits} bits")
    return whole


def _decimal(value: Value, precision: int, scale: int) -> Decimal:
    if isinstance(value, date):
        raise Unknown("a cast of a time to decimal")
    made = _number(value) if isinstance(value, str) else Decimal(repr(value) if isinstance(value, float) else value)
    made = rounded(made, scale)
    if abs(made) >= Decimal(10) ** (precision - scale):
        raise Failure(f"{made} doesn't fit in decimal({precision},{scale})")
    return made


def _truth(value: Value) -> bool:
    if isinstance(value, str):
        if value.strip().lower() in ("true", "t", "yes", "y", "1"):
            return True
        if value.strip().lower() in ("false", "f", "no", "n", "0"):
            return False
        raise Failure(f"{value!r} is neither true nor false")
    return bool(value)


def shift(moment: date, interval: Interval, sign: int = 1) -> date:
    """Return a date or timestamp plus an interval; a month that is too short gives its last day."""
    if not isinstance(moment, datetime) and interval.time % timedelta(days=1):
        moment = instant(moment)
    if interval.months:
        total = moment.year * 12 + moment.month - 1 + sign * interval.months
        first = moment.replace(year=total // 12, month=total % 12 + 1, day=1)
        moment = first.replace(day=min(moment.day, last_day(first).day))
    return moment + sign * interval.time


def last_day(moment: date) -> date:
    """Return the last day of a date's month."""
    day_one = day(moment).replace(day=28) + timedelta(days=4)
    return day_one - timedelta(days=day_one.day)


def truncated(value: Decimal) -> Decimal:
    """Return a decimal without its fraction."""
    return value.quantize(Decimal(1), rounding=ROUND_DOWN)
