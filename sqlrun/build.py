"""One tick: recover, land, pin, maintain, check, publish. Shell: the engine, the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlrun.engines.protocol import Engine
from sqlrun.errors import EngineError, UsageError
from sqlrun.events import Listener, TickResult
from sqlrun.ledger import Ledger
from sqlrun.maintain import Progress
from sqlrun.nodes import Nodes
from sqlrun.plan import TickPlan, Workspace, tick_plan


@dataclass(frozen=True, slots=True)
class Request:
    """What a tick is asked to do; `clock` tells the time of the day, for records alone."""

    warehouse: str
    as_of: datetime
    selected: tuple[str, ...]
    refresh: bool
    threads: int
    holder: str
    clock: Callable[[], datetime]


def tick(
    space: Workspace,
    engine: Engine,
    ledger: Ledger,
    request: Request,
    tell: Listener,
    reader: Engine | None = None,
) -> TickResult:
    """Advance the selected models to `as_of`. Readers see all of it or nothing.

    `reader` fetches the rows to check, where another engine does that cheaper.
    Raises: UsageError if `as_of` lies before the published tick; EngineError, LockedError as they come.
    """
    started = time.perf_counter()
    history = ledger.read()
    published = history.published
    if published is not None and request.as_of < published.as_of:
        raise UsageError(
            f"as_of {request.as_of:%Y-%m-%d %H:%M} lies before the published tick {published.tick} "
            f"({published.as_of:%Y-%m-%d %H:%M}); time only goes forward"
        )
    number = history.last_tick + 1
    plan = tick_plan(space, request.warehouse, published, number, request.as_of, request.selected, request.refresh)
    # What the project no longer has isn't kept up to date, so it must not be published as if it were.
    states = {name: state for name, state in published.tables.items() if space.has(name)} if published else {}
    progress = Progress(space, engine, reader or engine, plan, states, request.warehouse)
    recover(engine, plan)
    with Nodes(progress, tell, request.threads) as nodes:
        for name in plan.seeds:
            nodes.load(name)
        for model in plan.models:
            if model.source is not None:
                nodes.land(model, request.warehouse, request.clock())
        if not nodes.failed:
            ledger.pin(number, request.as_of, progress.states, request.clock(), request.holder)
            nodes.add_models()
        nodes.run_all()
    if not nodes.failed:
        ledger.publish(number, request.as_of, progress.states, request.clock(), request.holder)
    seconds = time.perf_counter() - started
    return TickResult(number, request.as_of, not nodes.failed, seconds, tuple(nodes.done), tuple(nodes.checks))


def recover(engine: Engine, plan: TickPlan) -> None:
    """Make every table what the published tick says, and make the tables that are missing.

    A table ahead of its published version was written by a tick that never was. Landing tables stay as they are:
    a stream neither reads nor writes its rows again.
    """
    for name, table in plan.tables.items():
        head = engine.head(table.spec.path)
        if head is None:
            if table.state is not None:
                raise EngineError(f"{name} was published at {table.path}, but there is no table", model=name)
            engine.create(table.spec)
        elif not table.lands and head > (table.state.version if table.state else 0):
            engine.restore(table.spec.path, table.state.version if table.state else 0)
