"""Sums over the accounting of landed lines: the same for the command, the page, the report and the metrics. Pure.

A row is one of `system_tables/intake.py`: a mapping that has at least `NUMBERS`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlrun.source_api import NUMBERS, LineSums, LostLines

Row = Mapping[str, Any]


def of(rows: Sequence[Row]) -> LineSums:
    """Return the sums of rows."""
    reasons: dict[str, int] = {}
    for row in rows:
        for reason, count in json.loads(row["dropped_because"] or "{}").items():
            reasons[reason] = reasons.get(reason, 0) + count
    numbers = {name: _total(rows, name) for name in NUMBERS}
    return LineSums(**numbers, reasons=dict(sorted(reasons.items())), losses=tuple(losses(rows)))


def by(rows: Iterable[Row], keys: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows grouped by some of their columns, in the order of their first ones."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def losses(rows: Iterable[Row]) -> list[LostLines]:
    """Return the accepted losses of rows, in their order."""
    found = []
    for row in rows:
        if row["lost_because"]:
            who, _, when = (row["accepted_by"] or "").rpartition(", ")
            found.append(
                LostLines(row["source"], row["part"], row["tick"], row["lost_because"], row["lost"], who, when)
            )
    return found


def _total(rows: Sequence[Row], number: str) -> int | None:
    known = [row[number] for row in rows if row[number] is not None]
    return sum(known) if known else None
