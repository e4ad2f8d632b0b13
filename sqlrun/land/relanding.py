"""Record the outcome of pending lines whose source is landed from scratch. Shell: the engine.

The new table validates all lines of the existing files. A line that is valid now has left the queue without a request,
and a line whose file is gone is lost: both are recorded.
"""

from __future__ import annotations

from datetime import datetime

from sqlrun.engine_api import Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing import query as landing_query
from sqlrun.incremental.landing.query import QUARANTINED_ROWS
from sqlrun.land import quarantine_log, quarantine_query
from sqlrun.land.drift_query import reader_of
from sqlrun.maintain.tick_context import TickContext
from sqlrun.publish.environment_paths import owner
from sqlrun.source_api import SourceReader

LOST = "its file is missing, and the source was landed again without it"


def write_down(context: TickContext, model: Compiled, source: SourceReader, version: int, at: datetime) -> None:
    """Compare the quarantine of the published table with that of its successor, built or promoted, once.

    Lines with a requested replay are left to the replay; lost lines are discarded in any case.
    """
    table, published = context.plan.tables[model.name], context.plan.published
    old = published.tables.get(model.name) if published else None
    if old is None or old.path == table.path:
        return
    if context.plan.env and owner(old.path) != context.plan.env:
        return  # production's lines stay pending there
    path = f"{context.warehouse}/{old.path}"
    sql = (
        f"select id, reason, lines, file, state from ({quarantine_query.queue(model.name)}) where state <> 'discarded' "
        f"and id not in (select {quarantine_query.id_of('duckdb')} from fresh) and id not in "
        f"(select id from book where kind = '{quarantine_query.LANDED}' and path = {quarantine_query.text(table.path)})"
    )
    sql, book = quarantine_log.about(context.warehouse, context.plan.env, sql)
    try:
        held = Relation("held", path, landing_query.PROVENANCE, "new", version=delta_table.head(path) or 0)
        fresh = Relation(
            "fresh", table.spec.path, landing_query.PROVENANCE, "new", version=version, where=QUARANTINED_ROWS
        )
        left = reader_of(context).query(sql, (held, fresh, *book)).to_pylist()
    except EngineError:
        return  # the table lands from scratch because it is corrupt: its pending lines are unknown
    missing = set(source.missing({row["file"] for row in left}))
    lost = [row for row in left if row["file"] in missing]
    came = [row for row in left if row["file"] not in missing and row["state"] == "waiting"]
    number, rows = context.plan.number, []
    for kind, lines, said in (
        (quarantine_query.LANDED, came, {"outcome": quarantine_query.LANDED_AGAIN}),
        (quarantine_query.DISCARD, lost, {"because": LOST}),
    ):
        facts = [{key: row[key] for key in ("id", "reason", "lines")} for row in lines]
        rows += quarantine_log.entries(kind, model.name, table.path, facts, at, tick=number, **said)
    quarantine_log.append(context.warehouse, context.plan.env, rows)
