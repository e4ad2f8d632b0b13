"""What a site is of: a project, and what past ticks say about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlrun.artifacts.nodes import Naming
from sqlrun.engine_api import Dialect
from sqlrun.outcome import read
from sqlrun.publish.table_state import Published

if TYPE_CHECKING:
    from sqlrun.pipeline import Prepared


@dataclass(frozen=True, slots=True)
class Past:
    """What a warehouse knows; empty before the first tick.

    `rows` and `rates` are by table, as in `explain.Known`. `checks` has the last result of each check by its id,
    `stats` the run stats of the last ticks of each model, the newest first. `faults` say what can't be read.
    """

    published: Published | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    checks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stats: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """What a site is of: a project, its names in SQL, what past ticks say, and the dialect of each model's statements.

    `at` is the time of the tick that the statements belong to.
    """

    prepared: Prepared
    naming: Naming
    past: Past
    dialects: Mapping[str, Dialect]
    at: datetime


def outcome(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the last result of a check as JSON values: `css` is the class of its color, `word` its label."""
    found = read(row["status"])
    return {
        "tick": row["tick"],
        "as_of": f"{row['as_of']:%Y-%m-%d %H:%M} UTC",
        "published": row["published"],
        "css": found.css,
        "word": found.words.tag,
        "rank": found.rank or 0,
        "evaluated": row["evaluated"],
        "unexpected": row["unexpected"],
        "message": row["message"],
    }
