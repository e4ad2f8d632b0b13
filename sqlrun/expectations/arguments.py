"""Types of expectations' arguments, validated so that no other value reaches Great Expectations. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlrun.errors import first_line
from sqlrun.expectations.json_schemas import SchemaError, require_closed
from sqlrun.expectations.values import parameter
from sqlrun.project import Value

MOST_ITEMS = 10_000
LONGEST_TEXT = 10_000
LONGEST_QUERY = 100_000
# The C library pads to a width in the format, which could use up all memory.
FORMAT = re.compile(r"(?:[^%]|%[a-zA-Z%])*")
# Maximum number of digits before or after the point: a longer number is no bound of any column.
MOST_DIGITS = 400


def mistakes(kwargs: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """Yield each argument with a value of the wrong type, with a message.

    >>> list(mistakes({"column": "a", "strict_min": "yes"}))
    [('strict_min', 'must be true or false')]
    """
    for name, value in kwargs.items():
        check = TYPES.get(name)
        if value is None or parameter(value) is not None:
            continue
        wrong = "has no type that is known here" if check is None else check(value)
        if wrong:
            yield name, wrong


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False
    return _is_bounded(value)


def _is_bounded(value: Any) -> bool:
    """Return whether a number can be written out: `1e999999999` would use up all memory."""
    try:
        number = Decimal(str(value).strip()) if isinstance(value, str) else Decimal(value)
    except (ArithmeticError, ValueError):
        return isinstance(value, str)
    return number.is_finite() and abs(number.adjusted()) <= MOST_DIGITS


def _number(value: Any) -> str:
    return "" if _is_number(value) else "must be a finite number"


def _whole(value: Any) -> str:
    return "" if isinstance(value, int) and _is_number(value) else "must be a whole number"


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


def _query(value: Any) -> str:
    return "" if isinstance(value, str) and len(value) <= LONGEST_QUERY else "must be a query"


def _text(value: Any) -> str:
    sound = isinstance(value, str) and len(value) <= LONGEST_TEXT
    return "" if sound else f"must be a string of at most {LONGEST_TEXT:,} characters"


def _scalar(value: Any) -> str:
    """Validate a value that a column can be compared with; texts may be numbers of the column's type."""
    if parameter(value) is not None or isinstance(value, bool | date | datetime) or _is_number(value):
        return ""
    if isinstance(value, str) and _is_bounded(value):
        return _text(value)
    return "must be a string, a finite number, a date or a time"


def _listed(each: Callable[[Any], str]) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if not isinstance(value, list) or len(value) > MOST_ITEMS:
            return f"must be a list of at most {MOST_ITEMS:,} values"
        return next((f"contains a value that {wrong}" for wrong in map(each, value) if wrong), "")

    return check


def _maybe(each: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "" if value is None else each(value)


def _pair(value: Any) -> str:
    if not isinstance(value, list) or len(value) != 2:
        return "must be a pair"
    return next((wrong for wrong in map(_maybe(_scalar), value) if wrong), "")


def _mapping(**parts: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a validator of mappings with some of these parts and no others."""

    def check(value: Any) -> str:
        if not isinstance(value, Mapping) or not set(value) <= set(parts):
            return f"must be a mapping of {', '.join(parts)}"
        return next((f"contains `{key}`, which {wrong}" for key in value if (wrong := parts[key](value[key]))), "")

    return check


def _choice(*words: str) -> Callable[[Any], str]:
    return lambda value: "" if isinstance(value, str) and value in words else f"must be {' or '.join(words)}"


def _json_schema(value: Any) -> str:
    if not isinstance(value, Mapping):
        return "must be a mapping"
    try:
        require_closed(value)
    except SchemaError as error:
        return f"isn't a valid schema: {error}"
    return ""


def _time_format(value: Any) -> str:
    """Validate a format of Python's `strptime`."""
    if not isinstance(value, str) or len(value) > 200 or not FORMAT.fullmatch(value):
        return "must be a string of directives such as %Y-%m-%d, without flags or widths"
    try:
        datetime.strptime("", value)
    except ValueError as error:
        if "does not match" not in str(error):
            return f"can't be read: {first_line(error)}"
    return ""


def _share(value: Any) -> str:
    return "" if _is_number(value) and 0 <= value <= 1 and not math.isnan(value) else "must be a share from 0 to 1"


_NUMBERS = _listed(_number)
TYPES: Mapping[str, Callable[[Any], str]] = {
    "column": _text, "column_A": _text, "column_B": _text, "column_list": _listed(_text), "column_set": _listed(_text),
    "column_index": _whole, "mostly": lambda _: "", "row_condition": _query, "condition_parser": _text,
    "min_value": _scalar, "max_value": _scalar, "strict_min": _flag, "strict_max": _flag,
    "value": _number, "value_set": _listed(_maybe(_scalar)), "value_pairs_set": _listed(_pair), "sum_total": _number,
    "regex": _text, "regex_list": _listed(_text), "match_on": _choice("any", "all"),
    "json_schema": _json_schema, "strftime_format": _time_format,
    "method": _choice("iqr", "std"), "multiplier": _number, "threshold": _number, "double_sided": _flag,
    "ignore_row_if": _text, "or_equal": _flag, "ties_okay": _flag, "exact_match": _flag, "strictly": _flag,
    "quantile_ranges": _mapping(quantiles=_listed(_share), value_ranges=_listed(_listed(_maybe(_number)))),
    "allow_relative_error": _flag,
    "partition_object": _mapping(bins=_NUMBERS, values=_listed(_scalar), weights=_NUMBERS, tail_weights=_NUMBERS),
    "internal_weight_holdout": _share, "tail_weight_holdout": _share, "bucketize_data": _flag,
    "unexpected_rows_query": _query,
    "min_ratio": lambda _: "", "max_ratio": lambda _: "", "weeks": lambda _: "",
}  # fmt: skip
