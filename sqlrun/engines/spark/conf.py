"""Spark settings by statement size: small statements are interpreted, large ones compiled. Shell: Spark.

Spark compiles Java code for each query and re-plans it after each exchange. For a change of some thousand rows that
takes several times as long as the work itself, because each tick's literals make new code (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlrun.engines.spark import remote

# Settings, each with the maximum number of rows to read up to which it saves time.
INTERPRETED = 50_000
PLANNED_ONCE = 5_000_000
SMALL = (
    ("spark.sql.codegen.factoryMode", "NO_CODEGEN", INTERPRETED),
    ("spark.sql.codegen.wholeStage", "false", INTERPRETED),
    ("spark.sql.adaptive.enabled", "false", PLANNED_ONCE),
)
# Minimum size of a row, to estimate rows in a file without statistics.
ROW_BYTES = 20


def rows_in(files: Iterable[Mapping[str, Any]]) -> int:
    """Return an estimate of the rows in files from the log's entries: their count, or their size in bytes."""
    total = 0
    for file in files:
        known = file.get("num_records")
        total += known if known is not None else (file.get("size_bytes") or file.get("size") or 0) // ROW_BYTES
    return total


def choose(session: Any, rows: int) -> None:
    """Configure the session for a statement that reads `rows` rows; settings of the profile stay."""
    own = _own_settings(session)
    for key, value, most in SMALL:
        if own(key):
            continue
        if rows <= most:
            session.conf.set(key, value)
        else:
            session.conf.unset(key)


def _own_settings(session: Any) -> Callable[[str], bool]:
    """Return a function that returns whether the profile has a setting of a name."""
    if remote.is_remote(session):
        return frozenset(remote.own_settings(session)).__contains__
    contains: Callable[[str], bool] = session.sparkContext.getConf().contains
    return contains
