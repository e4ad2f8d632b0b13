"""Column types that a dashboard can show, by kind. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

WHOLE = ("tinyint", "smallint", "int", "bigint")
TEXTS, WHOLES, TIMES = "a text", "a whole number", "a timestamp"
NUMBERS, KEYS_OF = "a number", "a text or a whole number"


def kind_of(written: str) -> str:
    """Return a type's kind, one of the constants above; "" for a type that a dashboard can't show."""
    if written == "string":
        return TEXTS
    if written in WHOLE:
        return WHOLES
    if written in ("float", "double") or written.startswith("decimal"):
        return NUMBERS
    return TIMES if written == "timestamp" else ""


def fits(written: str, wanted: str) -> bool:
    """Return whether a column of a type can be shown where the declaration expects a kind.

    >>> fits("decimal(18,2)", NUMBERS), fits("int", KEYS_OF), fits("date", NUMBERS)
    (True, True, False)
    """
    found = kind_of(written)
    return found == wanted or (found, wanted) in ((WHOLES, NUMBERS), (WHOLES, KEYS_OF), (TEXTS, KEYS_OF))


def fields_of(written: str) -> Mapping[str, str] | None:
    """Return the fields of an array of structs, each with its type; None for another type.

    >>> fields_of("array<struct<id:string,sum:decimal(10,2)>>"), fields_of("array<int>")
    ({'id': 'string', 'sum': 'decimal(10,2)'}, None)
    """
    found = re.fullmatch(r"array<struct<(.*)>>", written)
    if found is None:
        return None
    parts, depth = [""], 0
    for letter in found[1]:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return {name.strip("`"): kind for name, _, kind in (part.partition(":") for part in parts)}
