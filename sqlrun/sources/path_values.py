"""Values that a file's path has for the columns with `from: path` and `from: file`. Pure.

They are members that each record of the file gets, as those of a message (`attached.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from sqlrun.project import Column
from sqlrun.sources.attached import quoted

PATH, FILE = "path", "file"
# What Hive, and Spark after it, write as the value of a partition without one.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"(-?)0*([0-9]+)")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WHOLES = ("tinyint", "smallint", "int", "bigint")
_FRACTIONS = ("float", "double", "decimal")


def members(columns: Sequence[Column], path: str) -> str:
    """Return the members of a file's records for these columns, with commas."""
    folders, _, name = path.rpartition("/")
    values = dict(segment.split("=", 1) for segment in folders.split("/") if "=" in segment)
    found = []
    for column in columns:
        text = name if column.comes_from == FILE else _value(values.get(column.name))
        found.append(f"{quoted(column.name)}:{'null' if text is None else _json(text, column.type)}")
    return ",".join(found)


def _value(written: str | None) -> str | None:
    if written is None or written == NO_VALUE:
        return None
    return unquote(written, errors="replace")


def _json(text: str, kind: str) -> str:
    """Return a value as JSON, as its type is written in JSON lines; `07` is the number 7, as in Hive.

    >>> _json("07", "int"), _json("true", "boolean"), _json("1.50", "decimal(9,2)"), _json("x", "int")
    ('7', 'true', '1.50', '"x"')
    """
    name = kind.partition("(")[0]
    if name in _WHOLES and (whole := _WHOLE.fullmatch(text)):
        return f"{whole[1]}{whole[2]}"
    is_number = name in _FRACTIONS and _NUMBER.fullmatch(text)
    is_truth = name == "boolean" and text in ("true", "false")
    return text if is_number or is_truth else quoted(text)


def joined(values: Any, faults: Any, found: str) -> Any:
    """Return a column of objects' texts with members written before their own, as `attached.joined` does with one text.

    A text that is no object, or has a fault, stays as it is.
    """
    import pyarrow.compute as pc

    if not found:
        return values
    replacement = found.replace("\\", "\\\\")
    blank = r"[ \t\r\n]*"
    filled = pc.replace_substring_regex(values, rf"\A{blank}\{{{blank}", f"{{{replacement},", max_replacements=1)
    empty = pc.replace_substring_regex(values, rf"\A{blank}\{{{blank}\}}", f"{{{replacement}}}", max_replacements=1)
    is_empty = pc.match_substring_regex(values, rf"\A{blank}\{{{blank}\}}")
    return pc.if_else(pc.is_valid(faults), values, pc.if_else(is_empty, empty, filled))
