"""Input of the next build: new lines and rows of sources, and lines to replay. Shell: sources, the warehouse."""

from __future__ import annotations

from collections.abc import Mapping

from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.incremental.compile import Compiled
from sqlrun.land import quarantine_log, quarantine_query
from sqlrun.maintain import source_versions
from sqlrun.plan.values import TickPlan, Workspace
from sqlrun.project import Connection
from sqlrun.publish.reader import query
from sqlrun.runtime import arrow_rows
from sqlrun.runtime.text_table import counted
from sqlrun.sources import checkpoint, factory


def messages(workspace: Workspace, plan: TickPlan, connections: Mapping[str, Connection]) -> list[str]:
    """Return a line for each source with pending input; one line if there is none."""
    found = {}
    for model in plan.models:
        if model.source is not None and not plan.tables[model.name].shared:
            found[f"{model.source.group}.{model.source.name}"] = _pending(workspace, plan, model, connections)
    for source in workspace.project.sources:
        if source.table in plan.tables:
            found[f"{source.group}.{source.name}"] = source_versions.pending(plan, source.table)
    if not any(found.values()):
        return ["No new input is pending."]
    longest = max(len(source) for source, said in found.items() if said)
    return ["Pending input:", "", *(f"  {source:{longest}}  {said}" for source, said in found.items() if said)]


def _pending(workspace: Workspace, plan: TickPlan, model: Compiled, connections: Mapping[str, Connection]) -> str:
    """Return the pending input of one source as text, or why it is unknown; "" if there is none."""
    assert model.source is not None
    table = plan.tables[model.name]
    warehouse = table.spec.path.removesuffix(f"/{table.path}")
    try:
        reader = factory.reader_of(workspace.project.root, model.source, connections)
        files = reader.pending(checkpoint.landed(reader, f"{warehouse}/{checkpoint.path_of(table.path)}"))
        landed = bool(table.state and (delta_table.head(table.spec.path) or 0) > table.state.version)
        replays = _replays(warehouse, plan.env, model.name)
    except (EngineError, OSError) as error:
        return f"unknown: {error}"
    parts = [text for text in (reader.summary(files), *(loss.what for loss in files.losses)) if text]
    if landed:
        parts.append("landed rows that no tick has published")
    if replays:
        parts.append(f"{counted(replays, 'quarantined line')} to replay")
    return ", ".join(parts)


def _replays(warehouse: str, env: str, model: str) -> int:
    """Return the number of quarantined lines of a model that a user asked to replay."""
    if not quarantine_log.has_rows(warehouse, env):
        return 0
    sql = f"select coalesce(sum(lines), 0) as n from ({quarantine_query.pending(model)}) as asked"
    sql, book = quarantine_log.about(warehouse, env, sql)
    (row,) = arrow_rows.plain(query(sql, book))
    return int(row["n"])
