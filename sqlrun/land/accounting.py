"""Account for every line of a batch: landed, quarantined, dropped or lost. Shell: the engine, Delta files.

Lines are counted before the landing query, rows in the committed files after it, so that the two are independent.
Lines that neither accounts for are unexplained, and no tick with such lines is published.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlrun.engine_api import LandedBatch, Relation
from sqlrun.engines.delta import foreign_commits
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing import query as landing_query
from sqlrun.land.drift_query import reader_of
from sqlrun.maintain.tick_context import TickContext
from sqlrun.source_api import Extent, Positions, SourceReader
from sqlrun.sources import batches, checkpoint
from sqlrun.system_tables import intake
from sqlrun.system_tables.intake import TOGETHER, Intake, Subject

NUMBER = "sqlrun.tick"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a landing table that came from a part."""

    landed: int = 0
    quarantined: int = 0


def record(
    context: TickContext, model: Compiled, reader: SourceReader, done: Iterable[LandedBatch], at: datetime
) -> None:
    """Write down what became of the lines of each batch.

    Raises: EngineError if the rows can't be written.
    """
    subject = _subject(context, model, at)
    for batch in done:
        _write(context, model, reader, subject, batch)


def judge(context: TickContext, model: Compiled, reader: SourceReader, at: datetime) -> None:
    """Check that all lines that landed since the published tick are accounted for.

    Batches of builds that died before they wrote their rows are counted again, from the source.

    Raises: EngineError (SR744) if lines are unexplained and that wasn't allowed.
    """
    table = context.plan.tables[model.name]
    after = table.state.version if table.state else 0
    head = delta_table.head(table.spec.path) or 0
    if head == after:
        return
    known = intake.of_versions(context.warehouse, context.plan.env, table.path, after)
    landings = delta_table.landings(table.spec.path, context.commits(model.name, after, head))
    forgotten = [version for version in landings if version not in known]
    if forgotten and reader.streaming is None:
        subject = _subject(context, model, at)
        for version in forgotten:
            _write(context, model, reader, subject, _again(context, table.path, table.spec.path, reader, version))
        known = intake.of_versions(context.warehouse, context.plan.env, table.path, after)
    wrong = sum(row["unexplained"] or 0 for rows in known.values() for row in rows)
    if any(row["unexplained"] for rows in known.values() for row in rows) and not context.accept_unexplained:
        raise EngineError(
            f"SR744 {model.name} accounts for {abs(wrong):,} {'fewer' if wrong > 0 else 'more'} lines than were read "
            f"from {reader.location}. `sqlrun source audit` shows where. Report it, and land the source again with "
            "--full-refresh, or publish nevertheless with --accept-unexplained-lines",
            model=model.name,
        )


def _subject(context: TickContext, model: Compiled, at: datetime) -> Subject:
    assert model.source is not None
    name = f"{model.source.group}.{model.source.name}"
    return Subject(name, model.name, context.plan.tables[model.name].path, context.plan.number, at)


def _write(context: TickContext, model: Compiled, reader: SourceReader, subject: Subject, batch: LandedBatch) -> None:
    rows = rows_of(batch, _rows(context, model, reader, batch.version), reader)
    intake.write(context.warehouse, context.plan.env, subject, batch.version, rows)


def _rows(context: TickContext, model: Compiled, reader: SourceReader, version: int) -> dict[str, Rows]:
    """Return the rows that a version of the landing table added, by part."""
    path = context.plan.tables[model.name].spec.path
    feed = Relation("feed", path, landing_query.PROVENANCE, "changes", commits=(version,))
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
    return LandedBatch(version, parts, _extents(reader, parts), lost=plan.lost if plan is not None else ())


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

    Lines that the query left out are counted for the whole batch. A part's own number is then what is left of its
    lines, and lines that are unexplained show in the row of all parts together.
    """
    together = batch.extents is None or TOGETHER in batch.extents
    found = [_of_part(batch, part, rows.get(reader.shown(part), Rows()), reader) for part in batch.parts]
    strangers = set(rows) - {reader.shown(part) for part in batch.parts}
    found += [Intake(part, landed=rows[part].landed, quarantined=rows[part].quarantined) for part in sorted(strangers)]
    if together or batch.dropped:
        found.append(_together(batch, rows))
    for loss in batch.lost:
        until = loss.until
        size = None if until is None else until - loss.since
        by = f"{loss.by}, {loss.at}"
        found.append(
            Intake(reader.shown(loss.part), loss.since, until, lost=size, lost_because=loss.what, accepted_by=by)
        )
    return found


def _of_part(batch: LandedBatch, part: str, rows: Rows, reader: SourceReader) -> Intake:
    since, until = batch.parts[part]
    extent = batch.extents.get(part) if batch.extents is not None else None
    if extent is None:
        return Intake(reader.shown(part), since, until, landed=rows.landed, quarantined=rows.quarantined)
    ends = reader.extent((since, until))
    dropped = sum(extent.dropped.values())
    rest = extent.lines - dropped - rows.landed - rows.quarantined
    return Intake(
        reader.shown(part),
        since,
        until,
        read=extent.lines,
        landed=rows.landed,
        quarantined=rows.quarantined,
        dropped=dropped + rest if batch.dropped else dropped,
        gaps=None if ends is None else ends - extent.lines,
        unexplained=None if batch.dropped else rest,
        dropped_because=json.dumps(dict(extent.dropped)) if extent.dropped else None,
    )


def _together(batch: LandedBatch, rows: Mapping[str, Rows]) -> Intake:
    """Return the row of all parts of a batch: its lines if they were counted together, and what its query left out."""
    kept = sum(row.landed + row.quarantined for row in rows.values())
    dropped = dict(batch.dropped)
    if batch.extents is None:
        return Intake(TOGETHER, dropped=sum(dropped.values()), dropped_because=json.dumps(dropped) if dropped else None)
    for extent in batch.extents.values():
        for reason, count in extent.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + count
    read = sum(extent.lines for extent in batch.extents.values())
    apart = TOGETHER not in batch.extents
    return Intake(
        TOGETHER,
        # The parts' own rows have the numbers already.
        read=None if apart else read,
        dropped=None if apart else sum(dropped.values()),
        unexplained=read - kept - sum(dropped.values()),
        dropped_because=json.dumps(dropped) if dropped else None,
    )
