"""One tick: examine, recover, land, pin, maintain, check, publish. Shell: the engine, the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from sqlrun.engine_api import Engine
from sqlrun.engines.delta import table_pool
from sqlrun.engines.delta.heads import Heads
from sqlrun.errors import EngineError, UsageError
from sqlrun.events import Listener, Note, TickResult
from sqlrun.land import dead_letters, rule_changes
from sqlrun.maintain import engine_selection, source_versions
from sqlrun.maintain.tick_context import TickContext
from sqlrun.operations import doctor
from sqlrun.plan import diff, environment_sharing, sampling
from sqlrun.plan.plan import NOTHING, tick_plan
from sqlrun.plan.values import SourceTable, TickPlan, Workspace
from sqlrun.project import DEFAULTS, Connection
from sqlrun.publish import current_folders, environments
from sqlrun.publish.catalog_tables import CatalogTables
from sqlrun.publish.environment_paths import OtherEnvironments
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.table_state import Published, TableState
from sqlrun.run.scheduler import Steps
from sqlrun.storage.factory import storage_of


def no_lock_needed() -> None:
    """Accept any caller: no other build can have started."""


def forget(context: TickContext) -> None:
    """Ignore a published tick's context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Parameters of a tick; `clock` returns the current time, for records only.

    `assert_lock_held` runs before each write and raises LockedError if another build has taken over the warehouse.
    `say` gets messages about repairs. A check that takes longer than `check_timeout` seconds is an error.
    `published` gets the context of a published tick.
    """

    warehouse: str
    as_of: datetime
    selected: tuple[str, ...]
    refresh: bool
    threads: int
    holder: str
    clock: Callable[[], datetime]
    accept_lost: bool = False  # land even if files of a source are missing
    assert_lock_held: Callable[[], None] = no_lock_needed
    say: Callable[[str], None] = lambda _: None
    check_timeout: int = DEFAULTS.check_timeout
    published: Callable[[TickContext], None] = forget
    accept_unexplained: bool = False  # publish even if lines of a source are unaccounted for
    connections: Mapping[str, Connection] = field(default_factory=dict)
    fail_fast: bool = False  # begin no further step after one has failed
    defer: bool = False  # in an environment: say from where it reads what it doesn't build
    current_folders: bool | Literal["copies"] = False  # create a folder with a path that stays for each table
    catalog: CatalogTables | None = None  # follows the folders
    own_commits: bool = True  # sqlrun may write the commits of the ledger and of the intake itself (decision 41)


def tick(
    workspace: Workspace,
    engine: Engine,
    ledger: Ledger,
    request: Request,
    emit: Listener,
    reader: Engine | None = None,
) -> TickResult:
    """Advance the selected models to `as_of`. Readers see all of it or nothing.

    `reader` fetches the rows to check, if another engine does that faster.
    Raises: UsageError if `as_of` is before the published tick; EngineError and LockedError from the steps.
    """
    storage = storage_of(request.warehouse)
    before = storage.requests
    try:
        result = _tick(workspace, engine, ledger, request, emit, reader)
    finally:
        # The lock is held until then.
        for text in table_pool.settle():
            request.say(text)
    return replace(result, requests=(storage.requests - before).total() or None)


def _tick(
    workspace: Workspace, engine: Engine, ledger: Ledger, request: Request, emit: Listener, reader: Engine | None
) -> TickResult:
    started = time.perf_counter()
    request.assert_lock_held()
    history = ledger.read(doctor.at_start(ledger, request.clock(), request.say))
    other_environments = environments.other_environments(ledger)
    for whose, newest in (("", history.published), (" of production", other_environments.production)):
        if newest is not None and request.as_of < newest.as_of:
            raise UsageError(
                f"as_of {request.as_of:%Y-%m-%d %H:%M} is earlier than the published tick {newest.tick}{whose} "
                f"({newest.as_of:%Y-%m-%d %H:%M}). Use a later time: ticks only go forward"
            )
    sources = source_versions.read(workspace, request.selected, history.published)
    plan = _plan(workspace, history.published, history.last_tick + 1, request, other_environments, sources)
    heads = doctor.before_tick(ledger, plan, request.clock(), request.say)
    free = max(doctor.free_number(ledger, plan, heads), plan.number)
    rebuild_reasons = rule_changes.broken(workspace, plan, reader or engine, heads) | source_versions.lost(plan)
    if free > plan.number or rebuild_reasons:
        plan = _plan(workspace, history.published, free, request, other_environments, sources, rebuild_reasons)
    number, published = plan.number, plan.published
    for note in _notes(workspace, plan, other_environments if request.defer else None):
        emit(note)
    # A table that the project no longer has isn't maintained, so the tick must not publish it.
    states = {name: state for name, state in published.tables.items() if workspace.has(name)} if published else {}
    states |= {name: table.state for name, table in plan.tables.items() if table.is_source and table.state is not None}
    context = _progress(workspace, engine, reader, plan, states, request)
    engine_selection.prestart_spark(context)
    context.bases = recover(engine, plan, heads, request.assert_lock_held)
    with Steps(context, emit, request.threads, fail_fast=request.fail_fast) as nodes:
        for name in plan.seeds:
            nodes.load(name)
        for model in plan.models:
            if model.source is not None:
                nodes.land(model, request.clock())
        if not nodes.failed:
            nodes.add_models()
            pinned = _pinned(context, nodes, ledger, request)
        nodes.run_all()
    if not nodes.failed:
        request.assert_lock_held()
        dead_letters.begin(context)
        shown, own = Published(number, request.as_of, context.of_warehouse()), request.own_commits
        ledger.publish(number, shown.as_of, shown.tables, request.clock(), request.holder, pinned, own)
        request.published(context)
        current_folders.follow(ledger, shown, request.say, create=request.current_folders)
        if request.catalog is not None:
            request.catalog.follow(ledger, request.say)
    seconds = time.perf_counter() - started
    if not nodes.failed:
        dead_letters.send(context, ledger, request.say)
    return TickResult(
        number, request.as_of, not nodes.failed, seconds, tuple(nodes.done), tuple(nodes.checks), tuple(nodes.measures)
    )


def _notes(workspace: Workspace, plan: TickPlan, deferred_to: OtherEnvironments | None) -> Iterator[Note]:
    """Yield the notes about a tick as a whole; `deferred_to`: the environments that it reads with `--defer`."""
    for text in environment_sharing.messages(plan):
        yield Note(text, is_news=bool(plan.promoted or plan.notes))
    if deferred_to is not None:
        yield from map(Note, environment_sharing.deferred(plan, deferred_to))
    yield from map(Note, sampling.messages(workspace, plan.env))
    if removed := diff.removed(workspace, plan.published):
        what, them = ("a table", "it") if len(removed) == 1 else ("tables", "them")
        names = ", ".join(removed)
        text = f"No longer {what} of the project: {names}. This tick drops {them}; earlier ticks keep {them}."
        yield Note(text, is_news=True)


def _pinned(context: TickContext, nodes: Steps, ledger: Ledger, request: Request) -> int:
    """Pin the versions that a tick reads, while the first models are computed; none of them commits before."""
    request.assert_lock_held()
    number, read = context.plan.number, context.of_warehouse()
    try:
        nodes.begin()
        own = request.own_commits
        pinned = ledger.pin(number, request.as_of, read, request.clock(), request.holder, own)
    except BaseException as error:
        context.pinned.set_exception(error)
        raise
    context.pinned.set_result(pinned)
    return pinned


def _progress(
    workspace: Workspace,
    engine: Engine,
    reader: Engine | None,
    plan: TickPlan,
    states: dict[str, TableState],
    request: Request,
) -> TickContext:
    return TickContext(
        workspace=workspace,
        engine=engine,
        reader=reader or engine,
        plan=plan,
        states=states,
        warehouse=request.warehouse,
        bases={},
        assert_lock_held=request.assert_lock_held,
        accept_lost=request.accept_lost,
        connections=request.connections,
        accept_unexplained=request.accept_unexplained,
        check_timeout=request.check_timeout,
        own_commits=request.own_commits,
    )


def _plan(
    workspace: Workspace,
    published: Published | None,
    number: int,
    request: Request,
    other_environments: OtherEnvironments,
    sources: Mapping[str, SourceTable],
    rebuild_reasons: Mapping[str, str] = NOTHING,
) -> TickPlan:
    return tick_plan(
        workspace,
        request.warehouse,
        published,
        number,
        request.as_of,
        request.selected,
        request.refresh,
        other_environments,
        rebuild_reasons,
        sources,
    )


def recover(engine: Engine, plan: TickPlan, heads: Heads, assert_lock_held: Callable[[], None]) -> dict[str, int]:
    """Restore every table to the published tick and create missing ones; return their versions.

    A table ahead of its published version was written by an unpublished tick. Landing tables stay as they are: a
    stream neither reads nor writes its rows again. Only production restores a shared table.
    """
    bases: dict[str, int] = {}
    for name, table in plan.tables.items():
        if table.shared:
            continue
        assert_lock_held()
        head = heads.of(table.spec.path)
        if head is None:
            if table.state is not None:
                raise EngineError(f"the published table {name} is missing at {table.path}", model=name)
            engine.create(table.spec)
            bases[name] = 0
        elif not table.lands and head > (table.state.version if table.state else 0):
            _restore(engine, name, table.spec.path, table.state.version if table.state else 0, head)
            # A restore is one commit at most; after further commits in between, this tick's write is rejected.
            bases[name] = min(engine.head(table.spec.path) or 0, head + 1)
        else:
            bases[name] = head
    return bases


def _restore(engine: Engine, name: str, path: str, version: int, head: int) -> None:
    """Restore a table to its published version. Raises: EngineError with advice if its files are missing."""
    try:
        engine.restore(path, version, head)
    except EngineError as error:
        advice = doctor.advice(name, lands=False).removeprefix("A published tick needs it. ")
        raise EngineError(
            f"{name} can't be restored to its published version {version}: {error}. If a file is missing, "
            "for example after "
            f"another writer's VACUUM: {advice}",
            model=name,
        ) from error
