"""Rows of values as text: an aligned table, JSON, CSV. Pure."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal

from sqlrun.runtime.far_times import FarDay, FarTime

Align = str  # "<" or ">", as in a format
# Characters that change the direction of the following text, so that a value could make a line read differently.
_TURNING = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def escaped(text: str, keep: str = "") -> str:
    r"""Return text with a terminal's control characters escaped, except for those in `keep`.

    >>> escaped("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or not _obeyed(c) else repr(c)[1:-1] for c in text)


def _obeyed(character: str) -> bool:
    return character in _TURNING or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")


def width(text: str) -> int:
    """Return the number of terminal cells of a text.

    >>> width("寿司")
    4
    """
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def value_text(value: object) -> str:
    """Return one value as text: struct fields as `{name: value}`, times in UTC, NULL for None.

    >>> value_text([{"rank": 1, "item_id": "i1"}])
    '[{rank: 1, item_id: i1}]'
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case Decimal():
            return format(value, "f")
        case datetime():
            return _moment(value, " ")
        case FarTime() | FarDay():
            return str(value)
        case bytes():
            return "0x" + value.hex()
        case dict():
            return "{" + ", ".join(f"{value_text(k)}: {value_text(v)}" for k, v in value.items()) + "}"
        case list() if value and all(isinstance(item, tuple) for item in value):
            return value_text(dict(value))  # Arrow returns a map as a list of pairs
        case list() | tuple():
            return "[" + ", ".join(value_text(item) for item in value) + "]"
        case _:
            return str(value)


def _moment(value: datetime, between: str) -> str:
    if value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    return value.isoformat(between, "microseconds" if value.microsecond else "seconds")


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], limit: int = 0) -> list[str]:
    """Return rows aligned under their columns, numbers to the right; at most `limit` of them, 0 is all."""
    shown = rows[:limit] if limit else rows
    cells = [[escaped(value_text(value)) for value in row] for row in shown]
    aligns = [">" if is_numeric(row[place] for row in shown) else "<" for place in range(len(columns))]
    lines = aligned([escaped(name) for name in columns], cells, aligns)
    hidden = len(rows) - len(shown)
    return [*lines, f"... and {hidden:,} more"] if hidden else lines


def is_numeric(values: Iterable[object]) -> bool:
    """Return whether a column holds numbers, and nothing else but NULL."""
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in known)


def aligned(header: Sequence[str], cells: Sequence[Sequence[str]], aligns: Sequence[Align]) -> list[str]:
    """Return texts in columns under an underlined header."""
    widths = [max(width(row[place]) for row in (header, *cells)) for place in range(len(header))]
    rule = ["-" * size for size in widths]
    return [_aligned_row(row, widths, aligns) for row in (header, rule, *cells)]


def _aligned_row(row: Sequence[str], widths: Sequence[int], aligns: Sequence[Align]) -> str:
    parts = []
    for text, size, align in zip(row, widths, aligns, strict=True):
        gap = " " * (size - width(text))
        parts.append(gap + text if align == ">" else text + gap)
    return "  ".join(parts).rstrip()


def as_json(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as a JSON list, one row on each line; decimals retain all digits, times are in UTC."""
    lines = ",\n".join(f"  {json_text(row)}" for row in rows)
    return f"[\n{lines}\n]" if lines else "[]"


def json_text(value: object) -> str:
    """Return one value as JSON in ASCII; a value without a JSON type becomes text.

    >>> json_text({"total": Decimal("12.50")})
    '{"total": 12.50}'
    """
    match value:
        case Decimal() if value.is_finite():
            # A number, not a text; json itself would convert it to a float.
            return format(value, "f")
        case float() if not math.isfinite(value):
            return json.dumps(str(value))
        case None | bool() | int() | float() | str():
            return json.dumps(value)
        case datetime():
            return json.dumps(_moment(value, "T") + "Z")
        case FarTime():
            return json.dumps(value.text("T") + "Z")
        case Mapping():
            return "{" + ", ".join(f"{json.dumps(str(k))}: {json_text(v)}" for k, v in value.items()) + "}"
        case list() if value and all(isinstance(item, tuple) for item in value):
            return json_text({value_text(key): held for key, held in value})
        case list() | tuple():
            return "[" + ", ".join(json_text(item) for item in value) + "]"
        case date():
            return json.dumps(value.isoformat())
        case _:
            return json.dumps(value_text(value))


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as CSV with a header; NULL is an empty field, an empty text is `\"\"`, nested values are JSON."""
    header = ",".join(_quoted(name) for name in columns)
    return "\n".join([header, *(",".join(_field(row[name]) for name in columns) for row in rows)])


def _field(value: object) -> str:
    if value is None:
        return ""
    return _quoted(json_text(value) if isinstance(value, dict | list) else value_text(value))


def _quoted(text: str) -> str:
    if text and not any(sign in text for sign in ',"\r\n') and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, as in `1 model`, `1,200 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
