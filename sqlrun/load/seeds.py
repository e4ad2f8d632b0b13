"""A seed's text fields as typed values. Pure."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from sqlrun.project import Seed
from sqlrun.runtime.clock import parse_time


def typed_rows(seed: Seed) -> tuple[tuple[object, ...], ...]:
    """Turn a seed's rows into Python values by its columns' types; load has checked that they fit."""
    kinds = [column.type for column in seed.columns]
    return tuple(tuple(typed(v, kind) for v, kind in zip(row, kinds, strict=True)) for row in seed.rows)


def typed(text: str | None, kind: str) -> object:
    """Turn a field into a value; None stays None.

    >>> typed("1.50", "decimal(10,2)"), typed("3", "int"), typed(None, "int")
    (Decimal('1.50'), 3, None)
    """
    if text is None:
        return None
    match kind.partition("(")[0]:
        case "int" | "bigint" | "smallint" | "tinyint":
            return int(text)
        case "decimal":
            return Decimal(text)
        case "double" | "float":
            return float(text)
        case "boolean":
            return text.lower() == "true"
        case "date":
            return date.fromisoformat(text)
        case "timestamp":
            return parse_time(text)
        case _:
            return text
