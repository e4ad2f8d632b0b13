"""sqlrun and its rivals on one workload: `python -m benchmarks.bench --sizes 20k,1m`. See docs/benchmarks.md.

Contenders run one after the other, each in its own environment, and write their figures at the end. Earlier figures
stay until the same contender runs at the same size again. `--report` only rewrites the reports.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import bench_report, bench_world, tables, world
from benchmarks.contenders import BY_NAME, CONTENDERS, ROOT, Contender
from benchmarks.figures import Figures, merged, read, written
from benchmarks.running import Asked, carry_out
from benchmarks.world import World

FIGURES = "figures.json"
BACKFILL = ("sqlrun_auto", "sqlrun_duckdb", "sqlrun_spark")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the contenders; write figures and reports after each. Return 1 if one failed or was wrong."""
    args = _parser().parse_args(arguments)
    root = Path(args.folder).resolve()
    root.mkdir(parents=True, exist_ok=True)
    known = known_in(root)
    if args.report or args.paste:
        write_reports(root, known)
        if args.paste:
            page = Path(args.paste)
            page.write_text(bench_report.pasted(page.read_text(), (root / "report.md").read_text()))
        return 0
    chosen = choose(args.contenders, args.without)
    asked = Asked(root, args.ticks, args.warm, args.memory, args.limit, args.keep, discard=args.discard)
    seen: list[Figures] = []
    for made, who, how in _worlds(args, chosen, asked):
        for contender in who:
            tables.say(f"{made.name}: {contender.title}")
            found = carry_out(contender, made, how)
            seen.append(found)
            known = merged(known, found)
            tables.say(f"{made.name}: {summary(found)}")
            write_reports(root, known)
        if not args.keep:
            clean(root / made.name)
    print((root / "report.md").read_text())
    return 0 if all(one.is_right for one in seen) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__)
    parser.add_argument("--sizes", default="20k,1m", help="orders of history, some of 20k,1m,10m,100m; empty: none")
    parser.add_argument("--contenders", default="", help=f"some of {','.join(BY_NAME)}; all otherwise")
    parser.add_argument("--without", default="", help="those to leave out")
    parser.add_argument("--new", default="20000", help="new orders a tick")
    parser.add_argument("--ticks", type=int, default=3, help="measured ticks")
    parser.add_argument("--warm", type=int, default=2, help="ticks of a warm process before the measured ones")
    parser.add_argument("--memory", default="6g", help="Spark's driver memory")
    parser.add_argument("--limit", type=float, default=1800, help="seconds after which a tick has failed")
    parser.add_argument("--backfill", default="", help="orders that come at once on a history of 1m, like 5m")
    parser.add_argument("--folder", default=str(ROOT / "target" / "bench"), help="for environments, files, figures")
    parser.add_argument("--keep", action="store_true", help="keep each contender's tables for another run")
    parser.add_argument(
        "--discard", action="store_true", help="delete files of the history that landed, to save 300 B an order"
    )
    parser.add_argument("--report", action="store_true", help="write the reports from the figures that are there")
    parser.add_argument("--paste", metavar="FILE", help="put the report that is there into a page, at its marks")
    return parser


def choose(wanted: str, unwanted: str) -> list[Contender]:
    """Return the contenders by name, in the suite's order."""
    names = [name.strip() for name in wanted.split(",") if name.strip()] or list(BY_NAME)
    out = [name.strip() for name in unwanted.split(",") if name.strip()]
    for name in (*names, *out):
        if name not in BY_NAME:
            raise SystemExit(f"there is no contender {name}: {', '.join(BY_NAME)}")
    return [contender for contender in CONTENDERS if contender.name in names and contender.name not in out]


def _worlds(
    args: argparse.Namespace, chosen: list[Contender], asked: Asked
) -> list[tuple[World, list[Contender], Asked]]:
    found = []
    for size in filter(None, args.sizes.split(",")):
        orders, new, ticks = world.size_of(size), world.size_of(args.new), 1 + args.warm + args.ticks
        tables.say(f"{size}: {orders:,} orders of history and {ticks} ticks of {new:,}")
        found.append((world.make(asked.root / size, size, world.LARGE, orders, new, ticks), chosen, asked))
    if args.backfill:
        tables.say(f"a backfill of {args.backfill} on 1m")
        made = bench_world.backfill(asked.root, world.size_of(args.backfill), f"1m+{args.backfill}")
        limited = replace(asked, settings=("memory_limit: 2GiB",))
        found.append((made, [one for one in chosen if one.name in BACKFILL], limited))
    return found


def summary(found: Figures) -> str:
    """Return a contender's outcome in one line."""
    if found.error:
        return f"{found.title} FAILED: {found.error.splitlines()[-1]}"
    state = "right" if found.is_right else f"{found.wrong} ROWS WRONG"
    ticks = ", ".join(f"{tick.seconds:.2f}" for tick in found.ticks)
    return f"{found.title}: {ticks} s; {state}"


def known_in(root: Path) -> list[Figures]:
    """Return the figures of earlier runs."""
    file = root / FIGURES
    return [read(plain) for plain in json.loads(file.read_text())] if file.is_file() else []


def write_reports(root: Path, known: list[Figures]) -> None:
    """Write figures and reports, each atomically."""
    about = bench_report.About(bench_world.machine(), {one.name: one.what for one in CONTENDERS})
    order = list(BY_NAME)
    known = sorted(known, key=lambda one: (one.orders, one.new, order.index(one.contender)))
    texts = {
        FIGURES: json.dumps([written(one) for one in known], indent=1),
        "report.md": bench_report.markdown(known, about),
        "report.html": bench_report.html(known, about),
    }
    for name, text in texts.items():
        (root / f"{name}.tmp").write_text(text, encoding="utf-8")
        (root / f"{name}.tmp").replace(root / name)


def clean(folder: Path) -> None:
    """Delete contenders' tables; order files stay for another run."""
    for name in BY_NAME:
        for part in ("work", "loaded"):
            shutil.rmtree(folder / name / part, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
