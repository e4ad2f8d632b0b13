"""Hash chain of the ledger's rows: it detects changed, removed and inserted rows. Pure.

A row's hash covers its values and the previous row's hash, so the rows make a chain, in the order of their ticks,
`pinned` before `published`. The predecessor of the oldest retained row may be gone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

SEALED = ("tick", "kind", "as_of", "written_at", "holder", "tables", "follows")


def seal(row: Mapping[str, Any]) -> str:
    """Return the hash of a row's values, `follows` (the previous hash) among them."""
    values = [_text(row.get(name)) for name in SEALED]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def _text(value: object) -> str:
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)
        return moment.isoformat(timespec="microseconds")
    return str(value)


def order(row: Mapping[str, Any]) -> tuple[int, bool]:
    """Return a sort key for the order in which rows were written."""
    return row["tick"], row["kind"] == "published"


def broken(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a message about the first row that doesn't match its hash or its predecessor; empty if all match."""
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
