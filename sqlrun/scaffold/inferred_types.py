"""Types of fields, inferred from sampled records. Pure.

A type must also hold the values of later files. So numbers get room: `bigint` for whole numbers, 18 digits for
fractions. A value that doesn't fit a column later is quarantined, and `sqlrun drift` names the type that would fit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlrun.incremental.landing.line_types import FORMS

# Digits of an inferred decimal, and how many of them may stand before the point.
DIGITS, LEAST_FRACTION = 18, 2
LARGEST = 2**63
FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The order of types in which the later one holds the values of the earlier ones.
NUMBERS = ("bigint", "decimal", "double")
TIMES = ("date", "timestamp")
FORM = {name: re.compile(form) for name, form in FORMS.items()}


class Number(str):
    """A number as it is written in a record."""


def record(text: str) -> Any:
    """Return a record's value with each number as its text; None if it isn't JSON.

    >>> record('{"price": 4.50}')
    {'price': '4.50'}
    """
    try:
        return json.loads(text, parse_int=Number, parse_float=Number)
    except (ValueError, RecursionError):
        return None


def columns(records: Iterable[Mapping[str, Any]], *, texts: bool) -> dict[str, str]:
    """Return the type of each field, in the order of their first occurrence.

    `texts`: every value is a text, as in CSV, so that a text that looks like a number is one.

    >>> columns([{"id": "1", "zip": "01234"}, {"id": "2", "zip": "80331"}], texts=True)
    {'id': 'bigint', 'zip': 'string'}
    """
    values: dict[str, list[Any]] = {}
    for each in records:
        for name, value in each.items():
            values.setdefault(name, []).append(value)
    return {name: of_values(found, texts=texts) for name, found in values.items()}


def of_values(values: Iterable[Any], *, texts: bool = False) -> str:
    """Return the type that holds all values; `string` if there is none, or no other type does.

    >>> of_values([Number("1"), Number("2.125"), None]), of_values(["2026-11-01", "2026-11-01T12:00:00Z"])
    ('decimal(18,3)', 'timestamp')
    >>> of_values([{"a": Number("1")}, {"a": Number("2"), "b": ["x"]}])
    'struct<a:bigint,b:array<string>>'
    """
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, dict) for value in present):
        fields = columns(present, texts=texts)
        if not fields or not all(FIELD.fullmatch(name) for name in fields) or _is_ambiguous(fields):
            return "string"
        return f"struct<{','.join(f'{name}:{kind}' for name, kind in fields.items())}>"
    if present and all(isinstance(value, list) for value in present):
        return f"array<{of_values([element for value in present for element in value], texts=texts)}>"
    return _scalar(present, texts)


def _is_ambiguous(names: Iterable[str]) -> bool:
    """Return whether two names differ only in case, which SQL can't distinguish."""
    found = [name.lower() for name in names]
    return len(found) != len(set(found))


def _scalar(values: Sequence[Any], texts: bool) -> str:
    kinds = {_kind(value, texts) for value in values}
    match kinds:
        case _ if len(kinds) == 1 and kinds != {"decimal"}:
            return kinds.pop()
        case _ if kinds and kinds <= set(NUMBERS):
            return "double" if "double" in kinds else _decimal(values)
        case _ if kinds and kinds <= set(TIMES):
            return "timestamp"
        case _:
            return "string"


def _kind(value: Any, texts: bool) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, Number) or (texts and _is_plain_number(value)):
        return _number(value)
    if not isinstance(value, str):
        return "string"
    if texts and value in ("true", "false"):
        return "boolean"
    return next((name for name in TIMES if FORM[name].fullmatch(value)), "string")


def _is_plain_number(value: Any) -> bool:
    """Return whether a text is a number and nothing else: a code such as 01234 would lose its zero.

    >>> [_is_plain_number(text) for text in ("0", "-1.50", "0.5", "01234", "+49", "1e5", "")]
    [True, True, True, False, False, False, False]
    """
    return isinstance(value, str) and re.fullmatch(r"-?(0|[1-9][0-9]*)([.][0-9]+)?", value) is not None


def _number(text: str) -> str:
    if re.fullmatch(r"-?[0-9]+", text):
        return "bigint" if -LARGEST <= int(text) < LARGEST else "decimal"
    return "decimal" if re.fullmatch(r"-?[0-9]+[.][0-9]+", text) else "double"


def _decimal(values: Iterable[str]) -> str:
    """Return a decimal with the digits that the values have after the point; `double` if 38 digits are too few."""
    sizes = [Decimal(value).as_tuple() for value in values]
    fraction = max(max(-int(size.exponent), 0) for size in sizes)
    whole = max(len(size.digits) + min(int(size.exponent), 0) for size in sizes)
    fraction = max(fraction, LEAST_FRACTION)
    digits = max(DIGITS, whole + fraction)
    return f"decimal({digits},{fraction})" if digits <= 38 else "double"
