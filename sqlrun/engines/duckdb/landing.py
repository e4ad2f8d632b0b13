"""Landing of a planned batch on DuckDB: read its parts, run its query, commit its rows. Shell: DuckDB, Delta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlrun.engine_api import Append, Landing, Write
from sqlrun.engines import planned_landing
from sqlrun.engines.duckdb import append as duckdb_append
from sqlrun.engines.planned_landing import Batch, Committed


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
    with duckdb_append.coming(opened, batch.table, write) as rows:
        for chunk in reading.tables():
            opened.register("lines", chunk)
            rows.add(landing.sql)
            opened.unregister("lines")
        landed = planned_landing.settled(landing, batch, reading)
        # A batch without rows is committed too, to record its number.
        count = rows.commit({**landing.metadata, "sqlrun.files": str(len(landed))})
    landing.source.commit(landed)
    return Committed(count, tuple(reading.changed), landed, reading.extents)
