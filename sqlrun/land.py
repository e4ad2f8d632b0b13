"""Rows of new files into the landing tables. Shell: the engine."""

from __future__ import annotations

from datetime import datetime

from sqlrun import landed, landing, lost_files
from sqlrun.drift_rows import judged
from sqlrun.engines.protocol import Landing
from sqlrun.events import StageReceipt
from sqlrun.incremental.compile import Compiled
from sqlrun.maintain import Progress
from sqlrun.plan import state_after


def land(progress: Progress, model: Compiled, warehouse: str, at: datetime) -> StageReceipt:
    """Land what is new of a model's source, exactly once.

    What has landed stays, published or not: rows of a tick that failed are the next tick's changes.
    """
    assert model.source is not None
    table = progress.plan.tables[model.name]
    rules = progress.space.rules.get(model.name, ())
    query = landing.query(model.own, model.source, rules, progress.engine.dialect, at)
    request = Landing(
        table=table.spec,
        source=f"{progress.space.project.root}/{model.source.path}",
        checkpoint=f"{warehouse}/{landed.checkpoint_of(table.path)}",
        query=query,
        app_id=f"{progress.space.project.name}.{model.name}",
        metadata=progress.metadata(),
        accept_lost=progress.accept_lost,
    )
    if table.state is None:
        lost_files.require(progress, model.name, request.source, table.path)
    progress.still()
    written = progress.engine.land(request)
    progress.finish(model.name, state_after(table, written.version, progress.plan.as_of, {}))
    notes = (*written.notes, judged(progress, model.name, model.source))
    note = "\n".join(text for text in notes if text)
    return StageReceipt(
        model.name, "append", model.own.reason.code, 0, written.version, written.receipt, note=note, path=table.path
    )
