"""One tick: recover, land, pin, maintain, check, publish. Shell: the engine, the ledger."""

from __future__ import annotations

import graphlib
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import datetime

from sqlrun import fingerprint
from sqlrun.check import blocks, check
from sqlrun.engines.protocol import Engine
from sqlrun.errors import EngineError, UsageError
from sqlrun.events import CheckResult, Listener, NodeResult, Started, TickResult
from sqlrun.incremental.compile import Compiled
from sqlrun.land import land
from sqlrun.ledger import Ledger
from sqlrun.maintain import Progress, load_seed, maintain
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
    states = dict(published.tables) if published else {}
    progress = Progress(space, engine, reader or engine, plan, states)
    recover(engine, plan)
    nodes = _Nodes(tell, len(plan.seeds) + len(plan.models))
    for name in plan.seeds:
        nodes.run(f"seed {name}", lambda name=name: _seed(progress, name))  # type: ignore[misc]
    for model in plan.models:
        if model.source is not None:
            nodes.run(f"landing {model.name}", lambda m=model: _landing(progress, m, request))  # type: ignore[misc]
    if not nodes.failed:
        ledger.pin(number, request.as_of, progress.states, request.clock(), request.holder)
        _maintain_all(progress, nodes, request.threads)
    if not nodes.failed:
        ledger.publish(number, request.as_of, progress.states, request.clock(), request.holder)
    seconds = time.perf_counter() - started
    return TickResult(number, request.as_of, not nodes.failed, seconds, tuple(nodes.done), tuple(nodes.checks))


def recover(engine: Engine, plan: TickPlan) -> None:
    """Make every table what the published tick says, and make the tables that are missing.

    A table ahead of its published version was written by a tick that never was. Landing tables stay as they are:
    a stream neither reads nor writes its rows again.
    """
    landings = {m.name for m in plan.models if m.source is not None}
    for name, table in plan.tables.items():
        head = engine.head(table.spec.path)
        if head is None:
            if table.state is not None:
                raise EngineError(f"{name} was published at {table.path}, but there is no table", model=name)
            engine.create(table.spec)
        elif name not in landings and head > (table.state.version if table.state else 0):
            engine.restore(table.spec.path, table.state.version if table.state else 0)


class _Nodes:
    """Counts, tells and collects the steps of a tick."""

    def __init__(self, tell: Listener, total: int) -> None:
        self.tell, self.total = tell, total
        self.done: list[NodeResult] = []
        self.checks: list[CheckResult] = []
        self.failed: set[str] = set()
        self._next = 0

    def count(self) -> int:
        """Number the next step."""
        self._next += 1
        return self._next

    def start(self, what: str) -> int:
        """Number the next step and tell that it begins."""
        index = self.count()
        self.tell(Started(index, self.total, what))
        return index

    def run(self, what: str, work: Callable[[], Outcome]) -> None:
        """Carry out a step here and now."""
        index = self.start(what)
        self.finish(index, what, guarded(work))

    def finish(self, index: int, what: str, outcome: Outcome) -> None:
        kind = outcome.node.kind or what.split()[0]
        name = what.split()[-1]
        node = replace(outcome.node, index=index, total=self.total, name=name, kind=kind)
        self.done.append(node)
        self.tell(node)
        for result in outcome.checks:
            self.checks.append(result)
            self.tell(result)
        if node.status == "error" or blocks(outcome.checks):
            self.failed.add(node.name)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A step's result and its checks."""

    node: NodeResult
    checks: tuple[CheckResult, ...] = ()


def guarded(work: Callable[[], Outcome]) -> Outcome:
    """Turn a failure of the engine into the step's result."""
    started = time.perf_counter()
    try:
        return work()
    except EngineError as error:
        seconds = time.perf_counter() - started
        return Outcome(NodeResult(0, 0, error.model, "", "error", seconds, message=str(error)))


def _seed(progress: Progress, name: str) -> Outcome:
    seed = progress.space.seed(name)
    assert seed is not None
    receipt = load_seed(progress, name, fingerprint.of_content(seed))
    status = "success" if receipt.rows_changed else "no-op"
    seconds = receipt.receipt.seconds
    return Outcome(NodeResult(0, 0, name, "seed", status, seconds, receipt.rows_changed, stages=(receipt,)))  # type: ignore[arg-type]


def _landing(progress: Progress, model: Compiled, request: Request) -> Outcome:
    started = time.perf_counter()
    receipt = land(progress, model, request.warehouse, request.clock())
    return _checked(progress, model, "landing", (receipt,), started)


def _model(progress: Progress, model: Compiled) -> Outcome:
    started = time.perf_counter()
    receipts = maintain(progress, model)
    return _checked(progress, model, model.own.strategy, receipts, started)


def _checked(progress: Progress, model: Compiled, kind: str, receipts: tuple, started: float) -> Outcome:  # type: ignore[type-arg]
    rows, quarantined, results = check(progress, model)
    receipts = (*receipts[:-1], replace(receipts[-1], rows_changed=rows))
    status = "success" if rows or quarantined or any(r.receipt.commits for r in receipts) else "no-op"
    seconds = time.perf_counter() - started
    node = NodeResult(0, 0, model.name, kind, status, seconds, rows, quarantined, stages=receipts)  # type: ignore[arg-type]
    return Outcome(node, results)


def _maintain_all(progress: Progress, nodes: _Nodes, threads: int) -> None:
    """Maintain models in graph order, independent ones at once; below a failed one all are skipped."""
    models = {m.name: m for m in progress.plan.models if m.source is None}
    order = graphlib.TopologicalSorter({name: _parents(m, models) for name, m in models.items()})
    order.prepare()
    running: dict[Future[Outcome], tuple[int, str]] = {}
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        while order.is_active():
            for name in sorted(order.get_ready(), key=list(models).index):
                if nodes.failed & _above(name, models):
                    skipped = NodeResult(0, 0, name, models[name].own.strategy, "skipped", 0.0)
                    nodes.finish(nodes.count(), name, Outcome(skipped))
                    nodes.failed.add(name)
                    order.done(name)
                    continue
                index = nodes.start(f"{models[name].own.strategy} model {name}")
                work = pool.submit(guarded, lambda m=models[name]: _model(progress, m))  # type: ignore[misc]
                running[work] = (index, f"{models[name].own.strategy} model {name}")
            if not running:
                continue
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                index, what = running.pop(future)
                nodes.finish(index, what, future.result())
                order.done(what.split()[-1])


def _parents(model: Compiled, models: dict[str, Compiled]) -> set[str]:
    owners = {s.name: m.name for m in models.values() for s in m.stages}
    found = {owners[table] for s in model.stages for table in s.inputs if table in owners}
    return found - {model.name}


def _above(name: str, models: dict[str, Compiled]) -> set[str]:
    """Name the direct inputs of a model."""
    return {table for s in models[name].stages for table in s.inputs}
