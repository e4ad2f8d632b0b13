"""Check of a contender's mart against the tests' oracle, which reads the raw lines in plain Python."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support import oracle

Mart = dict[tuple[int, str], tuple[int, str, tuple[tuple[int, str, int], ...]]]
STAMP = re.compile(r"(?:orders|tick)-(\d{8}T\d{4})")
# An order arrives up to two hours before its time, and never more than that: older files have no order of the window.
REACH = timedelta(hours=168 + 3)
_KNOWN: dict[tuple[str, ...], Mart] = {}


def canonical(rows: Iterable[dict[str, Any]]) -> Mart:
    """Return a contender's mart in a comparable form."""
    return {
        (int(row["window_hours"]), row["restaurant_id"]): (
            int(row["n_orders"]),
            f"{row['total_sales']:.2f}",
            tuple((int(d["dish_rank"]), d["dish_id"], int(d["quantity"])) for d in row["top_dishes"]),
        )
        for row in rows
    }


def truth(files: Iterable[str], as_of: datetime) -> Mart:
    """Return the mart computed from the raw lines, once for the same files, which the sizes share."""
    needed = [Path(file) for file in sorted(files) if is_needed(file, as_of)]
    key = (as_of.isoformat(), *(f"{path.name}:{path.stat().st_size}" for path in needed))
    if key not in _KNOWN:
        found = oracle.mart(oracle.read_lines(needed), as_of)
        _KNOWN[key] = {
            window: (row["n_orders"], f"{row['total_sales']:.2f}", tuple(row["top_dishes"]))
            for window, row in found.items()
        }
    return _KNOWN[key]


def is_needed(file: str, as_of: datetime) -> bool:
    """Return whether a file may have orders of the mart's longest window."""
    return _end(file) >= f"{as_of - REACH:%Y%m%dT%H%M}"


def _end(file: str) -> str:
    found = STAMP.search(Path(file).name)
    assert found is not None, file
    return found[1]


def wrong(mart: Mart, right: Mart) -> int:
    """Return the number of missing, unexpected or different rows."""
    return sum(mart.get(key) != right.get(key) for key in mart.keys() | right.keys())
