"""A gap in a database's log of changes: a new snapshot after changes that landed earlier. Shell: the engine, DuckDB.

A connector takes a new snapshot if its place in the log is gone, as after a replication slot was dropped. The changes
between the last one that landed and the snapshot never come: a history lacks them, and rows that changed or were
deleted stay as they were, unless the models look at snapshots. An incremental snapshot, which is asked for, leaves no
gap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlrun.engine_api import Relation
from sqlrun.incremental.stages import Stage
from sqlrun.land import change_places
from sqlrun.land.change_places import Places
from sqlrun.land.drift_query import landed, reader_of
from sqlrun.maintain.tick_context import TickContext
from sqlrun.project import Source
from sqlrun.runtime import arrow_rows
from sqlrun.transpile.writer import string

READ, INCREMENTAL = "r", "incremental"


def note(context: TickContext, stage: Stage, source: Source) -> str:
    """Return the note of a tick in which a snapshot begins after changes that landed earlier; "" for any other."""
    places = change_places.of(source, stage)
    state = context.plan.tables[stage.name].state
    if state is None or not places.are_ordered or "op" not in places.landed:
        return ""
    rows = landed(context, stage)
    if rows is None:
        return ""
    feed = replace(rows, columns=(*rows.columns, *places.columns))
    whole = Relation("whole", feed.path, feed.columns, "new", version=state.version)
    reader = reader_of(context)

    def row(sql: str, relation: Relation) -> dict[str, Any]:
        (found,) = arrow_rows.plain(reader.query(sql, (relation,)))
        return dict(found)

    began = row(f"select min({places.value('position')}) as position from feed where {_is_read(places)}", feed)
    if began["position"] is None:
        return ""
    before = row(_before(places, began["position"]), whole)
    if before["changed"] is None or before["read"] == began["position"]:
        return ""
    return (
        f"SR603 {source.group}.{source.name}: a new snapshot of the table at position {began['position']}. Changes "
        f"after position {before['changed']} and before it never come: histories lack them, and rows that "
        "changed or were deleted meanwhile stay as they were unless the models look at snapshots"
    )


def _is_read(places: Places) -> str:
    """Return the condition that a row is of a snapshot that isn't an incremental one."""
    kind = f"{places.value('op')} = '{READ}'"
    return f"{kind} and {places.value('snapshot')} is distinct from '{INCREMENTAL}'"


def _before(places: Places, position: str) -> str:
    """Return the query of the last change before a position, and of the last position of a snapshot's rows."""
    at = places.value("position")
    changed = f"{places.value('op')} <> '{READ}' and {at} < {string(position, 'duckdb')}"
    return (
        f"select max({at}) filter (where {changed}) as changed, max({at}) filter (where {_is_read(places)}) as read\n"
        "from whole"
    )
