"""Landing with Structured Streaming: exactly once, by Spark's own log and Delta's. Shell: Spark, files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlrun.engine_api import NO_LINES, UNKNOWN_LINES, Landing, LineCounts
from sqlrun.engines import landed_elsewhere
from sqlrun.engines.delta import foreign_commits
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.spark import conf as spark_conf
from sqlrun.engines.spark import line_counts, object_store, remote
from sqlrun.engines.spark.cancellation import Cancel
from sqlrun.engines.spark.file_names import uri_of
from sqlrun.errors import EngineError
from sqlrun.load.forbidden_names import path_fault
from sqlrun.source_api import Pending, Streamed, Streaming
from sqlrun.sources import checkpoint as source_checkpoint
from sqlrun.sources.stream_checkpoint import COMMITS, IDENTITY, METADATA, OFFSETS, numbers, query_id
from sqlrun.storage.factory import storage_of


def require_own(landing: Landing) -> None:
    """Reject a checkpoint of another table, or one with batches that the table doesn't contain.

    Damage from a power failure was moved aside before the tick (`checkpoint_check.py`), so it can't be the cause.
    """
    fault = path_fault(_streaming(landing).stream(accept_lost=False).path, "spark")
    if fault:
        raise EngineError(
            f"SR737 the path of the source of {landing.table.name} contains `{fault}`, which Spark reads as a pattern. "
            "Move the project or the folder, or land on DuckDB",
            model=landing.table.name,
        )
    _check_identity(landing)
    _require_held(landing)


def _check_identity(landing: Landing) -> None:
    """Check that the checkpoint's query id is the one that the table records."""
    storage, checkpoint = storage_of(landing.table.path), landing.checkpoint
    known, metadata = f"{landing.table.path}/{IDENTITY}", storage.stamp(f"{checkpoint}/{METADATA}")
    own = query_id(checkpoint) if metadata is not None and metadata.size else None
    version = delta_table.head(landing.table.path) or 0
    if own is not None and storage.is_there(known) and storage.text(known).strip() == own:
        return
    if version == 0:
        if own is not None and numbers(checkpoint, COMMITS):
            # Its batches went to another table: the stream would skip their files and this table would stay empty.
            raise EngineError(
                f"{landing.table.name} is empty, but its checkpoint lists landed files, so it belongs to "
                "another table. "
                f"To land from the beginning, move {landing.checkpoint} away.",
                model=landing.table.name,
            )
        storage.delete(known)
        return
    if own is not None and not storage.is_there(known):
        return  # stopped after the first batch, before the table recorded the id
    what = "is missing" if own is None else "belongs to another table"
    raise EngineError(
        f"{landing.table.name} has rows, but its checkpoint {what}. Landing from the beginning would duplicate them. "
        f"Restore the checkpoint, or run `sqlrun build --full-refresh --select {landing.table.name}+`.",
        model=landing.table.name,
    )


def _require_held(landing: Landing) -> None:
    """Check that the table contains the checkpoint's batches, by the query's transaction id."""
    commits = numbers(landing.checkpoint, COMMITS)
    if not commits:
        return
    query = query_id(landing.checkpoint)
    table = delta_table.open_table(landing.table.path)
    committed = table.transaction_version(query)
    if committed is None and table.version() > 0:
        raise EngineError(
            f"{landing.table.name} has no rows of its checkpoint. Landing the files again could duplicate rows. "
            f"Run `sqlrun build --full-refresh --select {landing.table.name}+`.",
            model=landing.table.name,
        )
    if commits[-1] > (-1 if committed is None else committed):
        raise EngineError(
            f"{landing.table.name} lacks batch {commits[-1]} of its checkpoint. "
            f"Run `sqlrun build --full-refresh --select {landing.table.name}+`.",
            model=landing.table.name,
        )


# A session keeps no reports of a stream's batches; a landing counts its lines from all of them.
REPORTS = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}


@dataclass(frozen=True, slots=True)
class Known:
    """The contents of a stream's checkpoint, and how the source differs from it; each is read once."""

    log: tuple[Streamed, ...]
    pending: Pending


def look(landing: Landing) -> Known:
    """Return the landed files and the present ones."""
    log = _streaming(landing).streamed(landing.checkpoint)
    return Known(log, landing.source.pending(source_checkpoint.streamed(log)))


def nothing_new(landing: Landing, known: Known) -> bool:
    """Return, without Spark, whether everything has landed: the newest batch is committed and no part is pending."""
    offsets, commits = numbers(landing.checkpoint, OFFSETS), numbers(landing.checkpoint, COMMITS)
    if not offsets or offsets[-1] not in commits:
        return False
    return not known.pending.parts


def notes(landing: Landing, known: Known) -> tuple[str, ...]:
    """Return notes about parts that changed after they landed; Spark also lands parts that are still being written."""
    return landing.source.notes((), known.pending.changed)


def require_parts(landing: Landing, known: Known) -> None:
    """Refuse to resume a batch whose parts are gone: Spark would fail in every tick."""
    newest = max(numbers(landing.checkpoint, COMMITS), default=-1)
    missing = landing.source.missing({each.part for each in known.log if each.batch > newest})
    if missing and not landing.accept_lost:
        raise landed_elsewhere.missing(landing, missing)


def _streaming(landing: Landing) -> Streaming:
    streaming = landing.source.streaming
    assert streaming is not None, "a source without a stream lands in planned batches"
    return streaming


def _waiting_lines(landing: Landing, known: Known) -> int:
    """Return an estimate of the number of pending lines."""
    return landing.source.count(known.pending.ready).lines


def _spelled(session: Any, folder: str) -> str:
    """Return a folder in the spelling of Spark's log."""
    if remote.is_remote(session):
        return uri_of(folder).replace("file:/", "file:///", 1)
    path = session._jvm.org.apache.hadoop.fs.Path(folder)
    spelled: str = path.getFileSystem(session._jsc.hadoopConfiguration()).makeQualified(path).toUri().toString()
    return spelled


def stream(session: Any, landing: Landing, known: Known, cancel: Cancel) -> LineCounts:
    """Run the landing query over all new files, then stop; return what became of their lines."""
    # A row whose expression fails is quarantined with its reason; it must not end the stream.
    session.conf.set("spark.sql.ansi.enabled", "false")
    source = _streaming(landing).stream(accept_lost=landing.accept_lost)
    settings = {**source.settings, **REPORTS, **object_store.of_checkpoint(landing.checkpoint)}
    for key, value in settings.items():
        session.conf.set(key, value)
    spark_conf.choose(session, _waiting_lines(landing, known))
    if known.log:
        _streaming(landing).relocate(landing.checkpoint, partial(_spelled, session))
    try:
        lines = session.readStream.format(source.format).options(**source.options).load(source.path)
        lines = lines.selectExpr(*source.columns).observe(line_counts.LINES, *line_counts.of_lines())
        lines.createOrReplaceTempView("lines")
        found = session.sql(landing.sql)
        if landing.drops:
            found = line_counts.landed(found.observe(line_counts.ROWS, *line_counts.of_rows(landing)))
        if cancel.asked:
            raise _stopped(landing)
        query = (
            found.writeStream.format("delta")
            .outputMode("append")
            .option("checkpointLocation", landing.checkpoint)
            .option("userMetadata", json.dumps({**landing.metadata, foreign_commits.BY: "landing"}))
            .trigger(availableNow=True)
            .start(landing.table.path)
        )
        cancel.streams.append(query)
        query.awaitTermination()
        if cancel.asked:
            # A stopped stream ends in the same way as a finished one.
            raise _stopped(landing)
        identity = f"{landing.table.path}/{IDENTITY}"
        storage_of(identity).put(identity, str(query.id).encode(), synced=True)
        return _counted(landing, query)
    finally:
        for key in ("spark.sql.ansi.enabled", *settings):
            session.conf.unset(key)


def _counted(landing: Landing, query: Any) -> LineCounts:
    """Return the counts of all batches of a stream, from the metrics that it reports with each."""
    batches = {progress.batchId: progress.observedMetrics for progress in query.recentProgress}
    if remote.is_remote(query):
        batches = {number: {k: remote.named(v) for k, v in found.items()} for number, found in batches.items()}
    found = [metrics for metrics in batches.values() if line_counts.LINES in metrics]
    if not found:
        return UNKNOWN_LINES
    counts = NO_LINES
    for metrics in found:
        rows = metrics[line_counts.ROWS] if landing.drops else {}
        counts += line_counts.counts(landing, metrics[line_counts.LINES], rows)
    return counts


def _stopped(landing: Landing) -> EngineError:
    return EngineError("the stream was stopped", model=landing.table.name)
