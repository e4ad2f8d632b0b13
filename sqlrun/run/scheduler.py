"""A tick's seeds, landings and models: maintained, checked and reported in graph order. Shell: the engine, threads.

A model's checks run in parallel with the maintenance of later models: they read committed data, and nothing is
published before all pass. The order of reports doesn't depend on speed: a model is reported after its inputs, and as
skipped if one of them failed, even if it has been written itself (the next build rolls that back).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from heapq import heappop, heappush
from queue import SimpleQueue
from types import TracebackType
from typing import TypeVar

from sqlrun.check.check import check
from sqlrun.check.measure import measure
from sqlrun.errors import DataError, EngineError
from sqlrun.events import CheckResult, Listener, Measure, NodeResult, StageReceipt, Started, Status, blocks
from sqlrun.expectations.relationships import of, target
from sqlrun.graph import failing_expressions
from sqlrun.incremental.compile import Compiled
from sqlrun.land import snapshot_gaps
from sqlrun.land.drift_query import judged, refuses
from sqlrun.land.land import land
from sqlrun.maintain import changed_rows
from sqlrun.maintain.changed_rows import Reasons
from sqlrun.maintain.checksums import Checksum, add_to_states
from sqlrun.maintain.maintain import load_seed, maintain
from sqlrun.maintain.tick_context import TickContext
from sqlrun.runtime.priority import lower_thread

# How much lower the priority of checks is than the priority of maintenance: models wait for maintenance, but only the
# tick's end waits for a check. With a larger distance, other programs would starve the checks, and block the threads
# that wait for their locks.
YIELD = 5


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Checked:
    """Results of a model's checks in a tick: numbers and reasons of rows, checks and measures.

    `added` is the change of the checksum of the model's own table, if it was computed along the way.
    """

    rows: int
    reasons: Reasons
    checks: tuple[CheckResult, ...]
    measures: tuple[Measure, ...] = ()
    added: Checksum | None = None


# Result of a step that has no checks, or failed before them.
NOTHING = Checked(0, (), ())


@dataclass(frozen=True, slots=True)
class _Maintained:
    """Result of maintaining a table, before its checks; `message` is the error if that failed."""

    kind: str
    seconds: float
    stages: tuple[StageReceipt, ...] = ()
    message: str | None = None


@dataclass(slots=True)
class _Node:
    """One step of the tick, on its way through four states.

        waiting -> maintained -> checked -> reported
           |                                   ^
           +------- skipped: an input failed, or any step with `fail_fast`

    `maintained` and `checked` are futures, None until their work starts. A step starts when all of its inputs are
    maintained, so its checks run in parallel with the maintenance of later steps. It is reported last, in graph order,
    when its checks are done and all of its inputs are reported. Only the tick's thread changes a step's state.
    """

    model: Compiled
    kind: str
    above: set[str]
    position: int  # in graph order
    related: frozenset[str]  # the tables that its relationships refer to
    index: int = 0
    maintained: Future[_Maintained] | None = None
    checked: Future[tuple[NodeResult, Checked]] | None = None
    reported: bool = False
    # Numbers of inputs among this tick's steps.
    unmaintained: int = 0
    unreported: int = 0
    # Checksums of hidden tables, started as soon as a table is maintained.
    sums: dict[str, Future[None]] = field(default_factory=dict)

    @property
    def kept(self) -> _Maintained | None:
        """Return the result of its maintenance; None until it has ended."""
        return self.maintained.result() if self.maintained is not None and self.maintained.done() else None


class Steps:
    """Scheduler of a tick's steps: it numbers, runs and reports them, and collects their results.

    Its own work grows with the number of steps and inputs: what ends is an event, which touches only the steps below.
    """

    def __init__(self, context: TickContext, emit: Listener, threads: int, *, fail_fast: bool = False) -> None:
        self.context, self.emit = context, emit
        self.total = len(context.plan.seeds) + len(context.plan.models)
        self.done: list[NodeResult] = []
        self.checks: list[CheckResult] = []
        self.measures: list[Measure] = []
        self.failed: set[str] = set()
        self._fail_fast = fail_fast
        self._next = 0
        self._nodes: dict[str, _Node] = {}
        self._below: defaultdict[str, list[_Node]] = defaultdict(list)
        # Work that has ended; the tick's thread notes it. `_awaited` counts what is still to come.
        self._events: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._awaited = self._running = 0
        self._unchecked: dict[str, _Node] = {}  # maintained, without checks yet
        # Heaps: steps that may begin, the longest chain first; steps in graph order that may have become reportable.
        self._ready: list[tuple[int, int, str]] = []
        self._reportable: list[tuple[int, str]] = []
        self._unreported = 0
        self._is_broken = self._skips_rest = False
        # Number of models in the longest chain that begins with each.
        self._chains: dict[str, int] = {}
        self._threads = max(1, threads)
        self._workers = ThreadPoolExecutor(self._threads, "sqlrun-model")
        # Great Expectations runs one at a time; a second thread fetches the next rows meanwhile.
        self._checkers = ThreadPoolExecutor(2, "sqlrun-check", lower_thread, (YIELD,))

    def __enter__(self) -> Steps:
        """Return itself; the threads are started already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the threads; after an exception, cancel work that hasn't started."""
        for pool in (self._workers, self._checkers):
            pool.shutdown(wait=True, cancel_futures=kind is not None)

    def load(self, name: str) -> None:
        """Load a seed in this thread; it has no checks."""
        index = self._start(f"seed {name}")
        kept = _guarded("seed", lambda: (self._loaded(name),))
        rows = sum(stage.rows_changed for stage in kept.stages)
        self._finish(_result(kept, name, index, self.total, rows), NOTHING)

    def _loaded(self, name: str) -> StageReceipt:
        receipt = load_seed(self.context, name)
        add_to_states(self.context, (name,))
        return receipt

    def land(self, model: Compiled, at: datetime) -> None:
        """Land a source's new lines in this thread, in parallel with the checks of earlier landings.

        The last landing is checked in parallel with the models: until they start, the tick waits for its pin.
        """
        self._note_events()
        for earlier in [one for one in self._unchecked.values() if not one.related]:
            self._check(earlier)
        node = self._add(model, "landing", set())
        if not self._is_over:
            node.index = self._start(f"landing {model.name}")
            node.maintained = Future()
            explain = partial(_explained, self.context, model)
            node.maintained.set_result(_guarded("landing", lambda: (land(self.context, model, at),), explain))
            self._note_maintained(node)
        self._settle()

    def add_models(self) -> None:
        """Schedule all models, in graph order; independent ones run in parallel."""
        models = [m for m in self.context.plan.models if m.source is None]
        owners = {s.name: m.name for m in (*models, *(n.model for n in self._nodes.values())) for s in m.stages}
        nodes = []
        for model in models:
            inputs = {table for s in model.stages for table in s.inputs}
            nodes.append(self._add(model, model.own.strategy, {owners.get(t, t) for t in inputs} - {model.name}))
        self._chains = dict.fromkeys(self._nodes, 1)
        # In graph order all models below one come after it.
        for name, node in reversed(self._nodes.items()):
            for one in node.above & self._chains.keys():
                self._chains[one] = max(self._chains[one], self._chains[name] + 1)
        for node in nodes:
            self._queue_if_ready(node)

    def _add(self, model: Compiled, kind: str, above: set[str]) -> _Node:
        related = frozenset(target(one) for one in of(model.query.rendered.model)) - {model.name}
        node = _Node(model, kind, above, len(self._nodes), related)
        self._nodes[model.name] = node
        self._unreported += 1
        for name in above & self._nodes.keys():
            other = self._nodes[name]
            self._below[name].append(node)
            node.unmaintained += other.kept is None or other.kept.message is not None
            node.unreported += not other.reported
        self._queue_for_report(node)
        return node

    def run_all(self) -> None:
        """Run all steps until each is reported."""
        self._advance()
        while self._unreported or self._awaited:
            assert self._awaited, "a step waits for nothing"
            self._events.get()()
            self._advance()

    def begin(self) -> None:
        """Start the maintenance of models whose inputs are maintained, one for each free thread.

        First those with the longest chain of models below: the tick waits for it. The others can run beside the chain's
        end, which leaves processors idle.
        """
        while self._ready and self._running < self._threads and not self._is_over:
            node = self._nodes[heappop(self._ready)[-1]]
            if not node.reported and not node.above & self.failed:
                node.index = self._count()
                self._running += 1
                work = partial(self._maintain, node)
                node.maintained = self._submit(self._workers, node, self._note_maintained, work)

    def _submit(
        self, pool: ThreadPoolExecutor, node: _Node, note: Callable[[_Node], None], work: Callable[[], T]
    ) -> Future[T]:
        """Start work of a step in another thread; this thread notes its end."""
        self._awaited += 1
        future = pool.submit(work)
        future.add_done_callback(lambda _: self._events.put(partial(self._note, node, note)))
        return future

    def _note(self, node: _Node, note: Callable[[_Node], None]) -> None:
        self._awaited -= 1
        note(node)

    def _note_events(self) -> None:
        """Note the work that has ended, before its steps are checked, reported or followed by others."""
        while not self._events.empty():
            self._events.get()()

    def _note_maintained(self, node: _Node) -> None:
        kept = node.kept
        assert kept is not None
        self._unchecked[node.model.name] = node
        self._running -= node.kind != "landing"
        if kept.message is not None:
            self._is_broken = True
            return
        for below in self._below[node.model.name]:
            below.unmaintained -= 1
            self._queue_if_ready(below)

    def _queue_if_ready(self, node: _Node) -> None:
        if not node.unmaintained:
            heappush(self._ready, (-self._chains[node.model.name], node.position, node.model.name))

    def _queue_for_report(self, node: _Node) -> None:
        heappush(self._reportable, (node.position, node.model.name))

    def _maintain(self, node: _Node) -> _Maintained:
        """Report that a model starts, now that a thread is free for it, and maintain it."""
        self.emit(Started(node.index, self.total, f"{node.kind} model {node.model.name}"))
        work = partial(maintain, self.context, node.model, partial(self._sum, node))
        return _guarded(node.kind, work, partial(_explained, self.context, node.model))

    def _advance(self) -> None:
        """Report what is done, so that `fail_fast` knows a failure before the next step begins."""
        self._note_events()
        for node in [one for one in self._unchecked.values() if self._may_be_checked(one)]:
            self._check(node)
        self._settle()
        self.begin()

    @property
    def _is_over(self) -> bool:
        """Return whether no further step begins, because one has failed, even if it isn't reported yet."""
        return self._fail_fast and (self._is_broken or bool(self.failed))

    def _may_be_checked(self, node: _Node) -> bool:
        """Return whether the tables of relationships are maintained or never will be; no step waits for itself."""
        others = [self._nodes[name] for name in node.related if name in self._nodes]
        return all(other.reported or other.kept is not None for other in others)

    def _sum(self, node: _Node, table: str) -> None:
        """Start the checksum of a hidden table; its model's checks, which wait for it, come later in the same queue."""
        node.sums[table] = self._checkers.submit(add_to_states, self.context, (table,))

    def _check(self, node: _Node) -> None:
        """Start the checks of a maintained step; a failed one has nothing to check."""
        kept = self._unchecked.pop(node.model.name).kept
        assert kept is not None
        if kept.message is None:
            work = partial(_checked, self.context, node.model, kept, node.sums)
            node.checked = self._submit(self._checkers, node, self._queue_for_report, work)
        else:
            node.checked = Future()
            node.checked.set_result((_result(kept, node.model.name), NOTHING))
            self._queue_for_report(node)

    def _settle(self) -> None:
        """Report the steps whose checks are done and whose inputs are all reported."""
        while True:
            if self._is_over and not self._skips_rest:
                self._skips_rest = True
                for node in self._nodes.values():
                    self._queue_for_report(node)
            if not self._reportable:
                return
            self._report(self._nodes[heappop(self._reportable)[-1]])

    def _report(self, node: _Node) -> None:
        """Report a step if its inputs are reported, and its checks are done or never will be."""
        if node.reported or node.unreported:
            return
        skipped = bool(node.above & self.failed) or (self._is_over and node.maintained is None)
        if skipped and node.maintained is None:
            node.index = node.index or self._count()
        elif node.checked is None or not node.checked.done():
            return
        node.reported = True
        self._unreported -= 1
        result, said = _skipped(node) if skipped or node.checked is None else node.checked.result()
        self._finish(replace(result, index=node.index, total=self.total), said)
        for below in self._below[node.model.name]:
            below.unreported -= 1
            self._queue_for_report(below)

    def _count(self) -> int:
        self._next += 1
        return self._next

    def _start(self, what: str) -> int:
        """Number the next step and report its start."""
        index = self._count()
        self.emit(Started(index, self.total, what))
        return index

    def _finish(self, node: NodeResult, said: Checked) -> None:
        self.done.append(node)
        self.emit(replace(node, follow=len(said.checks)))
        self.measures.extend(said.measures)
        for result in said.checks:
            self.checks.append(result)
            self.emit(result)
        if node.status in ("error", "skipped") or blocks(said.checks):
            self.failed.add(node.name)


def _guarded(
    kind: str, work: Callable[[], tuple[StageReceipt, ...]], explain: Callable[[EngineError], str] = str
) -> _Maintained:
    """Return the result of a step, with an engine's error as its message."""
    started = time.perf_counter()
    try:
        stages = work()
    except EngineError as error:
        return _Maintained(kind, time.perf_counter() - started, message=explain(error))
    return _Maintained(kind, time.perf_counter() - started, stages)


def _explained(context: TickContext, model: Compiled, error: EngineError) -> str:
    """Return an error's text; that of an expression which fails on a row shows its place in the analyst's file."""
    match error:
        case DataError():
            models = context.workspace.models
            views = {one.name: one.query for one in models if one.is_view}
            every = {one.name: one.query for one in models}
            private = failing_expressions.is_private(model.query, every, context.workspace.project)
            return str(failing_expressions.problem(error, model.query, views, private=private))
        case _:
            return str(error)


def examined(context: TickContext, model: Compiled) -> Checked:
    """Read the rows that a step changed, check them, and compute measures."""
    change = changed_rows.of_tick(context, model)
    results = check(context, model, change)
    measured, anomalies = measure(context, model, change)
    return Checked(change.count, change.reasons, (*results, *anomalies), measured, change.added)


def _checked(
    context: TickContext, model: Compiled, kept: _Maintained, sums: Mapping[str, Future[None]]
) -> tuple[NodeResult, Checked]:
    """Check the rows that a step changed; `sums` are checksums that were started before."""
    started = time.perf_counter()
    try:
        said = examined(context, model)
        notes = (kept.stages[-1].note, _drifted(context, model), _gap(context, model))
        note = "\n".join(filter(None, notes))
        rest = tuple(stage.name for stage in model.stages if stage.name not in sums)
        add_to_states(context, rest, {model.name: said.added})
        for begun in sums.values():
            begun.result()
    except EngineError as error:
        failed = replace(kept, message=_explained(context, model, error))
        return _result(failed, model.name), NOTHING
    seconds = time.perf_counter() - started
    own = replace(kept.stages[-1], rows_changed=said.rows, note=note, check_seconds=seconds)
    kept = replace(kept, seconds=kept.seconds + seconds, stages=(*kept.stages[:-1], own))
    return _result(kept, model.name, rows=said.rows, reasons=said.reasons), said


def _drifted(context: TickContext, model: Compiled) -> str:
    """Return how landed rows differ from their source's declaration; "" if the source rejects those anyway."""
    return "" if model.source is None or refuses(model.source) else judged(context, model.own, model.source)


def _gap(context: TickContext, model: Compiled) -> str:
    """Return which changes of a database never come; "" for none."""
    if model.source is None or model.source.changes is None:
        return ""
    return snapshot_gaps.note(context, model.own, model.source)


def _result(
    kept: _Maintained, name: str, index: int = 0, total: int = 0, rows: int = 0, reasons: Reasons = ()
) -> NodeResult:
    if kept.message is not None:
        return NodeResult(index, total, name, kept.kind, "error", kept.seconds, message=kept.message)
    quarantined = sum(count for _, count in reasons)
    counted = [each for stage in kept.stages for each in stage.counts.dropped.items() if each[1]]
    dropped = tuple(sorted(counted, key=lambda each: (-each[1], each[0])))
    changed = rows or quarantined or dropped or any(stage.receipt.commits for stage in kept.stages)
    status: Status = "success" if changed else "no-op"
    return NodeResult(
        index=index,
        total=total,
        name=name,
        kind=kept.kind,
        status=status,
        seconds=kept.seconds,
        rows=rows,
        quarantined=quarantined,
        stages=kept.stages,
        reasons=reasons,
        dropped=dropped,
    )


def _skipped(node: _Node) -> tuple[NodeResult, Checked]:
    return NodeResult(0, 0, node.model.name, node.kind, "skipped", 0.0), NOTHING
