"""Account for every line of a batch: landed, quarantined, dropped or lost. Shell: the engine, Delta files.

Lines are counted before the landing query, rows in the committed files after it, so that the two are independent.
Lines that neither accounts for are unexplained, and no tick with such lines is published.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlrun.engine_api import NO_LINES, UNKNOWN_LINES, LandedBatch, LineCounts, Relation
from sqlrun.engines.delta import foreign_commits
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing import query as landing_query
from sqlrun.land.drift_query import reader_of
from sqlrun.maintain.tick_context import TickContext
from sqlrun.source_api import AcceptedLoss, Extent, LineSums, Positions, SourceReader
from sqlrun.sources import batches, checkpoint
from sqlrun.system_tables import intake, line_sums
from sqlrun.system_tables.intake import TOGETHER, Intake, Subject

NUMBER = "sqlrun.tick"
# Rows of the intake.
Written = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a landing table that came from a part."""

    landed: int = 0
    quarantined: int = 0


def record(
    context: TickContext, model: Compiled, reader: SourceReader, done: Iterable[LandedBatch], at: datetime
) -> dict[int, Written]:
    """Write down what became of the lines of each batch; return the rows by the table's version.

    Raises: EngineError if the rows can't be written.
    """
    subject = _subject(context, model, at)
    return {v: rows for batch in done for v, rows in _write(context, model, reader, subject, batch).items()}


def judge(
    context: TickContext,
    model: Compiled,
    reader: SourceReader,
    recorded: Mapping[int, Written],
    head: int,
    at: datetime,
) -> LineSums:
    """Check that all lines that landed since the published tick are accounted for, and return their sums.

    `recorded` are the batches that this landing has recorded, up to the table's version `head`; others are those of
    unpublished ticks. Batches of builds that died before they wrote their rows are counted again, from the source.

    Raises: EngineError (SR744) if lines are unexplained and that wasn't allowed.
    """
    table = context.plan.tables[model.name]
    after = table.state.version if table.state else 0
    known = dict(recorded)
    landings = delta_table.landings(table.spec.path, context.commits(model.name, after, head))
    if set(landings) - known.keys():
        known = intake.of_versions(context.warehouse, context.plan.env, table.path, after) | known
    subject = _subject(context, model, at)
    for version in landings:
        if version not in known and reader.streaming is None:
            batch = _again(context, table.path, table.spec.path, reader, version)
            known |= _write(context, model, reader, subject, batch)
    rows = [row for version in sorted(known) for row in known[version]]
    if any(row["unexplained"] for row in rows) and not context.accept_unexplained:
        wrong = sum(row["unexplained"] or 0 for row in rows)
        raise EngineError(
            f"SR744 {model.name} accounts for {abs(wrong):,} {'fewer' if wrong > 0 else 'more'} lines than were read "
            f"from {reader.location}. `sqlrun source audit` shows where. Report it, and land the source again with "
            "--full-refresh, or publish nevertheless with --accept-unexplained-lines",
            model=model.name,
        )
    return line_sums.of(rows)


def _subject(context: TickContext, model: Compiled, at: datetime) -> Subject:
    assert model.source is not None
    name = f"{model.source.group}.{model.source.name}"
    return Subject(name, model.name, context.plan.tables[model.name].path, context.plan.number, at)


def _write(
    context: TickContext, model: Compiled, reader: SourceReader, subject: Subject, batch: LandedBatch
) -> dict[int, Written]:
    rows = rows_of(batch, _rows(context, model, reader, batch.commits), reader)
    own, env = context.own_commits, context.plan.env
    written = intake.write(context.warehouse, env, subject, batch.version, rows, own_commit=own)
    return {version: written if version == batch.version else [] for version in batch.commits}


def _rows(context: TickContext, model: Compiled, reader: SourceReader, commits: tuple[int, ...]) -> dict[str, Rows]:
    """Return the rows that commits of the landing table added, by part."""
    path = context.plan.tables[model.name].spec.path
    feed = Relation("feed", path, landing_query.PROVENANCE, "changes", commits=commits)
    sql = (
        f"select {reader.part(landing_query.ORIGIN)} as part, "
        f"count(*) filter ({landing_query.REASON} is null) as landed, "
        f"count(*) filter ({landing_query.REASON} is not null) as quarantined from feed where _weight > 0 group by 1"
    )
    found = reader_of(context).query(sql, (feed,)).to_pylist()
    return {str(row["part"]): Rows(row["landed"], row["quarantined"]) for row in found}


def _again(context: TickContext, path: str, folder: str, reader: SourceReader, version: int) -> LandedBatch:
    """Return a batch that no row accounts for: its parts from its plan, what was read by reading it again."""
    info = foreign_commits.info_of(delta_table.actions(folder, version))
    metadata = json.loads(info["userMetadata"]) if "userMetadata" in info else info
    number = int(metadata[NUMBER])
    plan = batches.read(f"{context.warehouse}/{checkpoint.path_of(path)}").get(number)
    parts: Positions = plan.parts if plan is not None else {}
    extents = _extents(reader, parts)
    counts = UNKNOWN_LINES if extents is None else _sum(extents)
    return LandedBatch((version,), parts, extents or {}, counts, plan.lost if plan is not None else ())


def _sum(extents: Mapping[str, Extent]) -> LineCounts:
    counts = NO_LINES
    for extent in extents.values():
        counts += LineCounts(extent.lines, extent.dropped)
    return counts


def _extents(reader: SourceReader, parts: Positions) -> Mapping[str, Extent] | None:
    """Return what a source has of some parts; None if it no longer has all of them."""
    try:
        reading = reader.read(parts)
        for _ in reading.tables():
            pass
    except EngineError:
        return None
    return None if reading.changed or reading.missing else dict(reading.extents)


def rows_of(batch: LandedBatch, rows: Mapping[str, Rows], reader: SourceReader) -> list[Intake]:
    """Return the accounting of a batch, a row for each part and one for each loss.

    If an engine counted the lines, or the lines that its query left out, for the whole batch alone, then a row of all
    parts together has these numbers and the unexplained lines, and a part's own row has none.
    """
    dropped = {} if batch.counts.by_part else {r: n for r, n in batch.counts.dropped.items() if n}
    for extent in batch.extents.values():
        for reason, count in extent.dropped.items():
            dropped[reason] = dropped.get(reason, 0) - count
    by_query = any(dropped.values())
    apart = bool(batch.extents) and not by_query
    found = [_of_part(batch, part, rows.get(reader.shown(part), Rows()), reader, apart) for part in batch.parts]
    strangers = sorted(set(rows) - {reader.shown(part) for part in batch.parts})
    found += [Intake(part, landed=rows[part].landed, quarantined=rows[part].quarantined) for part in strangers]
    if batch.parts and not apart:
        found.append(_together(batch, rows))
    return [*found, *(_of_loss(loss, reader) for loss in batch.lost)]


def _of_loss(loss: AcceptedLoss, reader: SourceReader) -> Intake:
    size = None if loss.until is None else loss.until - loss.since
    by = f"{loss.by}, {loss.at}"
    return Intake(reader.shown(loss.part), loss.since, loss.until, lost=size, lost_because=loss.what, accepted_by=by)


def _of_part(batch: LandedBatch, part: str, rows: Rows, reader: SourceReader, apart: bool) -> Intake:
    since, until = reader.span(batch.parts[part])
    extent = batch.extents.get(part)
    shown = reader.shown(part)
    found = Intake(shown, since, until, landed=rows.landed, quarantined=rows.quarantined)
    if extent is None or not apart:
        return found
    dropped = dict(extent.dropped)
    for (place, reason), count in batch.counts.by_part.items():
        if place == shown:
            dropped[reason] = dropped.get(reason, 0) + count
    left_out = sum(dropped.values())
    return replace(
        found,
        read=extent.lines,
        dropped=left_out,
        gaps=reader.gaps(batch.parts[part], extent.lines),
        unexplained=extent.lines - left_out - rows.landed - rows.quarantined,
        dropped_because=json.dumps(dropped, ensure_ascii=False) if left_out else None,
    )


def _together(batch: LandedBatch, rows: Mapping[str, Rows]) -> Intake:
    """Return the row of all parts of a batch."""
    kept = sum(row.landed + row.quarantined for row in rows.values())
    dropped = {reason: count for reason, count in batch.counts.dropped.items() if count}
    read, left_out = batch.counts.lines, sum(dropped.values())
    return Intake(
        TOGETHER,
        read=read,
        dropped=left_out,
        unexplained=None if read is None else read - kept - left_out,
        dropped_because=json.dumps(dropped, ensure_ascii=False) if dropped else None,
    )
