"""The cost of checks: `python -m benchmarks.checks --sizes 1m,10m`. See docs/benchmarks.md.

It runs the reference project's ticks, each followed by its checks. Usually these run in parallel with the maintenance;
apart they can be measured. Then it runs the same rules over whole tables, as after a table's replacement: with Great
Expectations on Spark, and with one hand-written DuckDB query for each table. Every way has its own process, and they
run one after the other.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import tables, world
from benchmarks.checks_by_hand import QUERIES
from benchmarks.costs import cpu_seconds
from benchmarks.tick import folder_of
from benchmarks.worker import Run, carry_out

LIMIT = 0.20


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one size: (seconds, CPU seconds) of a tick without checks, of its checks, and over whole tables."""

    made: world.World
    tick: tuple[float, float]
    checks: tuple[float, float]
    others: dict[str, tuple[float, float, int]]

    @property
    def whole(self) -> float:
        """Return the CPU seconds of a tick with its checks."""
        return self.tick[1] + self.checks[1]

    @property
    def share(self) -> float:
        """Return the checks' share of the tick's CPU time."""
        return self.checks[1] / self.whole


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; return 1 if the checks exceed their share at any size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checks", description=__doc__)
    parser.add_argument("--sizes", default="1m,10m", help="orders of history")
    parser.add_argument("--new", default="20000", help="new orders a tick")
    parser.add_argument("--ticks", type=int, default=5, help="measured ticks")
    parser.add_argument("--warm", type=int, default=3, help="ticks before the measured ones")
    parser.add_argument("--memory", default="6g", help="Spark's driver memory")
    parser.add_argument("--no-spark", action="store_true", help="leave Great Expectations on Spark out")
    parser.add_argument("--keep", help="folder to keep order files and tables in, for another run")
    args = parser.parse_args(arguments)
    found = []
    with folder_of(args.keep) as root:
        for size in args.sizes.split(","):
            found.append(_measured(root / size, size, args))
            _print(found[-1])
    if len(found) > 1:
        first, last = found[0], found[-1]
        print(
            f"\n  all checks of a tick, {last.made.name} : {first.made.name}: x{last.checks[1] / first.checks[1]:.2f}"
        )
    return 1 if any(figures.share > LIMIT for figures in found) else 0


def _measured(folder: Path, size: str, args: argparse.Namespace) -> Figures:
    orders, new, ticks = world.size_of(size), world.size_of(args.new), args.warm + args.ticks
    tables.say(f"{size}: writing {orders:,} orders of history and {ticks} ticks of {new:,}")
    made = world.make(folder, size, world.LARGE, orders, new, ticks)
    slices = max(1, -(-orders // 2_000_000))
    tables.say(f"{size}: sqlrun")
    work = folder / "checks_apart-duckdb"
    outcome = carry_out(Run("checks_apart", "duckdb", str(work), made, args.memory, "", slices))
    warm = outcome.ticks[args.warm :]
    tick = (statistics.median(t.seconds for t in warm), statistics.median(t.cpu for t in warm))
    checks = (statistics.median(t.checks[0] for t in warm), statistics.median(t.checks[1] for t in warm))
    ways: list[tuple[str, Callable[[str, str], tuple[float, float, int]]]] = [("one query a table by hand", _by_hand)]
    ways += [] if args.no_spark else [("Great Expectations on Spark", _great_expectations)]
    others = {}
    for name, way in ways:
        tables.say(f"{size}: {name}, over whole tables")
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            others[name] = pool.submit(way, str(work / "work"), args.memory).result()
    return Figures(made, tick, checks, others)


def _print(figures: Figures) -> None:
    head = ("what is checked", "s", "cpu s", "of the tick's cpu s", "rules broken")
    rows = [
        ("a tick without checks", *(f"{n:.2f}" for n in figures.tick), f"{figures.tick[1] / figures.whole:.2f}", "")
    ]
    rows.append(("its checks, of what changed", *(f"{n:.2f}" for n in figures.checks), f"{figures.share:.2f}", "0"))
    for name, (wall, cpu, broken) in figures.others.items():
        rows.append((f"whole tables: {name}", f"{wall:.2f}", f"{cpu:.2f}", f"{cpu / figures.whole:.2f}", str(broken)))
    made = figures.made
    tables.show(
        f"{made.name}: {made.orders:,} orders of history, {made.new:,} new a tick, medians of warm ticks", head, rows
    )


def _published(work: str) -> tuple[Any, Any]:
    """Return the project and its last published tick."""
    from sqlrun.pipeline import prepare
    from sqlrun.publish.ledger import Ledger

    prepared = prepare(Path(work))
    published = Ledger(str(Path(work, "warehouse")), prepared.project.name).read().published
    assert published is not None
    return prepared.workspace, published


def _by_hand(work: str, _: str) -> tuple[float, float, int]:
    """Count violations of each rule by one query for each table, in DuckDB; the time includes opening the files."""
    from sqlrun.publish.reader import query, relation

    _, published = _published(work)
    moment = f"timestamp '{published.as_of:%Y-%m-%d %H:%M:%S}'"
    started, busy, broken = time.perf_counter(), cpu_seconds(), 0
    for name, text in QUERIES.items():
        bound = relation(str(Path(work, "warehouse")), name, published.tables[name])
        row = query(text.replace("$as_of", moment), [bound]).to_pylist()[0]
        # Rules that allow a share of violations are left out.
        broken += sum(
            1 for rule, count in row.items() if count and rule not in ("dated_in_the_future", "dear", "nameless")
        )
    return time.perf_counter() - started, cpu_seconds() - busy, broken


def _great_expectations(work: str, memory: str) -> tuple[float, float, int]:
    """Validate contracts and suites with Great Expectations' Spark engine, without the time of session and imports."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    from benchmarks.expert import session
    from sqlrun.check.check import expectations_of

    workspace, published = _published(work)
    spark = session(memory)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    source = context.data_sources.add_spark("tables")
    spark.range(1).count()
    started, busy, broken = time.perf_counter(), cpu_seconds(), 0
    for model in workspace.tables:
        state = published.tables.get(model.name)
        declared = [e for e in expectations_of(workspace, model) if e.on_fail != "quarantine"]
        if state is None or not declared:
            continue
        path = str(Path(work, "warehouse", state.path))
        frame = spark.read.format("delta").option("versionAsOf", state.version).load(path)
        frame = (frame.where(state.where) if state.where else frame).select(*(name for name, _ in state.columns))
        suite = gx.ExpectationSuite(
            name=model.name,
            expectations=[{"type": e.type, "kwargs": _plain(e.kwargs, published.as_of)} for e in declared],
        )
        asset = source.add_dataframe_asset(model.name)
        batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
        result = batch.validate(suite)
        assert len(result.results) == len(declared)
        broken += sum(1 for one in result.results if not one.success)
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - busy
    spark.stop()
    return seconds, cpu, broken


def _plain(kwargs: Any, as_of: datetime) -> dict[str, Any]:
    """Return the arguments in Great Expectations' form, with the tick's time filled in."""
    return {key: f"{as_of:%Y-%m-%d %H:%M:%S}" if isinstance(value, dict) else value for key, value in kwargs.items()}


if __name__ == "__main__":
    raise SystemExit(main())
