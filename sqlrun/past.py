"""The past of a tick's measures, read once and only as much as there is to ask for. Shell: Delta files."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlrun import measures
from sqlrun.anomalies import RECENT, Kind, Past, kind_of
from sqlrun.events import Measure

NEEDED = ("tick", "as_of", "published", "subject", "measure", "value", "interval_seconds")
_Values = dict[tuple[str, str], list[Past]]


@dataclass(slots=True)
class History:
    """What earlier published ticks of an environment measured, up to a tick's time; its threads share it."""

    warehouse: str
    env: str
    as_of: datetime
    lock: threading.Lock = field(default_factory=threading.Lock)
    known: dict[int | None, _Values] = field(default_factory=dict)

    def same_hour(self, measure: Measure, at: datetime) -> list[Past]:
        """List a measure's values in the same hour of the days of the past weeks.

        Raises: EngineError if the past can't be read.
        """
        return self._of(at.hour).get((measure.subject, measure.measure), [])

    def recent(self, measure: Measure) -> list[Past]:
        """List a measure's values of the last day.

        Raises: EngineError if the past can't be read.
        """
        return self._of(None).get((measure.subject, measure.measure), [])

    def _of(self, hour: int | None) -> _Values:
        with self.lock:
            if hour not in self.known:
                self.known[hour] = {}  # what can't be read is not tried again
                since = self.as_of - (RECENT if hour is None else timedelta(weeks=measures.WEEKS, hours=1))
                hours = () if hour is None else (hour,)
                rows = measures.read(self.warehouse, self.env, since=since, hours=hours, columns=NEEDED)
                self.known[hour] = _values(rows)
            return self.known[hour]


def _values(rows: list[dict[str, Any]]) -> _Values:
    found: _Values = {}
    for row in rows:
        kind: Kind | None = kind_of(row["measure"])
        if kind is not None and row["published"] and row["value"] is not None:
            middle = measures.middle(row["as_of"], row["interval_seconds"])
            past = Past(middle, row["value"], row["interval_seconds"])
            found.setdefault((row["subject"], row["measure"]), []).append(past)
    return found
