"""Time and cost of a Spark contender's tick. Shell: Spark's status store, Delta logs."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.costs import Cost, Logs, SparkBooks, TickCost, cpu_seconds


class Meter:
    """Measures ticks; reading the counters is not part of the time."""

    def __init__(self, session: Any, root: Path) -> None:
        self._books, self._logs = SparkBooks(session), Logs(root)

    def measure(self, as_of: datetime, work: Callable[[], object]) -> TickCost:
        """Run a tick and return its cost."""
        self._books.news()
        self._logs.news()
        started, busy = time.perf_counter(), cpu_seconds()
        work()
        seconds, busy = time.perf_counter() - started, cpu_seconds() - busy
        tables = self._logs.news()
        total = sum(tables.values(), Cost()) + self._books.news()
        total.seconds = seconds
        return TickCost(as_of.isoformat(), seconds, total, tables, cpu=busy)
