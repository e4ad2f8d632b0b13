"""Counts of the lines that a landing on Spark reads and drops, observed while its rows are written. Shell: Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlrun.engine_api import LONGEST_SAMPLE, DroppedLine, Landing, LineCounts
from sqlrun.incremental.landing.line_grammar import stripped
from sqlrun.incremental.landing.query import DROPPED, ORIGIN, RAW
from sqlrun.project import BLANK_LINE
from sqlrun.source_api import Extent
from sqlrun.transpile.writer import string

# Names of the two observations: of the lines, and of the query's rows.
LINES, ROWS = "sqlrun_lines", "sqlrun_rows"


def of_lines() -> list[Any]:
    """Return the metrics of a frame of lines; most lines begin with a bracket, and aren't trimmed."""
    from pyspark.sql.functions import expr

    blank = f"not startswith(value, '{{') and {stripped('value', 'spark')} = ''"
    return [expr("count(*) as lines"), expr(f"count_if({blank}) as blank")]


def of_rows(landing: Landing) -> list[Any]:
    """Return the metrics of the landing query's rows: for each reason its number of rows and the first of them."""
    from pyspark.sql.functions import expr

    found = []
    for number, reason in enumerate(landing.drops):
        is_dropped = f"{DROPPED} = {string(reason, 'spark')}"
        sample = f"struct({ORIGIN} as origin, left({RAW}, {LONGEST_SAMPLE}) as line)"
        found += [
            expr(f"count_if({is_dropped}) as n{number}"),
            expr(f"min(if({is_dropped}, {sample}, null)) as s{number}"),
        ]
    return found


def observed(frame: Any, name: str, metrics: list[Any]) -> tuple[Any, Any]:
    """Return a frame that computes metrics when it is written, and the observation that then has them."""
    from pyspark.sql import Observation

    observation = Observation(name)
    return frame.observe(observation, *metrics), observation


def landed(rows: Any) -> Any:
    """Return the rows of the landing query that aren't dropped, without the reason."""
    return rows.where(f"{DROPPED} is null").drop(DROPPED)


def of_batch(landing: Landing, extents: Mapping[str, Extent], rows: Mapping[str, Any]) -> LineCounts:
    """Return the counts of a planned batch: what its reading found, and the observed metrics of its rows."""
    found = counts(landing, {"lines": 0, "blank": 0}, rows)
    for extent in extents.values():
        found += LineCounts(extent.lines, extent.dropped)
    return found


def counts(landing: Landing, lines: Mapping[str, Any], rows: Mapping[str, Any]) -> LineCounts:
    """Return the counts of a batch from its observed metrics."""
    dropped = {reason: int(rows[f"n{number}"]) for number, reason in enumerate(landing.drops)}
    firsts = [(reason, rows[f"s{number}"]) for number, reason in enumerate(landing.drops)]
    samples = tuple(DroppedLine(reason, one["origin"], one["line"]) for reason, one in firsts if one is not None)
    return LineCounts(int(lines["lines"]), {**dropped, BLANK_LINE: int(lines["blank"])}, samples=samples)
