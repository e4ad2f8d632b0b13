"""Land new lines of sources in landing tables. Shell: the engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import cache, partial

from sqlrun.engine_api import Dialect, Engine, Landing, LineCounts, Receipt, Written
from sqlrun.engines.delta import foreign_writers
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import SourceError
from sqlrun.events import StageReceipt
from sqlrun.incremental import hidden_partitions
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing import query as landing_query
from sqlrun.land import accounting, dead_letters, missing_files, quarantine_query, relanding, replay, rule_changes
from sqlrun.land.drift_query import judged, refuses
from sqlrun.maintain import engine_selection
from sqlrun.maintain.tick_context import TickContext
from sqlrun.plan.values import state_after
from sqlrun.sources import checkpoint


def ahead(context: TickContext, at: datetime) -> None:
    """Land new, complete lines between two ticks, so that the second has less to do (decision 22).

    For the second tick this looks like a tick that died after landing: rows of unpublished ticks are its changes. If it
    will need Spark, Spark starts now.

    Raises: EngineError, which the next tick meets again and reports; LockedError.
    """
    context.renew_cuts()
    models = [model for model in context.plan.models if model.source is not None and _at_rest(context, model)]
    if models:
        engine_selection.prestart_spark(context)
    for model in models:
        selection = engine_selection.of_landing(context, model)
        request = _request(context, model, selection.engine.dialect, at)
        context.assert_lock_held()
        accounting.record(context, model, request.source, selection.engine.land(request).batches, at)


def _at_rest(context: TickContext, model: Compiled) -> bool:
    """Return whether the source has pending parts, all of them old enough to be complete."""
    pending = engine_selection.pending(context, model)
    return bool(pending.parts) and pending.settled


def _request(context: TickContext, model: Compiled, dialect: Dialect, at: datetime) -> Landing:
    assert model.source is not None
    table = context.plan.tables[model.name]
    return Landing(
        table=table.spec,
        source=context.source_of(model),
        checkpoint=f"{context.warehouse}/{checkpoint.path_of(table.path)}",
        query=cache(partial(_query, context, model, dialect, at)),
        app_id=f"{context.workspace.project.name}.{model.name}",
        metadata=context.metadata(),
        accept_lost=context.accept_lost,
        drops=landing_query.drops(model.own, model.source),
        base=context.bases.get(model.name),
    )


def land(context: TickContext, model: Compiled, at: datetime) -> StageReceipt:
    """Land new lines of a model's source, exactly once.

    Landed rows stay, published or not: rows of a failed tick are changes of the next tick. Quarantined lines with a
    requested replay are validated again.
    """
    assert model.source is not None
    table = context.plan.tables[model.name]
    selection = engine_selection.of_landing(context, model)
    request = _request(context, model, selection.engine.dialect, at)
    if table.state is None:
        missing_files.require(context, model.name, request.source, table.path)
    dead_letters.require(context, model)
    _require_group(context, model)
    context.assert_lock_held()
    written = _written(context, model, selection.engine, request)
    recorded = accounting.record(context, model, request.source, written.batches, at)
    lines = accounting.judge(context, model, request.source, recorded, written.version, at)
    relanding.write_down(context, model, request.source, written.version, at)
    replayed = replay.carry_out(context, model, written.version, at)
    base, project = context.bases[model.name], context.workspace.project.name
    foreign_writers.require_none(model.name, table.spec.path, base, replayed.version, project)
    rules_now = context.workspace.rules_print(model)
    complete = context.complete(model)
    state = replace(state_after(table, replayed.version, context.plan.as_of, {}, rules_now), complete=complete)
    context.finish(model.name, state)
    notes = (selection.note if written.receipt.commits else "", *written.notes)
    # Otherwise the landing's checks report drift, in parallel with the next step.
    drifted = judged(context, model.own, model.source) if refuses(model.source) else ""
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
        engine=selection.engine.name if selection.engine is not context.engine else "",
        counts=_shown(model, written.counts),
        lines=lines,
        complete=complete,
    )


def _require_group(context: TickContext, model: Compiled) -> None:
    """Reject a tick that lands only some of the sources that take whole transactions together.

    An environment reads what it hasn't changed from production, which lands it at other times.

    Raises: SourceError.
    """
    assert model.source is not None
    if model.source.transactions is None or context.plan.env:
        return
    chosen = {each.name for each in context.plan.models}
    group = [each.name for each in context.workspace.transaction_group(model.source)]
    left = sorted({*group} - chosen)
    if left:
        raise SourceError(
            f"SR756 this build lands {model.name}, but not {', '.join(left)}: together they take whole transactions of "
            f"the topic {model.source.transactions[1]}. Select them all: --select "
            f"{' '.join(f'{name}+' for name in sorted(group))}",
            model=model.name,
        )


def _written(context: TickContext, model: Compiled, engine: Engine, request: Landing) -> Written:
    """Land; if the source can't be read and its declaration allows that, land nothing and say so."""
    try:
        return engine.land(request)
    except SourceError as error:
        assert model.source is not None
        head = delta_table.head(context.plan.tables[model.name].spec.path)
        if model.source.if_unreadable != "skip" or head is None:
            raise
        note = f"{error}. The tick goes on without new lines of this source, as `if_unreadable: skip` says"
        return Written(head, Receipt(0.0), (note,))


def _shown(model: Compiled, counts: LineCounts) -> LineCounts:
    """Return counts whose samples people may see: a line has all columns of its source, so none may be private."""
    assert model.source is not None
    if not quarantine_query.private(model.query.rendered.model, model.source):
        return counts
    return replace(counts, samples=tuple(replace(sample, text="") for sample in counts.samples))


def _query(context: TickContext, model: Compiled, dialect: Dialect, at: datetime) -> str:
    assert model.source is not None
    rules = context.workspace.rules.get(model.name, ())
    drops = bool(landing_query.drops(model.own, model.source))
    query = landing_query.query(model.own, model.source, rules, dialect, at, with_dropped=drops)
    return hidden_partitions.with_parts(query, model.own.columns, model.own.partition_by, dialect)
