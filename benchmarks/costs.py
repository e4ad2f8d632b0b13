"""Cost of a tick, counted the same way for every contender. Shell: Delta logs, Spark's status store."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Cost:
    """Cost of one table or one whole tick; None for unknown figures."""

    seconds: float = 0.0
    rows_changed: int | None = None
    rows_read: int | None = None
    bytes_read: int | None = None
    files_read: int | None = None
    rows_written: int | None = None
    bytes_written: int | None = None
    files_written: int | None = None
    jobs: int | None = None
    commits: int | None = None

    def __add__(self, other: Cost) -> Cost:
        """Return the sums of all figures; a figure unknown on both sides stays unknown."""
        return Cost(**{name: plus(getattr(self, name), getattr(other, name)) for name in self.__slots__})


def plus(left: Any, right: Any) -> Any:
    """Return the sum of two figures, each of which may be unknown."""
    return left if right is None else right if left is None else left + right


@dataclass(slots=True)
class TickCost:
    """One tick of one contender: wall-clock time, the total, and each table if the contender reports it."""

    as_of: str
    seconds: float
    total: Cost
    tables: dict[str, Cost] = field(default_factory=dict)
    steps: dict[str, float] = field(default_factory=dict)
    cpu: float = 0.0
    checks: tuple[float, float] = (0.0, 0.0)  # seconds and processor seconds, where they ran after the tick


def cpu_seconds() -> float:
    """Return the CPU time of this process and its children (Spark's JVM), which hardly depends on other processes.

    On Linux only; elsewhere of this process alone.
    """
    total, own = 0.0, os.getpid()
    try:
        ticks = os.sysconf("SC_CLK_TCK")
        for file in Path("/proc").glob("[0-9]*/stat"):
            if file.parent.name == str(own) or _parent(file) == own:
                fields = file.read_text().rpartition(")")[2].split()
                total += (int(fields[11]) + int(fields[12])) / ticks
    except OSError:
        return total or time.process_time()
    return total or time.process_time()


def _parent(stat: Path) -> int:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended meanwhile
        return -1


class Logs:
    """The Delta logs below a folder, and their commits since the last call."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen = self._heads()

    def _heads(self) -> dict[Path, int]:
        heads = {}
        for log in self._root.rglob("_delta_log"):
            versions = [int(file.stem) for file in log.glob("[0-9]*.json") if file.stem.isdigit()]
            heads[log.parent] = max(versions, default=-1)
        return heads

    def news(self) -> dict[str, Cost]:
        """Return, for each table's path below the root, its new commits and what they added."""
        heads, before = self._heads(), self._seen
        self._seen = heads
        found = {}
        for path, head in heads.items():
            first = before.get(path, -1) + 1
            if first <= head:
                cost = Cost(rows_written=0, bytes_written=0, files_written=0, commits=head - first + 1)
                for version in range(first, head + 1):
                    _add(cost, path / "_delta_log" / f"{version:020d}.json")
                found[str(path.relative_to(self._root))] = cost
        return found


def _add(cost: Cost, commit: Path) -> None:
    """Add a commit's files: data and change feed. Rows are those of whole files, including rewritten ones."""
    # Imported late: rivals also measure with this module, in environments without sqlrun's libraries.
    from sqlrun.engines.delta import log_entries

    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for entry in (*log_entries.brought(actions), *(action["cdc"] for action in actions if "cdc" in action)):
        cost.files_written += 1
        cost.bytes_written += int(entry.get("size") or 0)
        cost.rows_written += json.loads(entry.get("stats") or "{}").get("numRecords", 0)


class SparkBooks:
    """Spark's jobs and the input of their tasks since the last call. Call it outside of timed code."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._java = session.sparkContext._jsc.sc()
        self._jobs = self._java.dagScheduler().numTotalJobs()
        self._execution = self._last_execution()

    def news(self) -> Cost:
        """Return jobs, rows, bytes and files."""
        self._java.listenerBus().waitUntilEmpty(10_000)
        first, self._jobs = self._jobs, self._java.dagScheduler().numTotalJobs()
        store = self._java.statusStore()
        rows = size = 0
        for stage in self._stages(store, range(first, self._jobs)):
            rows += stage.inputRecords()
            size += stage.inputBytes()
        return Cost(rows_read=rows, bytes_read=size, files_read=self._files(), jobs=self._jobs - first)

    def _stages(self, store: Any, jobs: range) -> list[Any]:
        from py4j.protocol import Py4JError

        found = {}
        for job in jobs:
            try:
                ids = [int(text) for text in str(store.job(job).stageIds().mkString(",")).split(",") if text]
                found.update({stage: store.lastStageAttempt(stage) for stage in ids if stage not in found})
            except Py4JError:  # dropped from the store
                continue
        return list(found.values())

    def _sql(self) -> Any:
        return self._session._jsparkSession.sharedState().statusStore()

    def _last_execution(self) -> int:
        store = self._sql()
        count = store.executionsCount()
        recent = store.executionsList(max(0, count - 1), 1)
        return recent.apply(0).executionId() if recent.size() else -1

    def _files(self) -> int:
        """Return the sum of the scans' `number of files read` over the new SQL executions."""
        store, found, newest = self._sql(), 0, self._execution
        count = store.executionsCount()
        recent = store.executionsList(max(0, count - 300), 300)
        for index in range(recent.size()):
            execution = recent.apply(index)
            number = execution.executionId()
            if number <= self._execution:
                continue
            newest = max(newest, number)
            values, metrics = store.executionMetrics(number), execution.metrics()
            for place in range(metrics.size()):
                metric = metrics.apply(place)
                if metric.name() == "number of files read" and values.get(metric.accumulatorId()).isDefined():
                    found += int(str(values.get(metric.accumulatorId()).get()).replace(",", "") or 0)
        self._execution = newest
        return found
