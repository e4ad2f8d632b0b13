"""Detect a source's schema drift in the rows of its landing table. Shell: the engine, DuckDB."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlrun.engine_api import Engine, Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.incremental.landing import query as landing_query
from sqlrun.incremental.stages import Stage
from sqlrun.land import change_places, schema_drift
from sqlrun.land.change_places import Places
from sqlrun.land.schema_drift import Drift
from sqlrun.maintain.tick_context import TickContext
from sqlrun.project import Source


def look(
    reader: Engine, relation: Relation, source: Source, places: Places = change_places.NONE, version: int = 0
) -> tuple[Drift, ...]:
    """Return the differences in landed rows; if there are none, one query is enough.

    `version` is that of the whole table. Of a database's changes a column is missing only if newer rows lack it than
    have it: a row that comes late, or again, is as old as its position.
    """

    def rows(sql: str, *relations: Relation) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = reader.query(sql, relations or (feed,)).to_pylist()
        return found

    feed = replace(relation, columns=(*relation.columns, *places.columns))
    (totals,) = rows(schema_drift.TOTALS)
    if not totals["rescued"] and not totals["lacking"] and not totals["misfits"]:
        return ()
    lacking = schema_drift.names_of(rows(schema_drift.LACKING)) if totals["lacking"] else {}
    if lacking and places.are_ordered:
        whole = Relation("whole", feed.path, feed.columns, "new", version=version)
        (newest,) = rows(schema_drift.newest(places, tuple(lacking)), whole)
        since = {name: newest[f"c{number}"] or "" for number, name in enumerate(lacking)}
        found = {name: rows(schema_drift.lacking_since(places, name, at))[0] for name, at in since.items()}
        lacking = {name: each for name, each in found.items() if each["lines"]}
    else:
        lacking = {name: each for name, each in lacking.items() if each["lines"] == totals["lines"]}
    fields = rows(schema_drift.new_fields(places)) if totals["rescued"] else []
    misfits = rows(schema_drift.misfits(places)) if totals["misfits"] else []
    return schema_drift.found(source, lacking, fields, misfits)


def refuses(source: Source) -> bool:
    """Return whether drift of a source fails the tick."""
    return source.on_schema_change == schema_drift.FAIL


def judged(context: TickContext, stage: Stage, source: Source) -> str:
    """Check the rows that landed since the published tick, and return a note about drift; "" if there is none.

    Rows of an unpublished tick are checked again by the next one.

    Raises: EngineError (SR602) if the source has drifted and its `on_schema_change` is `fail`.
    """
    feed = landed(context, stage)
    if feed is None:
        return ""
    version = context.states[stage.name].version
    drifts = look(reader_of(context), feed, source, change_places.of(source, stage), version)
    if drifts and refuses(source):
        raise EngineError(schema_drift.refusal(source, drifts), model=stage.name)
    return schema_drift.message(source, stage.name, drifts)


def landed(context: TickContext, stage: Stage) -> Relation | None:
    """Return the rows that landed since the published tick, as `feed` with their hidden columns; None if none did."""
    table, version = context.plan.tables[stage.name], context.states[stage.name].version
    commits = context.commits(stage.name, table.state.version if table.state else 0, version)
    commits = delta_table.landings(table.spec.path, commits)
    if not commits:
        return None
    return Relation("feed", table.spec.path, landing_query.HIDDEN, "changes", commits=commits)


def reader_of(context: TickContext) -> Engine:
    """Return an engine for queries in DuckDB's SQL; it only reads."""
    return speaking(context.reader)


def speaking(reader: Engine) -> Engine:
    """Return the engine if it speaks DuckDB's SQL, else a DuckDB engine."""
    if reader.dialect == "duckdb":
        return reader
    from sqlrun.engines.duckdb.engine import DuckDBEngine

    return DuckDBEngine()
