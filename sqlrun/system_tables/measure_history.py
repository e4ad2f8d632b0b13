"""Lazily loaded history of measures, cached for one tick. Shell: Delta files."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlrun.errors import EngineError
from sqlrun.events import Measure
from sqlrun.expectations.catalogue import WEEKS
from sqlrun.runtime import arrow_rows
from sqlrun.system_tables import measures
from sqlrun.system_tables.anomalies import ALIKE, MOST_RECENT, RECENT, Kind, Past, kind_of

if TYPE_CHECKING:
    import pyarrow as pa

NEEDED = ("as_of", "published", "subject", "measure", "value", "interval_seconds")
SAME_HOUR = timedelta(weeks=WEEKS, hours=1)
_Values = dict[tuple[str, str], list[Past]]


@dataclass(slots=True)
class History:
    """Measures of an environment's earlier published ticks, up to a tick's time; shared by threads."""

    warehouse: str
    env: str
    as_of: datetime
    lock: threading.Lock = field(default_factory=threading.Lock)
    known: dict[tuple[timedelta, frozenset[int]], _Values | EngineError] = field(default_factory=dict)

    def same_hour(self, measure: Measure, at: datetime) -> list[Past]:
        """Return a measure's values in the same hour of the day in past weeks.

        Raises: EngineError if the history can't be read; only the first call raises it.
        """
        return self._of(measure, SAME_HOUR, frozenset({at.hour}))

    def same_hour_or_error(self, measure: Measure, at: datetime) -> list[Past]:
        """Return what `same_hour` returns, for callers that must not mistake an unreadable history for an empty one.

        Raises: EngineError if the history can't be read; every call raises it.
        """
        with self.lock:
            known = self.known.get((SAME_HOUR, frozenset({at.hour})))
        if isinstance(known, EngineError):
            raise EngineError(str(known))
        return self.same_hour(measure, at)

    def recent(self, measure: Measure, at: datetime) -> list[Past]:
        """Return a measure's recent values: the time that the last few ticks cover, at most one day.

        Raises: EngineError if the history can't be read; only the first call raises it.
        """
        back = min(24, 2 + math.ceil(ALIKE * MOST_RECENT * (measure.interval_seconds or 0) / 3600))
        return self._of(measure, RECENT, frozenset((at.hour - n) % 24 for n in range(back)))

    def _of(self, measure: Measure, back: timedelta, hours: frozenset[int]) -> list[Past]:
        with self.lock:
            if (back, hours) not in self.known:
                since = self.as_of - back
                try:
                    rows = measures.table(self.warehouse, self.env, since=since, hours=sorted(hours), columns=NEEDED)
                except EngineError as error:
                    self.known[back, hours] = error  # don't try again
                    raise
                self.known[back, hours] = {} if rows is None else _values(rows)
            known = self.known[back, hours]
            return [] if isinstance(known, EngineError) else known.get((measure.subject, measure.measure), [])


def _values(rows: pa.Table) -> _Values:
    """Group values by measure, column by column: a mapping for each row would cost more than all else here."""
    found: _Values = {}
    if not rows.num_rows:
        return found  # PyArrow builds an array without chunks through pandas
    middles: dict[tuple[datetime, float | None], datetime] = {}
    kinds: dict[str, Kind | None] = {}
    # All rows of a tick share its time.
    times = rows.column("as_of").combine_chunks().dictionary_encode()
    known = arrow_rows.values(times.dictionary)
    names = ("published", "subject", "measure", "value", "interval_seconds")
    columns = (rows.column(name).to_pylist() for name in names)
    for time, published, subject, name, value, interval in zip(times.indices.to_pylist(), *columns, strict=True):
        if name not in kinds:
            kinds[name] = kind_of(name)
        if kinds[name] is None or not published or value is None:
            continue
        key = (known[time], interval)
        if key not in middles:
            middles[key] = measures.middle(*key)
        found.setdefault((subject, name), []).append(Past(middles[key], value, interval))
    return found
