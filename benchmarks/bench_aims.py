"""Targets of sqlrun relative to its rivals, and whether a run meets them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.figures import Figures, ratio


@dataclass(frozen=True, slots=True)
class Aim:
    """A target ratio: a rival's tick to sqlrun's (`wanted` starts with ≥), or sqlrun's to another one (≤)."""

    text: str
    wanted: str
    found: float | None

    @property
    def verdict(self) -> str:
        """Return whether the target was met, as text."""
        if self.found is None:
            return "not run"
        limit = float(self.wanted[2:])
        return "met" if (self.found >= limit if self.wanted[0] == "≥" else self.found <= limit) else "not met"


# Size, contender, slower contender, minimum ratio.
AHEAD = (
    ("1m", "sqlrun_auto", "expert", 10.0),
    ("1m", "sqlrun_auto", "dbt_spark", 50.0),
    ("1m", "sqlrun_auto", "sdp", 50.0),
    ("1m", "sqlrun_auto", "dbt_duckdb", 4.0),
    ("1m", "sqlrun_auto", "duckdb_full", 1.0),
    ("10m", "sqlrun_auto", "duckdb_full", 6.0),
    ("10m", "sqlrun_auto", "expert", 15.0),
    ("1m", "sqlrun_duckdb_command", "dbt_duckdb", 2.0),
)
# Size, contender, other contender, maximum ratio.
WITHIN = (
    ("20k", "sqlrun_spark", "expert", 0.6),
    ("1m", "sqlrun_spark", "expert", 0.6),
    ("10m", "sqlrun_spark", "expert", 0.6),
    ("1m", "sqlrun_spark", "spark_full", 1.0),
    ("1m+5m", "sqlrun_auto", "sqlrun_duckdb", 1.1),
    ("1m+5m", "sqlrun_auto", "sqlrun_spark", 1.1),
)
FLAT = ("sqlrun_duckdb", "sqlrun_spark")


def aims(figures: Sequence[Figures]) -> list[Aim]:
    """Return every target whose two contenders both ran at some size."""
    known = {one.key: one for one in figures}
    names = {one.contender: one.title for one in figures}
    found = []
    for size, one, other, times in AHEAD:
        if one in names and other in names:
            text = f"{size}: {names[one]} ahead of {names[other]}"
            found.append(Aim(text, f"≥ {times:g}", _between(known, (size, other), (size, one))))
    for size, one, other, times in WITHIN:
        if one in names and other in names:
            text = f"{size}: a tick of {names[one]} to that of {names[other]}"
            found.append(Aim(text, f"≤ {times:g}", _between(known, (size, one), (size, other))))
    for one in FLAT:
        if one in names:
            text = f"10m to 1m: a warm tick of {names[one]}"
            found.append(Aim(text, "≤ 1.2", _between(known, ("10m", one), ("1m", one))))
    return found


def _between(known: dict[tuple[str, str], Figures], one: tuple[str, str], other: tuple[str, str]) -> float | None:
    if one not in known or other not in known:
        return None
    return ratio(known[one].median("seconds"), known[other].median("seconds"))
