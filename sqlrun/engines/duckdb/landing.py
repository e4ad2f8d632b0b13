"""Landing of a planned batch on DuckDB: read its parts, run its query, commit its rows. Shell: DuckDB, Delta."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from sqlrun.engine_api import LONGEST_SAMPLE, NO_LINES, SAMPLES, Append, DroppedLine, Landing, LineCounts, Write
from sqlrun.engines import planned_landing
from sqlrun.engines.duckdb import append as duckdb_append
from sqlrun.engines.planned_landing import Batch, Committed
from sqlrun.incremental.landing.query import DROPPED, ORIGIN, RAW
from sqlrun.project import BLANK_LINE
from sqlrun.source_api import Extent

# The rows of one table of lines, those included that are dropped.
CHUNK = "_landed_chunk"


def commit(session: Callable[[], Any], landing: Landing, batch: Batch) -> Committed:
    """Commit the lines of a batch, as `planned_landing.Commit`; `session` is opened by the first batch."""
    write = Write(
        landing.table,
        batch.table.version(),
        batch.number,
        batch.app_id,
        (),
        Append(landing.sql),
        landing.metadata,
        own_commit=landing.own_commit,
    )
    reading, opened = landing.source.read(batch.parts), session()
    counts = LineCounts(lines=0, dropped=dict.fromkeys(landing.drops, 0))
    with duckdb_append.coming(opened, batch.table, write) as rows:
        for chunk in reading.tables():
            opened.register("lines", chunk)
            if landing.drops:
                # Computed once, so that the counts are those of the rows that are committed.
                opened.execute(f"create or replace temp table {CHUNK} as {landing.sql}")
                more = _counted(opened, landing)
                if any(more.dropped[reason] and not counts.dropped[reason] for reason in landing.drops):
                    more += _sampled(opened)
                counts += more
                rows.add(f"select * from {CHUNK} where {DROPPED} is null")
            else:
                rows.add(landing.sql)
            opened.unregister("lines")
        landed = planned_landing.settled(landing, batch, reading)
        if planned_landing.withdraws(batch, landed, reading):
            rows.withdraw()
            return planned_landing.withdrawn(reading)
        counts += _read(reading.extents)
        # A batch without rows is committed too, to record its number.
        metadata = {**landing.metadata, "sqlrun.files": str(len(landed))}
        dropped = {reason: count for reason, count in counts.dropped.items() if count}
        if dropped:
            metadata["sqlrun.dropped"] = json.dumps(dropped, ensure_ascii=False)
        count = rows.commit(metadata)
    landing.source.commit(landed)
    return Committed(count, tuple(reading.changed), landed, reading.extents, counts, dict(reading.unreadable))


def _read(extents: Mapping[str, Extent]) -> LineCounts:
    """Return the numbers of all lines and of the lines that the reader left out."""
    counts = NO_LINES
    for extent in extents.values():
        counts += LineCounts(extent.lines, extent.dropped)
    return counts


def _counted(session: Any, landing: Landing) -> LineCounts:
    """Return the numbers of a chunk's dropped lines by part and reason, blank ones excepted."""
    found = session.execute(
        f"select {landing.source.part(ORIGIN)} as part, {DROPPED} as reason, count(*) as lines from {CHUNK} "
        f"where {DROPPED} <> '{BLANK_LINE}' group by all order by all"
    ).fetchall()
    dropped = dict.fromkeys(landing.drops, 0)
    for _, reason, lines in found:
        dropped[reason] += lines
    return LineCounts(0, dropped, {(part, reason): lines for part, reason, lines in found})


def _sampled(session: Any) -> LineCounts:
    """Return the first few dropped lines of each reason in a chunk."""
    line = f"struct_pack(origin := {ORIGIN}, line := left({RAW}, {LONGEST_SAMPLE}))"
    found = session.execute(
        f"select {DROPPED} as reason, min({line}, {SAMPLES}) as lines from {CHUNK} "
        f"where {DROPPED} <> '{BLANK_LINE}' group by all"
    ).fetchall()
    samples = [DroppedLine(reason, line["origin"], line["line"]) for reason, lines in found for line in lines]
    return LineCounts(0, dict.fromkeys((reason for reason, _ in found), 0), samples=tuple(samples))
