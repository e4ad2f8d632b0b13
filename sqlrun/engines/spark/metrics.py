"""Costs of a write on Spark, from Spark's metrics. Shell: Spark, Delta files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sqlrun.engine_api import Receipt, Write
from sqlrun.engines.delta import log_entries
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.spark import remote

# Number of latest executions to search; those of concurrent statements are among them.
RECENT = 40
# Commit metrics for written rows: the total, or by operation.
WRITTEN = (
    ("numOutputRows", tuple(f"numTargetRows{done}" for done in ("Inserted", "Updated", "Deleted", "Copied"))),
    ("num_added_rows", tuple(f"num_target_rows_{done}" for done in ("inserted", "updated", "deleted", "copied"))),
)
FILES_READ = re.compile(r"^SQLPlanMetric\(number of files read,(\d+),", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Costs:
    """Number of jobs of a job group, and their tasks' reads."""

    jobs: int
    rows: int
    bytes: int
    files: int | None


def costs(session: Any, group: str) -> Costs | None:
    """Return the sum over the jobs of a group; None if Spark doesn't know; Connect has no such call."""
    if remote.is_remote(session):
        return None
    from py4j.protocol import Py4JError

    context = session.sparkContext
    try:
        java = context._jsc.sc()
        java.listenerBus().waitUntilEmpty(2000)
        jobs = list(context.statusTracker().getJobIdsForGroup(group))
        store = java.statusStore()
        rows = size = 0
        for job in jobs:
            info = context.statusTracker().getJobInfo(job)
            for stage in info.stageIds if info else ():
                data = store.lastStageAttempt(stage)
                rows += data.inputRecords()
                size += data.inputBytes()
        return Costs(len(jobs), rows, size, _files(session, set(jobs)))
    except Py4JError:
        return None


def _files(session: Any, jobs: set[int]) -> int | None:
    """Return the sum of the scans' `number of files read` over the SQL executions that ran these jobs.

    Newest first, and as texts with many figures at once: each call to Java costs as much as a small file.
    """
    from py4j.protocol import Py4JError

    try:
        store = session._jsparkSession.sharedState().statusStore()
        count, found, missing = store.executionsCount(), 0, set(jobs)
        recent = store.executionsList(max(0, count - RECENT), RECENT)
        for index in reversed(range(recent.size())):
            if not missing:
                break
            execution = recent.apply(index)
            ran = {int(text) for text in str(execution.jobs().keys().mkString(",")).split(",") if text}
            if not ran & missing:
                continue
            missing -= ran
            ids = FILES_READ.findall(str(execution.metrics().mkString("\n")))
            values: Any = store.executionMetrics(execution.executionId()) if ids else None
            for value in (values.get(int(number)) for number in ids):
                found += int(str(value.get()).replace(",", "") or 0) if value.isDefined() else 0
        return found
    except (Py4JError, ValueError):
        return None


def receipt(seconds: float, spent: Costs | None, write: Write, version: int) -> Receipt:
    """Return the run stats: reads from Spark, writes from the commit's own metrics."""
    rows = size = files = 0
    if version > write.base:
        actions = delta_table.actions(write.table.path, version)
        added = log_entries.brought(actions)
        files, size = len(added), sum(int(entry.get("size") or 0) for entry in added)
        for action in actions:
            if "commitInfo" in action:
                rows = _rows(action["commitInfo"].get("operationMetrics") or {})
    return Receipt(
        seconds,
        rows_read=spent.rows if spent else None,
        bytes_read=spent.bytes if spent else None,
        files_read=spent.files if spent else None,
        rows_written=rows,
        bytes_written=size,
        files_written=files,
        jobs=spent.jobs if spent else None,
        commits=version - write.base,
    )


def _rows(metrics: dict[str, str]) -> int:
    """Return the number of rows that a commit wrote, by the metrics of Spark or of delta-rs."""
    for all_rows, parts in WRITTEN:
        if parts[0] in metrics:
            return sum(int(metrics.get(name) or 0) for name in parts)
        if all_rows in metrics:
            return int(metrics[all_rows] or 0)
    return 0
