"""`sqlrun drift`: compare sources with their declarations, and edit their YAML. Shell: files, Delta files, DuckDB."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from sqlrun import pipeline
from sqlrun.engine_api import Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import UsageError
from sqlrun.incremental.landing import query as landing_query
from sqlrun.land import change_places, source_editor
from sqlrun.land.change_places import Places
from sqlrun.land.drift_query import look
from sqlrun.land.registered_schema import Compared, compared, compatibility_line
from sqlrun.land.schema_drift import WORDS, Drift
from sqlrun.pipeline import Prepared, ledger_of, profile_of
from sqlrun.plan.plan import tick_plan
from sqlrun.plan.values import TablePlan
from sqlrun.project import Source
from sqlrun.publish.ledger import Ledger
from sqlrun.report import log_lines
from sqlrun.report.console import Console
from sqlrun.runtime import atomic_files
from sqlrun.runtime.disk_cache import Cache


@dataclass(frozen=True, slots=True)
class Found:
    """A source, the model that lands it, and its schema drift; `landed` is False if no line has landed yet."""

    source: Source
    model: str
    landed: bool
    drifts: tuple[Drift, ...]
    registered: Compared | None = None  # the newest schema in a registry


def drift_command(root: Path, name: str | None, write: bool, as_json: bool) -> int:
    """Run `sqlrun drift`."""
    prepared = pipeline.prepare(root, Cache.of(root))
    ledger = ledger_of(root, prepared, name)
    connections = profile_of(root, prepared, name).connections
    found = [_typed(replace(each, registered=compared(each.source, connections))) for each in _found(prepared, ledger)]
    console = Console()
    if as_json:
        console.raw(json.dumps([_as_json(each) for each in found], indent=2, ensure_ascii=False))
    else:
        console.lines(_report_lines(found))
    if write:
        console.lines([line for each in found for line in _write(root, each)])
    return 0


def _typed(found: Found) -> Found:
    """Return it with the registered types of new fields: a value that was seen may fit a smaller type."""
    differences = found.registered.differences if found.registered is not None else ()
    types = {each.field: each.registered for each in differences if each.kind == "new" and each.registered}
    drifts = [replace(d, seen=types[d.field]) if d.kind == "new" and d.field in types else d for d in found.drifts]
    return replace(found, drifts=tuple(drifts))


def _found(prepared: Prepared, ledger: Ledger) -> list[Found]:
    """Examine each landing table in its newest version, published or not."""
    workspace, history = prepared.workspace, ledger.read()
    published = history.published
    lands = tuple(m.name for m in workspace.tables if m.source is not None)
    as_of = published.as_of if published else datetime.min
    plan = tick_plan(workspace, ledger.warehouse, published, history.last_tick + 1, as_of, lands, False)
    engine = DuckDBEngine()
    try:
        found = []
        for model in (m for m in workspace.tables if m.source is not None):
            assert model.source is not None
            table = plan.tables[model.name]
            head = delta_table.head(table.spec.path)
            places = change_places.of(model.source, model.own)
            drifts = _drifts(engine, table, head, model.source, places) if head else ()
            found.append(Found(model.source, model.name, bool(head), drifts))
        return found
    finally:
        engine.close()


def _drifts(engine: DuckDBEngine, table: TablePlan, head: int, source: Source, places: Places) -> tuple[Drift, ...]:
    """Return the drift of all lines and of unpublished lines alone: a column may be missing only in the latter."""
    path = table.spec.path
    whole = look(engine, Relation("feed", path, landing_query.HIDDEN, "new", version=head), source, places, head)
    commits = delta_table.effective_commits(path, table.state.version if table.state else 0, head)
    commits = delta_table.landings(path, commits)
    if not commits:
        return whole
    fresh = look(engine, Relation("feed", path, landing_query.HIDDEN, "changes", commits=commits), source, places, head)
    known = {(d.kind, d.field) for d in whole}
    return (*whole, *(d for d in fresh if (d.kind, d.field) not in known))


def _as_json(found: Found) -> dict[str, object]:
    source = found.source
    return {
        "source": f"{source.group}.{source.name}",
        "model": found.model,
        "on_schema_change": source.on_schema_change,
        "landed": found.landed,
        "drift": [asdict(drift) for drift in found.drifts],
        "registered": None if found.registered is None else asdict(found.registered),
    }


def _report_lines(found: list[Found]) -> list[str]:
    lines: list[str] = []
    rows = [_row(each.source, drift) for each in found for drift in each.drifts]
    if rows:
        heads = ("source", "what", "field", "declared", "seen", "lines", "as in", "first in")
        origins = any(drift.first for each in found for drift in each.drifts)
        lines += log_lines.table(heads if origins else heads[:-1], rows if origins else [row[:-1] for row in rows])
    for each in found:
        source = f"{each.source.group}.{each.source.name}"
        if not each.landed:
            lines.append(f"{source}: no line has landed yet, or the source was edited since then. Run `sqlrun build`.")
        elif not each.drifts:
            lines.append(f"{source}: as declared.")
        if each.registered is not None:
            lines += _of_registry(source, each.registered)
    return lines


def _of_registry(source: str, found: Compared) -> list[str]:
    """Return the lines about the newest registered schema of a source."""
    if found.problem:
        return [f"{source}: {found.problem}."]
    lines = []
    schema = f"the newest schema of {found.subject}, id {found.id}"
    if not found.differences:
        lines.append(f"{source}: {schema}, has the declared fields.")
    for one in found.differences:
        match one.kind:
            case "new":
                what = (
                    f"has the field {one.field}{' ' + one.registered if one.registered else ''}, which isn't declared"
                )
            case "missing":
                what = f"lacks the declared field {one.field}"
            case _:
                what = f"has the type {one.registered} for {one.field}, declared as {one.declared}"
        lines.append(f"{source}: {schema}, {what}.")
    if found.compatibility:
        lines.append(f"{source}: {compatibility_line(found)}")
    return lines


def _row(source: Source, drift: Drift) -> tuple[object, ...]:
    what = f"{WORDS[drift.kind]}, renamed to {drift.renamed}?" if drift.renamed else WORDS[drift.kind]
    place = f"{source.group}.{source.name}"
    return (place, what, drift.field, drift.declared, drift.seen, drift.lines, drift.file, str(drift.first or ""))


def _write(root: Path, found: Found) -> list[str]:
    """Edit the file of a source; return the lines to print."""
    source = found.source
    if not found.drifts:
        return []
    file = root / source.place.file
    try:
        edited = source_editor.edited(file.read_bytes().decode("utf-8"), source, found.drifts)
    except ValueError as error:
        raise UsageError(f"{error}. Declare the fields by hand.") from error
    if edited.done:
        atomic_files.put(file, edited.text)
    lines = [f"{source.place.file}: {done}" for done in edited.done]
    lines += [f"Edit by hand: {source.group}.{source.name}, {left}" for left in edited.left]
    if edited.done:
        lines.append(f"Describe the new columns, select them in {found.model}, and run `sqlrun build`.")
    return lines
