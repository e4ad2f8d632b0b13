"""Log metadata of a file that DuckDB has written: statistics, partition values, folders. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.errors import EngineError
from sqlrun.transpile import spark_types
from sqlrun.transpile.spark_types import Kind

# Number of leading columns for which Delta's writers gather statistics.
MOST_COLUMNS = 32
# Maximum length of texts in statistics: a longer one bounds its column by a prefix, or not at all.
LONGEST = 64
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
INTEGER = re.compile(r"-?\d+")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
TIME = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,6})?)(\+00)?")
TIGHT = re.compile(r'("tightBounds"\s*:\s*)(true|false)')
WHOLE = {"int", "bigint", "smallint", "tinyint"}
FLOATS = {"double", "float"}
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def stats(rows: int, found: Mapping[str, Mapping[str, str]], columns: Sequence[StoredColumn]) -> str:
    """Return a file's statistics as Delta's JSON, from DuckDB's statistics by column.

    Bounds that aren't known exactly are left out, which is always correct: a reader then opens the file.

    >>> found = {"min": "1", "max": "3", "min_is_exact": "true", "max_is_exact": "true", "null_count": "0"}
    >>> stats(2, {'"a"': found}, [StoredColumn("a", "int")])
    '{"numRecords":2,"minValues":{"a":1},"maxValues":{"a":3},"nullCount":{"a":0}}'
    """
    least, greatest, nulls = [], [], []
    for column in columns[:MOST_COLUMNS]:
        known = found.get(quoted(column.name))
        if known is None or column.type.startswith(("array", "map", "struct")):
            continue
        name = json.dumps(column.name)
        if "null_count" in known:
            nulls.append(f"{name}:{int(known['null_count'])}")
        low, high = bounds(column.type, known)
        if low is not None and high is not None:
            least.append(f"{name}:{low}")
            greatest.append(f"{name}:{high}")
    parts = (("minValues", least), ("maxValues", greatest), ("nullCount", nulls))
    listed = "".join(f',"{title}":{{{",".join(items)}}}' for title, items in parts)
    return f'{{"numRecords":{rows}{listed}}}'


def loosened(stats: str) -> str:
    """Return statistics marked as wide: some rows are deleted, so the bounds hold but aren't tight.

    >>> loosened('{"numRecords":2,"minValues":{"a":1.10}}')
    '{"numRecords":2,"minValues":{"a":1.10},"tightBounds":false}'
    """
    # As text, because parsing would round long numbers.
    if TIGHT.search(stats):
        return TIGHT.sub(r"\1false", stats)
    return f'{stats.rstrip().removesuffix("}")},"tightBounds":false}}'


def quoted(name: str) -> str:
    """Return a column's name as DuckDB's statistics quote it."""
    return '"' + name.replace('"', '""') + '"'


def bounds(kind: str, known: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the minimum and the maximum as JSON; None where unknown or unusable."""
    low, high = known.get("min"), known.get("max")
    # Spark orders NaN above all other numbers; Parquet's statistics leave it out.
    if low is None or high is None or known.get("has_nan", "false") == "true":
        return None, None
    exact = known.get("min_is_exact") == known.get("max_is_exact") == "true"
    if kind == "string":
        whole = exact and len(low) <= LONGEST and len(high) <= LONGEST
        return (json.dumps(low), json.dumps(high)) if whole else (None, None)
    if not exact:
        return None, None
    if kind in WHOLE | FLOATS or kind.startswith("decimal"):
        return (low, high) if NUMBER.fullmatch(low) and NUMBER.fullmatch(high) else (None, None)
    if kind == "date":
        return (json.dumps(low), json.dumps(high)) if DAY.fullmatch(low) and DAY.fullmatch(high) else (None, None)
    if kind in ("timestamp", "timestamp_ntz"):
        zone = "Z" if kind == "timestamp" else ""
        return _time(low, zone, up=False), _time(high, zone, up=True)
    return None, None


@lru_cache(1024)  # the same in each tick
def leaves(column: StoredColumn) -> tuple[tuple[str, str], ...]:
    """Return the path in DuckDB's statistics and the type of each plain value in a column; type "" if unknown.

    >>> leaves(StoredColumn("lines", "array<struct<id:string,pieces:int>>"))
    (('"lines"."element"."id"', 'string'), ('"lines"."element"."pieces"', 'int'))
    """
    kind = spark_types.read(column.type)
    return ((quoted(column.name), ""),) if kind is None else tuple(_leaves(quoted(column.name), kind))


def _leaves(path: str, kind: Kind) -> Iterator[tuple[str, str]]:
    match kind.name:
        case "array":
            names: tuple[str, ...] = ("element",)
        case "map":
            names = ("key", "value")
        case "struct":
            names = kind.fields
        case _:
            yield path, str(kind)
            return
    for name, part in zip(names, kind.parts, strict=True):
        yield from _leaves(f"{path}.{quoted(name)}", part)


def is_narrow(kind: str, known: Mapping[str, str] | None) -> bool:
    """Return whether any two values are less than 2^31 apart, if their type has 32 bits; else True.

    `known`: DuckDB's statistics of the values; None if there are none. Decimals of up to 9 digits are always less than
    2^31 apart, and so are days of the years 0 to 9999.

    >>> is_narrow("int", {"min": "-1", "max": "2147483646"}), is_narrow("int", {"min": "-1", "max": "2147483647"})
    (True, False)
    """
    if kind not in ("int", "date"):
        return True
    if known is None:
        return False
    low, high = known.get("min"), known.get("max")
    if low is None or high is None:
        return True  # each value is NULL
    if kind == "int":
        return int(high) - int(low) < 2**31
    return DAY.fullmatch(low) is not None and DAY.fullmatch(high) is not None


def _time(text: str, zone: str, *, up: bool) -> str | None:
    """Return a time in Delta's form, to the millisecond, rounded up or down; None if there is no such time."""
    found = TIME.fullmatch(text)
    if found is None:
        return None
    moment = datetime.fromisoformat(f"{found[1]}T{found[2]}")
    rest = timedelta(microseconds=moment.microsecond % 1000)
    try:
        moment = moment - rest + timedelta(milliseconds=1) if up and rest else moment - rest
    except OverflowError:
        return None
    return json.dumps(moment.isoformat(timespec="milliseconds") + zone)


def partition_text(value: Any) -> str | None:
    """Return a partition value in Delta's form (Delta protocol, "Partition Value Serialization").

    Raises: ValueError for the empty text, which other readers read as NULL.
    """
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case datetime():
            moment = value if value.tzinfo is None else value.astimezone(timezone.utc).replace(tzinfo=None)
            return moment.isoformat(sep=" ", timespec="microseconds")
        case date():
            return value.isoformat()
        case int():
            return str(value)
        case str() if value:
            return value
        case _:
            raise ValueError(f"invalid partition value: {value!r}")


def require_days(table: TableSpec, partitions: Iterable[Iterable[str | None]]) -> None:
    """Reject days that Delta's log can't name, before a file of their partition is written (SR736)."""
    kinds = {column.name: column.type for column in table.columns}
    for partition in partitions:
        for name, text in zip(table.partition_by, partition, strict=True):
            if kinds[name] == "date" and text is not None and not DAY.fullmatch(text):
                raise no_day(table.name, name, text)


def no_day(table: str, column: str, text: str) -> EngineError:
    """Return the error that a table can't have a partition for a day."""
    return EngineError(f"SR736 {day_range_message(table, column)}: {text}", model=table)


def day_range_message(table: str, column: str) -> str:
    """Return the text that explains which days a partition can have.

    >>> print(day_range_message("by_day", "day"))
    the partition column `day` of by_day must be in years 1 to 9999. Filter such rows, or limit the value by least() \
and greatest(). Nothing was written. The value is
    """
    return (
        f"the partition column `{column}` of {table} must be in years 1 to 9999. Filter such rows, or limit the value "
        "by least() and greatest(). Nothing was written. The value is"
    )


def is_spelled_alike(kind: str, text: str | None) -> bool:
    """Return whether all writers spell a partition's value in the same way: a whole number, or a day.

    >>> [is_spelled_alike("date", text) for text in ("2026-01-02", "0044-03-15 (BC)", None)]
    [True, False, False]
    """
    spelling = DAY if kind == "date" else INTEGER if kind in WHOLE else None
    return spelling is not None and text is not None and spelling.fullmatch(text) is not None


def folder(values: Mapping[str, str | None]) -> str:
    """Return the folder of a partition below its table's folder; "" for a table without partitions.

    Letters beyond ASCII stay: Spark decodes an escape as a letter, not as a byte of UTF-8.

    >>> folder({"day": "2026-01-02", "city": "Bad Ölm", "at": None})
    'day=2026-01-02/city=Bad%20Ölm/at=__HIVE_DEFAULT_PARTITION__'
    """
    return "/".join(f"{name}={NO_VALUE if text is None else _escaped(text)}" for name, text in values.items())


def _escaped(text: str) -> str:
    return "".join(quote(letter, safe="") if letter.isascii() else letter for letter in text)
