"""Cost of a tick: `python -m benchmarks.tick --small`, `--sizes 1m,10m`, `--idle`. See docs/benchmarks.md."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import tables, truth, world
from benchmarks.costs import Cost, TickCost
from benchmarks.worker import Outcome, Run, carry_out

CONTENDERS = ("sqlrun", "expert", "by_hand", "recompute")


@dataclass(slots=True)
class Result:
    """One contender on one size, over the measured ticks."""

    world: world.World
    outcome: Outcome
    wrong: int | None
    warm_up: int

    @property
    def name(self) -> str:
        """Return the name of the contender and its engine."""
        return (
            f"{self.outcome.contender} ({self.outcome.engine})"
            if self.outcome.contender == "sqlrun"
            else self.outcome.contender
        )

    @property
    def warm(self) -> list[TickCost]:
        """Return the measured ticks, without the warm-up."""
        return self.outcome.ticks[self.warm_up :]

    @property
    def seconds(self) -> float:
        """Return the median seconds of a tick."""
        return statistics.median(tick.seconds for tick in self.warm)

    @property
    def cpu(self) -> float:
        """Return the median CPU seconds of a tick."""
        return statistics.median(tick.cpu for tick in self.warm)

    @property
    def total(self) -> Cost:
        """Return the medians of the whole tick's figures."""
        return median([tick.total for tick in self.warm])

    @property
    def tables(self) -> dict[str, Cost]:
        """Return the medians of each table's figures."""
        names = dict.fromkeys(name for tick in self.warm for name in tick.tables)
        return {name: median([tick.tables.get(name, Cost()) for tick in self.warm]) for name in names}

    @property
    def steps(self) -> dict[str, float]:
        """Return the median seconds of each step, checks included."""
        names = dict.fromkeys(name for tick in self.warm for name in tick.steps)
        return {name: statistics.median(tick.steps.get(name, 0.0) for tick in self.warm) for name in names}


def median(costs: list[Cost]) -> Cost:
    """Return the median of each known figure."""
    found = Cost()
    for name in Cost.__slots__:
        known = [getattr(cost, name) for cost in costs if getattr(cost, name) is not None]
        setattr(found, name, statistics.median(known) if known else None)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; return 1 if a contender is wrong."""
    args = _parser().parse_args(arguments)
    if args.idle:
        from benchmarks import idle

        with folder_of(args.keep) as root:
            return idle.main(root, args.engine, args.repeat)
    results: list[Result] = []
    with folder_of(args.keep) as root:
        for name, settings, orders, new in _sizes(args):
            tables.say(f"{name}: writing {orders:,} orders of history and {args.warm + args.ticks} ticks of {new:,}")
            made = world.make(root / name, name, settings, orders, new, args.warm + args.ticks)
            tables.say(
                f"{name}: {made.history_lines:,} events over {made.days:.1f} days, "
                f"{settings.orders_per_day:,.0f} orders a day; "
                f"ticks of {', '.join(f'{t.lines:,}' for t in made.ticks)} events"
            )
            for result in _contenders(args, root / name, made):
                results.append(result)
                tables.print_result(result)
            tables.print_contenders([r for r in results if r.world is made])
    tables.print_sizes(results)
    if args.json:
        Path(args.json).write_text(json.dumps([_plain(result) for result in results], indent=1))
    return 1 if any(result.wrong for result in results) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tick", description=__doc__)
    parser.add_argument("--sizes", default="", help="orders of history, like 1m,5m,10m")
    parser.add_argument("--small", action="store_true", help="20,000 orders of history and 500 new ones")
    parser.add_argument("--new", default="20000", help="new orders a tick, with --sizes")
    parser.add_argument("--engine", choices=("duckdb", "spark", "both"), default="both", help="sqlrun's engine")
    parser.add_argument("--contenders", default="sqlrun", help=f"some of {','.join(CONTENDERS)}; the others need Spark")
    parser.add_argument("--ticks", type=int, default=3, help="measured ticks")
    parser.add_argument("--warm", type=int, default=3, help="ticks before the measured ones")
    parser.add_argument("--memory", default="6g", help="each contender's Spark driver memory")
    parser.add_argument("--slices", type=int, default=0, help="ticks that load the history; 0: one for each 2 m orders")
    parser.add_argument("--keep", help="folder to keep order files and preloaded tables in, for another run")
    parser.add_argument("--no-check", action="store_true", help="don't compare the marts with the oracle")
    parser.add_argument("--json", help="file for all figures")
    parser.add_argument("--idle", action="store_true", help="a fresh process with nothing new to do, instead")
    parser.add_argument("--repeat", type=int, default=5, help="with --idle: how often")
    return parser


def _sizes(args: argparse.Namespace) -> Iterator[tuple[str, Any, int, int]]:
    if args.small or not args.sizes:
        yield "small", world.SMALL, 20_000, 500
    for text in filter(None, args.sizes.split(",")):
        yield text.strip(), world.LARGE, world.size_of(text), world.size_of(args.new)


def _contenders(args: argparse.Namespace, folder: Path, made: world.World) -> Iterator[Result]:
    """Run one contender after the other, never two in parallel."""
    asked = [name.strip() for name in args.contenders.split(",") if name.strip()]
    engines = ("duckdb", "spark") if args.engine == "both" else (args.engine,)
    todo = [("sqlrun", engine) for engine in engines if "sqlrun" in asked]
    todo += [(name, "spark") for name in CONTENDERS[1:] if name in asked]
    slices = args.slices or max(1, -(-made.orders // 2_000_000))
    right = None
    for contender, engine in todo:
        tables.say(f"{made.name}: {contender} on {engine}")
        # These two start with sqlrun's tables on Spark.
        base = str(folder / "sqlrun-spark") if contender in ("by_hand", "recompute") else ""
        if base and not (Path(base) / "preloaded" / "done").exists():
            raise SystemExit(
                f"{contender} begins with sqlrun's tables on Spark: add sqlrun, with --engine spark or both"
            )
        run = Run(contender, engine, str(folder / f"{contender}-{engine}"), made, args.memory, base, slices)
        outcome = carry_out(run)
        wrong = None
        if not args.no_check:
            files = [*made.history, *(tick.file for tick in made.ticks)]
            right = right or truth.truth(files, made.ticks[-1].as_of)
            wrong = truth.wrong(outcome.mart, right)
        yield Result(made, outcome, wrong, args.warm)


@contextmanager
def folder_of(keep: str | None) -> Iterator[Path]:
    """Yield the folder to keep, or a temporary one."""
    if keep:
        Path(keep).mkdir(parents=True, exist_ok=True)
        yield Path(keep).resolve()
        return
    with tempfile.TemporaryDirectory(prefix="sqlrun-benchmark-") as folder:
        yield Path(folder)


def _plain(result: Result) -> dict[str, Any]:
    return {
        "size": result.world.name,
        "orders": result.world.orders,
        "new": result.world.new,
        "days": round(result.world.days, 1),
        "contender": result.outcome.contender,
        "engine": result.outcome.engine,
        "preload_seconds": round(result.outcome.preload, 1),
        "seconds": round(result.seconds, 3),
        "cpu_seconds": round(result.cpu, 3),
        "rows_wrong": result.wrong,
        "total": asdict(result.total),
        "tables": {name: asdict(cost) for name, cost in result.tables.items()},
        "ticks": [
            {"as_of": t.as_of, "seconds": t.seconds, "cpu_seconds": t.cpu, "total": asdict(t.total)}
            for t in result.outcome.ticks
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
