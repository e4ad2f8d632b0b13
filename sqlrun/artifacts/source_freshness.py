"""dbt's sources.json, version 3: the age of the newest event of each source that declares limits. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlrun.artifacts import unique_ids
from sqlrun.artifacts.nodes import Values, criteria
from sqlrun.check import freshness
from sqlrun.outcome import Outcome
from sqlrun.project import Freshness, Source

SCHEMA = "https://schemas.getdbt.com/dbt/sources/v3.json"


@dataclass(frozen=True, slots=True)
class SourceAge:
    """The newest event of a source up to now, as its table has it.

    `newest` is ISO text in UTC, "" if there is no event; `age` is in seconds, None without an event. `seconds` is the
    time that the query took.
    """

    source: Source
    declared: Freshness
    newest: str
    age: float | None
    seconds: float

    @property
    def outcome(self) -> Outcome:
        """Return the outcome by the declared limits."""
        return freshness.outcome(self.age, self.declared)


def document(project: str, ages: Iterable[SourceAge], at: datetime, elapsed: float, invocation: str) -> Values:
    """Return the document; `at` is the time of writing."""
    return {
        "metadata": unique_ids.head(SCHEMA, at, invocation),
        "results": [_result(project, one, at) for one in ages],
        "elapsed_time": round(elapsed, 6),
    }


def _result(project: str, one: SourceAge, at: datetime) -> Values:
    unique_id = unique_ids.source(project, one.source)
    if one.age is None:
        return {"unique_id": unique_id, "error": "no event has landed", "status": "runtime error"}
    began = unique_ids.moment(at - timedelta(seconds=one.seconds))
    return {
        "unique_id": unique_id,
        "max_loaded_at": one.newest,
        "snapshotted_at": unique_ids.moment(at),
        "max_loaded_at_time_ago_in_s": one.age,
        # An age that exceeds its limit is an error in dbt's words.
        "status": (Outcome.ERROR if one.outcome is Outcome.FAIL else one.outcome).dbt,
        "criteria": criteria(one.declared),
        "adapter_response": {},
        "timing": [{"name": "execute", "started_at": began, "completed_at": unique_ids.moment(at)}],
        "thread_id": "main",
        "execution_time": round(one.seconds, 6),
    }
