"""Accounting of the sources' lines for pages and metrics, bounded to recent ticks. Shell: Delta files.

Losses are the exception: the newest ones stay visible, whatever their age.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlrun.engines.delta import table as delta_table
from sqlrun.publish.table_state import Published
from sqlrun.system_tables import intake, line_sums

# Number of ticks whose lines are added up, and of losses that are listed.
TICKS = 50
LOSSES = 100
STATES = ("landed", "quarantined", "dropped", "lost", "unexplained")
Rows = list[dict[str, Any]]


def of_sources(warehouse: str, env: str, last_tick: int) -> Rows:
    """Return a row for each landing model: the sums of its newest tick, and as `all_<number>` those of recent ticks.

    `newest_landed` is the time of the latest batch with a landed line. Ticks before the latest `TICKS` aren't read.
    """
    rows = intake.read(warehouse, env, since=max(1, last_tick - TICKS + 1))
    found = []
    for (source, model), own in sorted(line_sums.by(rows, ("source", "model")).items()):
        tick = max(row["tick"] for row in own)
        newest = line_sums.of([row for row in own if row["tick"] == tick])
        every = line_sums.of(own)
        landed = [row["written_at"] for row in own if row["landed"]]
        found.append(
            {
                "source": source,
                "model": model,
                "tick": tick,
                "newest_landed": max(landed, default=None),
                **newest.numbers,
                **{f"all_{name}": number for name, number in every.numbers.items()},
                "since_tick": min(row["tick"] for row in own),
            }
        )
    return found


def losses(warehouse: str, env: str) -> Rows:
    """Return the latest accepted losses, the newest first, each with `of_all`, the number of all of them."""
    rows = intake.losses(warehouse, env)
    found = line_sums.losses(reversed(rows))[:LOSSES]
    return [
        {"source": one.source, "part": one.part, "tick": one.tick, "lines": one.lines, "what": one.what,
         "by": one.by, "at": one.at, "of_all": len(rows)}
        for one in found
    ]  # fmt: skip


class Recorded:
    """Losses of a tick's tables by the age of their record; it reads the accounting again only if that has changed."""

    def __init__(self, warehouse: str, env: str) -> None:
        self._warehouse = warehouse
        # An environment reads tables of production, too.
        self._environments = tuple(dict.fromkeys(("", env)))
        self._lock = threading.Lock()
        self._known: tuple[object, Rows] = ((), [])

    def in_windows(self, published: Published, widths: Sequence[int]) -> Mapping[int, int]:
        """Return the number of losses that each window, given by its hours, may lack lines of.

        The events of lost lines are unknown. They are older than the record of the loss, so a window that begins after
        the record is complete.

        Raises: EngineError if the accounting can't be read.
        """
        versions = {state.path: state.version for state in published.tables.values()}
        times = [
            row["written_at"] for row in self._rows()
            if row["path"] in versions and row["version"] <= versions[row["path"]]
        ]  # fmt: skip
        return {hours: _since(times, published.as_of - timedelta(hours=hours)) for hours in widths}

    def _rows(self) -> Rows:
        with self._lock:
            heads = tuple(delta_table.head(intake.path_of(self._warehouse, env)) for env in self._environments)
            if heads != self._known[0]:
                found = [row for env in self._environments for row in intake.losses(self._warehouse, env)]
                self._known = heads, found
            return self._known[1]


def _since(times: Sequence[datetime], start: datetime) -> int:
    return sum(1 for time in times if time > start)


class Counted:
    """Numbers of lines since the server's start, for counters: they never decrease while it runs."""

    def __init__(self, warehouse: str, env: str) -> None:
        self._warehouse, self._env = warehouse, env
        # None: there is no accounting yet; -1: no call yet.
        self._head: int | None = -1
        self._tick: int | None = None
        self._seen: set[tuple[Any, ...]] = set()
        self._lock = threading.Lock()

    def news(self, last_tick: int) -> Mapping[tuple[str, str], int]:
        """Return the lines by source and state that were recorded since the last call; the first call returns zeros.

        Raises: EngineError if the accounting can't be read.
        """
        with self._lock:
            head = delta_table.head(intake.path_of(self._warehouse, self._env))
            if head == self._head:
                return {}
            begun = self._tick is not None
            since = self._tick if self._tick is not None else max(1, last_tick - TICKS + 1)
            rows = intake.read(self._warehouse, self._env, since=since)
            fresh = [row for row in rows if _name(row) not in self._seen]
            # Rows of earlier ticks are never added later.
            self._tick = max((row["tick"] for row in rows), default=since)
            self._seen = {_name(row) for row in rows if row["tick"] == self._tick}
            self._head = head
            return {
                (source, state): (line_sums.of(own).numbers[state] or 0) if begun else 0
                for (source,), own in line_sums.by(fresh, ("source",)).items()
                for state in STATES
            }


def _name(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[key] for key in ("path", "version", "part", "since", "until", "lost_because"))
