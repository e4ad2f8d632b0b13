"""Detect a source's schema drift in the rows of its landing table. Shell: the engine, DuckDB."""

from __future__ import annotations

from typing import Any

from sqlrun.engine_api import Engine, Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.incremental.landing import query as landing_query
from sqlrun.land import schema_drift
from sqlrun.land.schema_drift import Drift
from sqlrun.maintain.tick_context import TickContext
from sqlrun.project import Source


def look(reader: Engine, relation: Relation, source: Source) -> tuple[Drift, ...]:
    """Return the differences in landed rows; if there are none, one query is enough."""

    def rows(sql: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = reader.query(sql, (relation,)).to_pylist()
        return found

    (totals,) = rows(schema_drift.TOTALS)
    if not totals["rescued"] and not totals["lacking"] and not totals["misfits"]:
        return ()
    lacking = rows(schema_drift.LACKING) if totals["lacking"] else []
    fields = rows(schema_drift.new_fields()) if totals["rescued"] else []
    misfits = rows(schema_drift.misfits()) if totals["misfits"] else []
    return schema_drift.found(source, totals["lines"], lacking, fields, misfits)


def refuses(source: Source) -> bool:
    """Return whether drift of a source fails the tick."""
    return source.on_schema_change == schema_drift.FAIL


def judged(context: TickContext, name: str, source: Source) -> str:
    """Check the rows that landed since the published tick, and return a note about drift; "" if there is none.

    Rows of an unpublished tick are checked again by the next one.

    Raises: EngineError (SR602) if the source has drifted and its `on_schema_change` is `fail`.
    """
    table = context.plan.tables[name]
    commits = context.commits(name, table.state.version if table.state else 0, context.states[name].version)
    commits = delta_table.landings(table.spec.path, commits)
    if not commits:
        return ""
    feed = Relation("feed", table.spec.path, landing_query.HIDDEN, "changes", commits=commits)
    drifts = look(reader_of(context), feed, source)
    if drifts and refuses(source):
        raise EngineError(schema_drift.refusal(source, drifts), model=name)
    return schema_drift.message(source, name, drifts)


def reader_of(context: TickContext) -> Engine:
    """Return an engine for queries in DuckDB's SQL; it only reads."""
    return speaking(context.reader)


def speaking(reader: Engine) -> Engine:
    """Return the engine if it speaks DuckDB's SQL, else a DuckDB engine."""
    if reader.dialect == "duckdb":
        return reader
    from sqlrun.engines.duckdb.engine import DuckDBEngine

    return DuckDBEngine()
