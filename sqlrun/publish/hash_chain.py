"""Seals of the ledger's rows: a row that was changed, removed or put in by hand is noticed. Pure.

A row's seal is the hash of its values and of the seal before it, so the rows make a chain, in the order of their ticks,
`pinned` before `published`. The oldest row that is kept may follow one that is gone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

SEALED = ("tick", "kind", "as_of", "written_at", "holder", "tables", "follows")


def seal(row: Mapping[str, Any]) -> str:
    """Hash a row's values, `follows` (the seal before it) among them."""
    values = [_text(row.get(name)) for name in SEALED]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def _text(value: object) -> str:
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)
        return moment.isoformat(timespec="microseconds")
    return str(value)


def order(row: Mapping[str, Any]) -> tuple[int, bool]:
    """Sort rows as they were written."""
    return row["tick"], row["kind"] == "published"


def broken(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return which row doesn't fit its seal, or the row before it; nothing where all do."""
    before: Mapping[str, Any] | None = None
    for row in sorted(rows, key=order):
        name = f"the row of tick {row['tick']}, {row['kind']},"
        if row["seal"] != seal(row):
            return f"{name} doesn't match its hash"
        if before is not None and row["follows"] != before["seal"]:
            return (
                f"{name} doesn't have the hash of the row of tick {before['tick']}, {before['kind']}, "
                "as its previous hash"
            )
        before = row
    return ""
