"""Update one model: relations bound to pinned versions, one statement for each table. Shell: the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Literal

from sqlrun.engine_api import (
    Dialect,
    Engine,
    Load,
    Receipt,
    Relation,
    RowSet,
    Statement,
    StoredColumn,
    Write,
    Written,
)
from sqlrun.engines.delta import foreign_writers as others
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError, UnsuitedError
from sqlrun.events import StageReceipt
from sqlrun.incremental import hidden_partitions, pruning, statement_cache
from sqlrun.incremental.compile import Compiled, query_of_any_tick
from sqlrun.incremental.script import Moment
from sqlrun.incremental.stages import Earlier, Stage
from sqlrun.incremental.statements import Prepared, Tick, prepare
from sqlrun.load.seeds import typed_rows
from sqlrun.maintain import changed_rows, engine_selection
from sqlrun.maintain.tick_context import TickContext
from sqlrun.plan import fingerprint, strategy_cost
from sqlrun.plan.values import TablePlan, state_after
from sqlrun.project import IS_DELETED, NEW_RECORD, VERSION_COLUMNS
from sqlrun.publish.table_state import TableState
from sqlrun.system_tables import receipts

# If even this many rows read for each changed one are few, the sizes of tables aren't looked up.
MOST_AMPLIFIED = 20


def maintain(
    context: TickContext, model: Compiled, kept: Callable[[str], None] = lambda _: None
) -> tuple[StageReceipt, ...]:
    """Update a model's tables: hidden ones first, in parallel unless one reads the other.

    `kept` is called with each hidden table as soon as it is written, while others are still in progress.
    """
    hidden, done = {s.name for s in model.stages}, dict[str, StageReceipt]()
    waiting = list(model.stages)

    def bring(stage: Stage) -> StageReceipt:
        receipt = _stage(context, model, stage)
        if stage is not model.own:
            kept(stage.name)
        return receipt

    while waiting:
        ready = [s for s in waiting if not set(s.inputs) & (hidden - done.keys())]
        # The last one runs in this thread: py4j opens a connection for each new thread.
        with ThreadPoolExecutor(max_workers=len(ready)) as pool:
            others = [pool.submit(bring, stage) for stage in ready[:-1]]
            receipts = [bring(ready[-1]), *(other.result() for other in others)]
        done |= {receipt.table: receipt for receipt in receipts}
        waiting = [s for s in waiting if s.name not in done]
    return tuple(done[s.name] for s in model.stages)


def _stage(context: TickContext, model: Compiled, stage: Stage) -> StageReceipt:
    table = context.plan.tables[stage.name]
    base = context.bases[stage.name]
    tick, commits = _facts(context, stage, table)
    read = table.state.inputs if table.state else {}
    changed = sum(context.rows_changed(name, read[name][1], found) for name, found in commits.items())
    choice = _choice(context, stage, table, changed)
    if choice is not None and choice.way == "whole":
        tick = replace(tick, whole=True)
    selection = engine_selection.of_table(context, stage, tick, changed)
    try:
        written = _carried_out(context, model, stage, tick, commits, selection.engine)
    except UnsuitedError as error:
        selection = engine_selection.fall_back_to_spark(context, selection, table.spec.path, base, error)
        written = _carried_out(context, model, stage, tick, commits, selection.engine)
    others.require_none(stage.name, table.spec.path, base, written.version, context.workspace.project.name)
    wrote = written.receipt.commits > 0
    inputs = {name: (context.states[name].path, context.states[name].version) for name in stage.inputs}
    content = stage.history.hard_deletes if stage.history is not None else ""
    context.finish(stage.name, state_after(table, written.version, context.plan.as_of, inputs, content))
    strategy, reason, note = stage.strategy, stage.reason.code, ""
    if choice is not None and tick.whole:
        strategy, reason, note = "full", "SR548", strategy_cost.message(stage.name, choice)
    note = "\n".join(text for text in (note, selection.note if wrote else "") if text)
    engine = selection.engine.name if selection.engine is not context.engine else ""
    receipt = StageReceipt(
        table=stage.name,
        strategy=strategy,
        reason=reason,
        rows_changed=0,
        version=written.version,
        receipt=written.receipt,
        rows_in=changed,
        note=note,
        path=table.path,
        engine=engine,
    )
    if not tick.fresh:
        _hold(model, receipt)
    return receipt


def _carried_out(
    context: TickContext,
    model: Compiled,
    stage: Stage,
    tick: Tick,
    commits: Mapping[str, tuple[int, ...]],
    engine: Engine,
) -> Written:
    """Write a table's statement in an engine's dialect and run it, if anything can have changed."""
    table, base = context.plan.tables[stage.name], context.bases[stage.name]
    prepared = _prepared(context, model, stage, tick, engine.dialect)
    if prepared is None:
        return Written(base, Receipt(0.0))
    needed = pruning.needed(stage, tick.moment, fresh=tick.fresh or tick.whole)
    relations = tuple(
        replace(
            relation(context, stage, name, row_set, base, commits),  # type: ignore[arg-type]
            ranges=tuple((r.column, r.low, r.high) for r in needed.get((name, row_set), ())),
        )
        for name, row_set in prepared.reads
    )
    engine.start()  # starting the engine isn't part of the statement's cost
    context.assert_lock_held()
    statement = hidden_partitions.filled(prepared.statement, stage.columns, stage.partition_by, engine.dialect)
    return engine.write(_write(context, table, base, relations, statement, tick.moment))


def _prepared(context: TickContext, model: Compiled, stage: Stage, tick: Tick, dialect: Dialect) -> Prepared | None:
    """Return a stage's statement for a tick, from the cache if another tick of its kind had it."""
    if stage.node is None:
        return prepare(stage, tick, dialect, _whole(context, model, dialect))
    return statement_cache.prepared(stage, tick, dialect)


def _choice(context: TickContext, stage: Stage, table: TablePlan, changed: int) -> strategy_cost.Choice | None:
    """Return the choice between a table's own way and recomputing it from scratch; None if there is none."""
    if table.state is None or not strategy_cost.has_choice(stage) or changed * MOST_AMPLIFIED < strategy_cost.FEW:
        return None
    read = receipts.read_for_changes(context.warehouse, stage.name, stage.strategy)
    own = delta_table.rows_at(table.spec.path, table.state.version)
    facts = strategy_cost.Facts(changed, changed, own, strategy_cost.amplification(read))
    if strategy_cost.choose(stage, facts).way == "change":
        return None  # the inputs' rows can't change the choice
    inputs = changed + sum(delta_table.rows_at(*context.before(name)) for name in stage.inputs)
    return strategy_cost.choose(stage, replace(facts, inputs=inputs))


def _hold(model: Compiled, receipt: StageReceipt) -> None:
    """Raise SR532 if a table exceeds `max_read_amplification`.

    Below `strategy_cost.FEW` rows the size of files dominates, so small reads are exempt.
    """
    limit = model.query.rendered.config.max_read_amplification
    read = receipt.receipt.rows_read or 0
    moved = receipt.rows_in + (receipt.receipt.rows_written or 0)
    if limit and read >= strategy_cost.FEW and read > limit * max(moved, 1):
        raise EngineError(
            f"SR532 {receipt.table} read {read:,} rows for {moved:,} changed or written rows, "
            f"{read / max(moved, 1):.1f} for each, but its contract sets max_read_amplification: {limit:g}. "
            f"`sqlrun explain {model.name}` shows what it reads",
            model=model.name,
        )


def _write(
    context: TickContext,
    table: TablePlan,
    base: int,
    relations: tuple[Relation, ...],
    statement: Statement,
    moment: Moment,
) -> Write:
    app_id = context.plan.app_id(context.workspace.project.name, table.path)
    number = context.plan.number
    return Write(
        table.spec,
        base,
        number,
        app_id,
        relations,
        statement,
        context.metadata(),
        may_commit=context.pinned.result,
        parameters=moment.parameters,
    )


def _facts(context: TickContext, stage: Stage, table: TablePlan) -> tuple[Tick, dict[str, tuple[int, ...]]]:
    """Return what the stage sees of the tick: the inputs that changed since it read them, and their commits."""
    state = table.state
    moment = Moment(context.plan.as_of, state.as_of if state else None)
    if state is None:
        earlier = _earlier(stage, table)
        return Tick(moment, frozenset(stage.inputs), fresh=True, earlier=earlier), {}
    commits = {}
    for name in stage.inputs:
        now = context.states[name]
        commits[name] = context.commits(name, state.inputs[name][1], now.version)
    changed = frozenset(name for name, versions in commits.items() if versions)
    return Tick(moment, changed, fresh=False), commits


def _earlier(stage: Stage, table: TablePlan) -> Earlier | None:
    """Return the table that a new history takes over its versions from; None if there is none.

    Raises: EngineError (SR557) if that table's versions have another key.
    """
    if stage.history is None or table.earlier is None:
        return None
    names = {name for name, _ in table.earlier.columns}
    if not names >= set(VERSION_COLUMNS):
        return None  # it wasn't a history
    lacks = [key for key in stage.key if key not in names]
    if lacks:
        raise EngineError(
            f"SR557 the history {stage.name} has the key {', '.join(stage.key)}, but its published table has no column "
            f"{lacks[0]}, so its versions can't be taken over. Restore the key, or begin a history under another name",
            model=stage.model,
        )
    columns = tuple(StoredColumn(name, kind) for name, kind in table.earlier.columns)
    # Old rows of a ledger don't have the setting.
    setting = table.earlier.content or stage.history.hard_deletes
    return Earlier(columns, setting == NEW_RECORD and IS_DELETED in names)


def relation(
    context: TickContext,
    stage: Stage,
    name: str,
    row_set: RowSet | Literal["earlier"],
    base: int,
    commits: Mapping[str, tuple[int, ...]],
) -> Relation:
    """Return a name of the statement bound to a table at a pinned version, or to its changes since the last read."""
    table = context.plan.tables[name]
    label = f"{name}__{row_set}"
    if row_set == "earlier":
        assert table.earlier is not None
        columns = tuple(StoredColumn(*column) for column in table.earlier.columns)
        path = f"{context.warehouse}/{table.earlier.path}"
        return Relation(label, path, columns, "new", version=table.earlier.version)
    if name == stage.name:
        return Relation(label, table.spec.path, table.spec.columns, "old", version=base)
    state = context.plan.tables[stage.name].state
    if table.is_source:
        return _of_source(context, state, name, row_set, is_changed=bool(commits.get(name)))
    if row_set == "changes":
        return Relation(label, table.spec.path, table.public, row_set, commits=commits.get(name, ()), where=table.where)
    version = context.states[name].version
    if row_set == "old" and state is not None:
        version = state.inputs[name][1]
    return Relation(label, table.spec.path, table.public, row_set, version=version, where=table.where)


def _of_source(
    context: TickContext, state: TableState | None, name: str, row_set: RowSet, *, is_changed: bool
) -> Relation:
    """Return a name bound to a table that others write; `state` is that of the stage's table."""
    table, version = context.plan.tables[name], context.states[name].version
    label = f"{name}__{row_set}"
    since = state.inputs[name][1] if state is not None else version
    if row_set == "changes":
        return Relation(label, table.spec.path, table.public, "difference", version=version, since=since)
    # Files of an earlier version with the same rows may be gone.
    read = since if row_set == "old" and is_changed else version
    return Relation(label, table.spec.path, table.public, "snapshot", version=read)


def _whole(context: TickContext, model: Compiled, dialect: Dialect) -> str:
    """Return the analyst's query, for a table whose query no rule maintains."""
    queries = {m.name: m.query for m in context.workspace.models}
    return query_of_any_tick(queries, model.name, context.workspace.views, dialect)


def load_seed(context: TickContext, name: str) -> StageReceipt:
    """Write a seed's rows into its table if they differ from the stored ones."""
    table = context.plan.tables[name]
    seed = context.workspace.seed(name)
    assert seed is not None
    content = fingerprint.of_content(seed)
    if table.state is not None and table.state.content == content:
        context.finish(name, table.state)
        return StageReceipt(name, "seed", "", 0, table.state.version, Receipt(0.0))
    app_id = context.plan.app_id(context.workspace.project.name, table.path)
    statement = Load(typed_rows(seed))
    context.assert_lock_held()
    write = Write(table.spec, context.bases[name], context.plan.number, app_id, (), statement, context.metadata())
    written = context.engine.write(write)
    others.require_none(name, table.spec.path, write.base, written.version, context.workspace.project.name)
    context.finish(name, state_after(table, written.version, context.plan.as_of, {}, content))
    commits = context.commits(name, table.state.version, written.version) if table.state else ()
    rows = changed_rows.of_seed(context, name, commits) if commits else len(seed.rows)
    return StageReceipt(name, "seed", "", rows, written.version, written.receipt)
