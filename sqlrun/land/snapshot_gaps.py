"""A gap in a database's log of changes, which a snapshot shows. Shell: the engine, DuckDB.

A connector takes a new snapshot if its place in the log is gone, as after a replication slot was dropped. The changes
between the last one that landed and the snapshot never come: a history lacks them, and rows that changed or were
deleted stay as they were, unless the models look at snapshots. An incremental snapshot, which is asked for, leaves no
gap. But one that reads a value which no change of the row has shows that there was one before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlrun.engine_api import Relation
from sqlrun.incremental.landing.query import REASON
from sqlrun.incremental.landing.shape import renamed
from sqlrun.incremental.stages import Stage
from sqlrun.land import change_places
from sqlrun.land.change_places import Places
from sqlrun.land.drift_query import landed, reader_of
from sqlrun.maintain.tick_context import TickContext
from sqlrun.project import Source
from sqlrun.runtime import arrow_rows
from sqlrun.runtime.text_table import counted
from sqlrun.transpile.writer import identifier, string

READ, INCREMENTAL = "r", "incremental"


def note(context: TickContext, stage: Stage, source: Source) -> str:
    """Return the note of a tick whose snapshot shows a gap after changes that landed earlier; "" for any other."""
    places = change_places.of(source, stage)
    state = context.plan.tables[stage.name].state
    if state is None or not places.are_ordered or "op" not in places.landed:
        return ""
    rows = landed(context, stage)
    if rows is None:
        return ""
    feed = replace(rows, columns=(*rows.columns, *stage.public))
    whole = Relation("whole", feed.path, feed.columns, "new", version=state.version)
    reader = reader_of(context)

    def row(sql: str, *relations: Relation) -> dict[str, Any]:
        (found,) = arrow_rows.plain(reader.query(sql, relations))
        return dict(found)

    began = row(_began(places), feed)
    if not began["read"]:
        return ""
    name, position = f"{source.group}.{source.name}", began["position"]
    before = row(_before(places, position), whole) if position is not None else {}
    if before.get("changed") is not None and before["read"] != position:
        return (
            f"SR603 {name}: a new snapshot of the table at position {position}. Changes after position "
            f"{before['changed']} and before it never come: histories lack them, and rows that changed or were deleted "
            "meanwhile stay as they were unless the models look at snapshots"
        )
    unknown = _unknown(source, stage, places)
    found = row(unknown, feed, whole) if unknown else {}
    if not found.get("rows"):
        return ""
    return (
        f"SR603 {name}: a snapshot read {counted(found['rows'], 'row')} with values that no landed change of the key "
        f"has: the first is {found['key']} at position {found['position']}. A change before it never came. Neither "
        "current rows nor histories have these values unless the models look at snapshots"
    )


def _is_read(places: Places) -> str:
    """Return the condition that a row is of a snapshot that isn't an incremental one."""
    kind = f"{places.value('op')} = '{READ}'"
    return f"{kind} and {places.value('snapshot')} is distinct from '{INCREMENTAL}'"


def _began(places: Places) -> str:
    """Return the query of the number of a snapshot's rows, and of the first position of one that isn't incremental."""
    return (
        f"select count(*) filter (where {places.value('op')} = '{READ}') as read, "
        f"min({places.value('position')}) filter (where {_is_read(places)}) as position from feed"
    )


def _before(places: Places, position: str) -> str:
    """Return the query of the last change before a position, and of the last position of a snapshot's rows."""
    at = places.value("position")
    changed = f"{places.value('op')} <> '{READ}' and {at} < {string(position, 'duckdb')}"
    return (
        f"select max({at}) filter (where {changed}) as changed, max({at}) filter (where {_is_read(places)}) as read\n"
        "from whole"
    )


def _unknown(source: Source, stage: Stage, places: Places) -> str:
    """Return the query of a snapshot's rows with values that no change of their keys has.

    "" if the table lacks the key. The keys had changes before the tick. A change that lands in the tick counts: its
    transaction may have been open.
    """
    assert source.changes is not None
    renames = renamed(stage.node).items() if stage.node is not None else ()
    names = {own: identifier(name, "duckdb") for name, own in renames}
    if not names.keys() >= {*source.changes.key}:
        return ""
    match = " and ".join(f"r.{names[key]} = s.{names[key]}" for key in source.changes.key)
    shown = ", ".join(f"{string(f'{key} ', 'duckdb')} || cast(r.{names[key]} as varchar)" for key in source.changes.key)
    op, at = (identifier(places.landed[part].name, "duckdb") for part in ("op", "position"))
    return (
        f"with r as (select * from feed where {op} = '{READ}' and {REASON} is null),\n"
        f"s as (select * from whole where {REASON} is null),\n"
        f"sent as (from s union all by name select * from feed where {op} <> '{READ}' and {REASON} is null)\n"
        f"select count(*) as rows, min(r.{at}) as position, arg_min(concat_ws(', ', {shown}), r.{at}) as key from r\n"
        f"where exists (select 1 from s where {match} and s.{op} <> '{READ}' and s.{at} < r.{at}) and not exists (\n"
        f"select 1 from sent as s where {match} and s.{op} not in ('d', 't') and {_same_values(source, names)})"
    )


def _same_values(source: Source, names: Mapping[str, str]) -> str:
    """Return the condition that a snapshot's row r has the values of a change s; a value that s lacks may be any."""
    lacks = next((names[c.name] for c in source.columns if c.comes_from == "unavailable" and c.name in names), None)
    tests = ["true"]
    for column in source.columns:
        if column.comes_from or column.name not in names:
            continue
        test = f"r.{names[column.name]} is not distinct from s.{names[column.name]}"
        absent = f"coalesce(list_contains(s.{lacks}, {string(column.name, 'duckdb')}), false)"
        tests.append(f"({test} or {absent})" if lacks else test)
    return " and ".join(tests)
