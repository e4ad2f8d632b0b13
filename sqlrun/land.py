"""Rows of new files into the landing tables. Shell: the engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import cache, partial

from sqlrun import landed, landing, lost_files, relanded, replays, rules_edited, turns
from sqlrun.drift_rows import judged
from sqlrun.engines.protocol import Dialect, Landing
from sqlrun.events import StageReceipt
from sqlrun.incremental.compile import Compiled
from sqlrun.maintain import Progress
from sqlrun.plan import state_after


def land(progress: Progress, model: Compiled, warehouse: str, at: datetime) -> StageReceipt:
    """Land what is new of a model's source, exactly once.

    What has landed stays, published or not: rows of a tick that failed are the next tick's changes. Quarantined lines
    that somebody asked to be replayed are judged again.
    """
    assert model.source is not None
    table = progress.plan.tables[model.name]
    turn = turns.of_landing(progress, model)
    query = cache(partial(_query, progress, model, turn.engine.dialect, at))
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
    written = turn.engine.land(request)
    relanded.write_down(progress, model, request.source, written.version, at)
    replayed = replays.carry_out(progress, model, written.version, at)
    rules_now = progress.space.rules_print(model)
    progress.finish(model.name, state_after(table, replayed.version, progress.plan.as_of, {}, rules_now))
    notes = (turn.note if written.receipt.commits else "", *written.notes)
    notes = (*notes, judged(progress, model.name, model.source), replayed.note)
    if not replayed.note:
        notes = (*notes, rules_edited.told(progress.space, model, table, partial(replays.waiting, progress, model)))
    note = "\n".join(text for text in notes if text)
    receipt = replace(written.receipt, commits=written.receipt.commits + replayed.commits)
    return StageReceipt(
        model.name,
        "append",
        model.own.reason.code,
        0,
        replayed.version,
        receipt,
        note=note,
        path=table.path,
        engine=turn.engine.name if turn.engine is not progress.engine else "",
    )


def _query(progress: Progress, model: Compiled, dialect: Dialect, at: datetime) -> str:
    assert model.source is not None
    return landing.query(model.own, model.source, progress.space.rules.get(model.name, ()), dialect, at)
