"""What the rows of a landing table say of its source's drift. Shell: the engine, DuckDB."""

from __future__ import annotations

from typing import Any

from sqlrun import drift, landing
from sqlrun.drift import Drift
from sqlrun.engines import delta_files
from sqlrun.engines.protocol import Engine, Relation
from sqlrun.errors import EngineError
from sqlrun.maintain import Progress
from sqlrun.model import Source


def look(reader: Engine, relation: Relation, source: Source) -> tuple[Drift, ...]:
    """Find the differences in landed rows; where there are none, one query says so."""

    def rows(sql: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = reader.query(sql, (relation,)).to_pylist()
        return found

    (totals,) = rows(drift.TOTALS)
    if not totals["rescued"] and not totals["lacking"] and not totals["misfits"]:
        return ()
    lacking = rows(drift.LACKING) if totals["lacking"] else []
    fields = rows(drift.new_fields()) if totals["rescued"] else []
    misfits = rows(drift.misfits()) if totals["misfits"] else []
    return drift.found(source, totals["lines"], lacking, fields, misfits)


def refuses(source: Source) -> bool:
    """Tell whether rows of a source that drifts keep what stands on them from being maintained."""
    return source.on_schema_change == drift.FAIL


def judged(progress: Progress, name: str, source: Source) -> str:
    """Look at what has landed since the published tick, and give the note to tell, "" for none.

    Rows of a tick that was not published are judged again by the next one.
    Raises: EngineError (SR602) where the source says `fail` and is not what it declares.
    """
    table = progress.plan.tables[name]
    commits = progress.commits(name, table.state.version if table.state else 0, progress.states[name].version)
    commits = delta_files.landings(table.spec.path, commits)
    if not commits:
        return ""
    feed = Relation("feed", table.spec.path, landing.HIDDEN, "changes", commits=commits)
    drifts = look(reader_of(progress), feed, source)
    if drifts and refuses(source):
        raise EngineError(drift.refusal(source, drifts), model=name)
    return drift.told(source, name, drifts)


def reader_of(progress: Progress) -> Engine:
    """Give an engine that speaks DuckDB's SQL; it only reads."""
    return speaking(progress.reader)


def speaking(reader: Engine) -> Engine:
    """Give an engine, or another one where it doesn't speak DuckDB's SQL."""
    if reader.dialect == "duckdb":
        return reader
    from sqlrun.engines.duckdb import DuckDBEngine

    return DuckDBEngine()
