"""One contender in its own process: preload, warm-up ticks, measured ticks. Shell: processes, folders."""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import truth
from benchmarks.costs import TickCost
from benchmarks.world import World, arrive


@dataclass(frozen=True, slots=True)
class Run:
    """A process's task. `base` is a contender whose preloaded tables this one starts with."""

    contender: str
    engine: str
    folder: str
    world: World
    memory: str
    base: str = ""
    slices: int = 1


@dataclass(slots=True)
class Outcome:
    """The outcome: warm-up ticks first, then the measured ones."""

    contender: str
    engine: str
    preload: float
    ticks: list[TickCost] = field(default_factory=list)
    mart: truth.Mart = field(default_factory=dict)
    memory: float = 0.0
    error: str = ""


def carry_out(run: Run) -> Outcome:
    """Run a contender in a fresh process and wait for it."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_work, run).result()


def prepared(run: Run) -> Path:
    """Return a work folder with the tables at the history's end, built or copied from an earlier run."""
    folder = Path(run.folder)
    work, preloaded = folder / "work", folder / "preloaded"
    shutil.rmtree(work, ignore_errors=True)
    if not (preloaded / "done").exists():
        _preload(run, work, preloaded)
    else:
        copy(preloaded, work)
    return work


def _work(run: Run) -> Outcome:
    started = time.perf_counter()
    work = prepared(run)
    outcome = Outcome(run.contender, run.engine, time.perf_counter() - started)
    contender = contender_of(run, work)
    try:
        for tick in run.world.ticks:
            arrive(tick.file, work / "data" / "orders")
            outcome.ticks.append(contender.tick(tick.as_of))
        outcome.mart = truth.canonical(contender.mart())
    finally:
        contender.close()
    outcome.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024
    return outcome


def _preload(run: Run, work: Path, preloaded: Path) -> None:
    """Bring a contender to the history's end, and save that state for another run."""
    orders = work / "data" / "orders"
    if run.base:
        copy(Path(run.base) / "preloaded", work)
        shutil.rmtree(orders)
        orders.mkdir()
    else:
        orders.mkdir(parents=True)
        contender = contender_of(run, work)
        try:
            for part, as_of in portions(run.world, run.slices):
                for file in part:
                    arrive(file, orders)
                contender.preload(as_of)
        finally:
            contender.close()
    (work / "done").touch()
    shutil.rmtree(preloaded, ignore_errors=True)
    copy(work, preloaded)


def portions(world: World, slices: int) -> list[tuple[list[str], datetime]]:
    """Split the history into `slices` ticks; only the last one's time matters, the others have the same."""
    files, width = list(world.history), -(-len(world.history) // slices)
    return [(files[first : first + width], world.as_of) for first in range(0, len(files), width)]


def copy(source: Path, target: Path) -> None:
    """Copy a folder; immutable files become links."""
    shutil.copytree(source, target, copy_function=_copy)


def _copy(source: str, target: str) -> str:
    if source.endswith((".parquet", ".jsonl")):
        os.link(source, target)
        return target
    return str(shutil.copy2(source, target))


def contender_of(run: Run, work: Path) -> Any:
    """Start a contender on a folder."""
    if run.contender == "sqlrun":
        from benchmarks.ours import Ours

        return Ours(work, run.engine, run.memory)
    if run.contender == "checks_apart":
        from benchmarks.ours import Ours

        return Ours(work, run.engine, run.memory, apart=True)
    if run.contender == "by_hand":
        from benchmarks.by_hand import ByHand

        return ByHand(work, run.memory)
    if run.contender == "recompute":
        from benchmarks.recompute import Recompute

        return Recompute(work, run.memory)
    if run.contender == "expert":
        from benchmarks.expert import Expert

        return Expert(work, run.memory)
    raise ValueError(run.contender)
