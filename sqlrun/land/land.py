"""New lines of sources into landing tables. Shell: the engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import cache, partial

from sqlrun.engine_api import Dialect, Landing
from sqlrun.engines.delta import foreign_writers
from sqlrun.events import StageReceipt
from sqlrun.incremental import hidden_partitions
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing import query as landing_query
from sqlrun.land import missing_files, relanding, replay, rule_changes
from sqlrun.land.drift_query import judged, refuses
from sqlrun.maintain import engine_selection
from sqlrun.maintain.tick_context import TickContext
from sqlrun.plan.values import state_after
from sqlrun.sources import checkpoint, factory


def ahead(context: TickContext, at: datetime) -> None:
    """Land between two ticks what has come since the first and is whole: the second has less to wait for (decision 22).

    To the second it is as if it had died after landing them: rows that no tick has published are its changes. Where
    it will need Spark, that begins to start now.
    Raises: EngineError, which the next tick meets again and tells; LockedError.
    """
    models = [model for model in context.plan.models if model.source is not None and _at_rest(context, model)]
    if models:
        engine_selection.prestart_spark(context)
    for model in models:
        turn = engine_selection.of_landing(context, model)
        request = _request(context, model, turn.engine.dialect, at)
        context.assert_lock_held()
        turn.engine.land(request)


def _at_rest(context: TickContext, model: Compiled) -> bool:
    """Return whether parts of the source wait, and each is old enough to be complete."""
    pending = engine_selection.pending(context, model)
    return bool(pending.parts) and pending.settled


def _request(context: TickContext, model: Compiled, dialect: Dialect, at: datetime) -> Landing:
    assert model.source is not None
    table = context.plan.tables[model.name]
    return Landing(
        table=table.spec,
        source=factory.reader_of(context.workspace.project.root, model.source),
        checkpoint=f"{context.warehouse}/{checkpoint.path_of(table.path)}",
        query=cache(partial(_query, context, model, dialect, at)),
        app_id=f"{context.workspace.project.name}.{model.name}",
        metadata=context.metadata(),
        accept_lost=context.accept_lost,
    )


def land(context: TickContext, model: Compiled, at: datetime) -> StageReceipt:
    """Land what is new of a model's source, exactly once.

    What has landed stays, published or not: rows of a tick that failed are the next tick's changes. Quarantined lines
    that somebody asked to be replayed are judged again.
    """
    assert model.source is not None
    table = context.plan.tables[model.name]
    turn = engine_selection.of_landing(context, model)
    request = _request(context, model, turn.engine.dialect, at)
    if table.state is None:
        missing_files.require(context, model.name, request.source, table.path)
    context.assert_lock_held()
    written = turn.engine.land(request)
    relanding.write_down(context, model, request.source, written.version, at)
    replayed = replay.carry_out(context, model, written.version, at)
    base, project = context.bases[model.name], context.workspace.project.name
    foreign_writers.require_none(model.name, table.spec.path, base, replayed.version, project)
    rules_now = context.workspace.rules_print(model)
    context.finish(model.name, state_after(table, replayed.version, context.plan.as_of, {}, rules_now))
    notes = (turn.note if written.receipt.commits else "", *written.notes)
    # Where it is but told, the landing's checks look, beside what comes next.
    drifted = judged(context, model.name, model.source) if refuses(model.source) else ""
    notes = (*notes, drifted, replayed.note)
    if not replayed.note:
        notes = (*notes, rule_changes.message(context.workspace, model, table, partial(replay.waiting, context, model)))
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
        engine=turn.engine.name if turn.engine is not context.engine else "",
    )


def _query(context: TickContext, model: Compiled, dialect: Dialect, at: datetime) -> str:
    assert model.source is not None
    query = landing_query.query(model.own, model.source, context.workspace.rules.get(model.name, ()), dialect, at)
    return hidden_partitions.with_parts(query, model.own.columns, model.own.partition_by, dialect)
