"""A tick's seeds, landings and models, each maintained, checked and told in graph order. Shell: the engine, threads.

A model's checks run beside the maintenance of those below it: they read what is committed, and nothing is published
before all have passed. What is told doesn't depend on which was faster: a model is told after those above it, and as
skipped where one of them failed, whatever it has written itself (the next build takes that back).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any

from sqlrun.check.check import check
from sqlrun.check.measure import measure
from sqlrun.errors import EngineError
from sqlrun.events import CheckResult, Listener, Measure, NodeResult, StageReceipt, Started, Status, blocks
from sqlrun.expectations.relationships import of, target
from sqlrun.incremental.compile import Compiled
from sqlrun.land.drift_query import judged, refuses
from sqlrun.land.land import land
from sqlrun.maintain import changed_rows
from sqlrun.maintain.changed_rows import Reasons
from sqlrun.maintain.checksums import Checksum, add_to_states
from sqlrun.maintain.maintain import load_seed, maintain
from sqlrun.maintain.tick_context import TickContext

# How much further down than the maintenance the kernel ranks checks, and its last rank. Much further down they would
# starve beside other programs, and what they hold with them.
YIELD, LAST = 5, 19


@dataclass(frozen=True, slots=True)
class Checked:
    """What a model's tick says: how many rows came or changed, what was quarantined and why, checks and measures.

    `added` is what the checksum of the model's own table gains, where it was added up on the way.
    """

    rows: int
    reasons: Reasons
    checks: tuple[CheckResult, ...]
    measures: tuple[Measure, ...] = ()
    added: Checksum | None = None


# Of a step that has no checks, or failed before them.
NOTHING = Checked(0, (), ())


@dataclass(frozen=True, slots=True)
class _Maintained:
    """What came of bringing a table up to date, before its checks. `message`: it failed."""

    kind: str
    seconds: float
    stages: tuple[StageReceipt, ...] = ()
    message: str | None = None


@dataclass(slots=True)
class _Node:
    """One step of the tick, on its way through four states.

        waiting -> maintained -> checked -> reported
           |                                   ^
           +------- skipped: a step above failed

    `maintained` and `checked` are futures, None until their work begins. A step begins once all above it are
    maintained, so the checks of one run beside the maintenance of those below. It is reported last, in graph order:
    once its checks are done and all above it are reported. Only the thread of the tick moves a step on.
    """

    model: Compiled
    kind: str
    above: set[str]
    index: int = 0
    maintained: Future[_Maintained] | None = None
    checked: Future[tuple[NodeResult, Checked]] | None = None
    reported: bool = False
    # Hidden tables' checksums, begun as soon as each is kept.
    sums: dict[str, Future[None]] = field(default_factory=dict)

    @property
    def related(self) -> set[str]:
        """The tables that its relationships lead to."""
        return {target(one) for one in of(self.model.query.rendered.model)} - {self.model.name}


class Steps:
    """Counts, runs, tells and collects the steps of a tick."""

    def __init__(self, context: TickContext, emit: Listener, threads: int) -> None:
        self.context, self.emit = context, emit
        self.total = len(context.plan.seeds) + len(context.plan.models)
        self.done: list[NodeResult] = []
        self.checks: list[CheckResult] = []
        self.measures: list[Measure] = []
        self.failed: set[str] = set()
        self._next = 0
        self._nodes: dict[str, _Node] = {}
        self._workers = ThreadPoolExecutor(max(1, threads), "sqlrun-model")
        # Great Expectations runs one at a time; a second thread fetches the next rows meanwhile.
        self._checkers = ThreadPoolExecutor(2, "sqlrun-check", _yield_to_maintenance)

    def __enter__(self) -> Steps:
        """Use the threads."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the threads end; what has not begun is dropped where something was raised."""
        for pool in (self._workers, self._checkers):
            pool.shutdown(wait=True, cancel_futures=kind is not None)

    def load(self, name: str) -> None:
        """Load a seed here and now; it has no checks."""
        index = self._start(f"seed {name}")
        kept = _guarded("seed", lambda: (self._loaded(name),))
        rows = sum(stage.rows_changed for stage in kept.stages)
        self._finish(_result(kept, name, index, self.total, rows), NOTHING)

    def _loaded(self, name: str) -> StageReceipt:
        receipt = load_seed(self.context, name)
        add_to_states(self.context, (name,))
        return receipt

    def land(self, model: Compiled, at: datetime) -> None:
        """Land a source's new files here and now, and check beside it what has landed before.

        What lands last is checked beside the models: until they begin, the tick waits for its pin.
        """
        self._check_landed()
        node = _Node(model, "landing", set(), self._start(f"landing {model.name}"))
        self._nodes[model.name] = node
        node.maintained = Future()
        node.maintained.set_result(_guarded("landing", lambda: (land(self.context, model, at),)))
        self._settle()

    def _check_landed(self) -> None:
        for node in self._nodes.values():
            if node.checked is None and not node.related:
                self._check(node)

    def add_models(self) -> None:
        """Take in all models, to be maintained in graph order, independent ones at once."""
        models = [m for m in self.context.plan.models if m.source is None]
        owners = {s.name: m.name for m in (*models, *(n.model for n in self._nodes.values())) for s in m.stages}
        for model in models:
            inputs = {table for s in model.stages for table in s.inputs}
            above = {owners.get(table, table) for table in inputs} - {model.name}
            self._nodes[model.name] = _Node(model, model.own.strategy, above)

    def run_all(self) -> None:
        """Run what can run, until every step has been told."""
        while True:
            self._advance()
            begun: list[Future[Any]] = []
            for node in self._nodes.values():
                begun += [future for future in (node.maintained, node.checked) if future is not None]
            waiting = [future for future in begun if not future.done()]
            if not waiting and all(node.reported for node in self._nodes.values()):
                return
            if waiting:
                wait(waiting, return_when=FIRST_COMPLETED)

    def begin(self) -> None:
        """Have those models maintained of which all above are, and that aren't yet."""
        for node in self._nodes.values():
            if node.maintained is None and not node.reported and self._may_begin(node):
                node.index = self._count()
                node.maintained = self._workers.submit(self._maintain, node)

    def _maintain(self, node: _Node) -> _Maintained:
        """Report that a model starts, now that a thread is free for it, and maintain it."""
        self.emit(Started(node.index, self.total, f"{node.kind} model {node.model.name}"))
        return _guarded(node.kind, partial(maintain, self.context, node.model, partial(self._sum, node)))

    def _advance(self) -> None:
        self.begin()
        for node in self._nodes.values():
            if (
                node.maintained is not None
                and node.maintained.done()
                and node.checked is None
                and self._may_be_checked(node)
            ):
                self._check(node)
        self._settle()

    def _may_begin(self, node: _Node) -> bool:
        """Return whether everything above is maintained; below what is known to have failed nothing begins."""
        if node.above & self.failed:
            return False
        above = [self._nodes[name].maintained for name in node.above if name in self._nodes]
        return all(kept is not None and kept.done() and kept.result().message is None for kept in above)

    def _may_be_checked(self, node: _Node) -> bool:
        """Return whether the tables that relationships lead to are kept, or never will be; none waits for this one."""
        others = [self._nodes[name] for name in node.related if name in self._nodes]
        return all(other.reported or (other.maintained is not None and other.maintained.done()) for other in others)

    def _sum(self, node: _Node, table: str) -> None:
        """Start adding up a hidden table; its model's checks, which wait for it, come later in the same queue."""
        node.sums[table] = self._checkers.submit(add_to_states, self.context, (table,))

    def _check(self, node: _Node) -> None:
        """Start the checks of a step that is done; one that failed has nothing to check."""
        assert node.maintained is not None
        kept = node.maintained.result()
        if kept.message is None:
            node.checked = self._checkers.submit(_checked, self.context, node.model, kept, node.sums)
        else:
            node.checked = Future()
            node.checked.set_result((_result(kept, node.model.name), NOTHING))

    def _settle(self) -> None:
        """Emit the steps whose checks are done and above which all is emitted."""
        moved = True
        while moved:
            moved = False
            for node in self._nodes.values():
                if node.reported or any(not self._nodes[name].reported for name in node.above if name in self._nodes):
                    continue
                skipped = bool(node.above & self.failed)
                if skipped and node.maintained is None:
                    node.index = self._count()
                elif node.checked is None or not node.checked.done():
                    continue
                node.reported = moved = True
                result, said = _skipped(node) if skipped or node.checked is None else node.checked.result()
                self._finish(replace(result, index=node.index, total=self.total), said)

    def _count(self) -> int:
        self._next += 1
        return self._next

    def _start(self, what: str) -> int:
        """Number the next step and tell that it begins."""
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


def _yield_to_maintenance() -> None:
    """Have the threads that others wait for go first: a check is waited for by the tick's end alone."""
    if sys.platform == "linux":  # elsewhere a thread has no priority of its own
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(LAST, os.getpriority(os.PRIO_PROCESS, thread) + YIELD))


def _guarded(kind: str, work: Callable[[], tuple[StageReceipt, ...]]) -> _Maintained:
    """Turn a failure of the engine into the step's result."""
    started = time.perf_counter()
    try:
        stages = work()
    except EngineError as error:
        return _Maintained(kind, time.perf_counter() - started, message=str(error))
    return _Maintained(kind, time.perf_counter() - started, stages)


def examined(context: TickContext, model: Compiled) -> Checked:
    """Read what a step has changed, check it, and measure it."""
    change = changed_rows.of_tick(context, model)
    results = check(context, model, change)
    measured, told = measure(context, model, change)
    return Checked(change.count, change.aside, (*results, *told), measured, change.added)


def _checked(
    context: TickContext, model: Compiled, kept: _Maintained, sums: Mapping[str, Future[None]]
) -> tuple[NodeResult, Checked]:
    """Check what a step has changed; `sums` are checksums that were begun before."""
    started = time.perf_counter()
    try:
        said = examined(context, model)
        note = "\n".join(text for text in (kept.stages[-1].note, _drifted(context, model)) if text)
        rest = tuple(stage.name for stage in model.stages if stage.name not in sums)
        add_to_states(context, rest, {model.name: said.added})
        for begun in sums.values():
            begun.result()
    except EngineError as error:
        failed = replace(kept, message=str(error))
        return _result(failed, model.name), NOTHING
    kept = replace(kept, stages=(*kept.stages[:-1], replace(kept.stages[-1], rows_changed=said.rows, note=note)))
    kept = replace(kept, seconds=kept.seconds + time.perf_counter() - started)
    return _result(kept, model.name, rows=said.rows, reasons=said.reasons), said


def _drifted(context: TickContext, model: Compiled) -> str:
    """Return how what has landed differs from what its source declares; a source that refuses that was asked before."""
    return "" if model.source is None or refuses(model.source) else judged(context, model.name, model.source)


def _result(
    kept: _Maintained, name: str, index: int = 0, total: int = 0, rows: int = 0, reasons: Reasons = ()
) -> NodeResult:
    if kept.message is not None:
        return NodeResult(index, total, name, kept.kind, "error", kept.seconds, message=kept.message)
    quarantined = sum(count for _, count in reasons)
    changed = rows or quarantined or any(stage.receipt.commits for stage in kept.stages)
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
    )


def _skipped(node: _Node) -> tuple[NodeResult, Checked]:
    return NodeResult(0, 0, node.model.name, node.kind, "skipped", 0.0), NOTHING
