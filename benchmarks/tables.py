"""The benchmark's figures as aligned text."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from benchmarks.costs import Cost

if TYPE_CHECKING:
    from benchmarks.tick import Result

FIGURES = (
    ("rows read", "rows_read"),
    ("MB read", "bytes_read"),
    ("files read", "files_read"),
    ("rows written", "rows_written"),
    ("MB written", "bytes_written"),
    ("files written", "files_written"),
    ("jobs", "jobs"),
    ("commits", "commits"),
)
LIMIT = 1.25


def say(text: str) -> None:
    """Print progress, apart from the figures."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def show(title: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table: the first column left-aligned, figures right-aligned."""
    print(f"\n{title}")
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  " + "  ".join(cells).rstrip())
    sys.stdout.flush()


def figure(cost: Cost, name: str) -> str:
    """Return one figure as text; `-` if it is unknown."""
    value = getattr(cost, name)
    if value is None:
        return "-"
    return f"{value / 1e6:.1f}" if name.startswith("bytes") else f"{value:,.0f}"


def print_result(result: Result) -> None:
    """Print the cost of one contender's warm tick, table by table."""
    world, outcome = result.world, result.outcome
    head = ("table", *(label for label, _ in FIGURES), "s write", "s with checks")
    rows = []
    for name, cost in result.tables.items():
        cells = [figure(cost, field) for _, field in FIGURES]
        step = result.steps.get(name)
        rows.append((name, *cells, f"{cost.seconds:.2f}", f"{step:.2f}" if step is not None else "-"))
    rows.append(("tick", *(figure(result.total, field) for _, field in FIGURES), f"{result.seconds:.2f}", ""))
    ticks = ", ".join(f"{tick.seconds:.2f}" for tick in result.warm)
    first = outcome.ticks[0].seconds
    show(
        f"{world.name}: {result.name}, {world.orders:,} orders of history ({world.days:.1f} days), {world.new:,} new a "
        f"tick: medians of {len(result.warm)} warm ticks ({ticks} s; the first {first:.2f} s), "
        f"{result.cpu:.2f} s of processor time",
        head,
        rows,
    )
    state = "not compared" if result.wrong is None else "right" if not result.wrong else f"{result.wrong} ROWS WRONG"
    print(f"  mart against the oracle: {state}; preload {outcome.preload:.0f} s, {outcome.memory:.1f} GB (Python)")


def print_contenders(results: list[Result]) -> None:
    """Print the contenders of one size in comparison."""
    if len(results) < 2:
        return
    names = [result.name for result in results]
    head = ("contender", "s a tick", "cpu s", *(f": {name}" for name in names), *(label for label, _ in FIGURES))
    rows = []
    for one in results:
        ratios = [f"{one.seconds / other.seconds:.2f}" for other in results]
        rows.append(
            (
                one.name,
                f"{one.seconds:.2f}",
                f"{one.cpu:.2f}",
                *ratios,
                *(figure(one.total, field) for _, field in FIGURES),
            )
        )
    show(f"{results[0].world.name}: contenders in the same run, ratios of medians", head, rows)


def print_sizes(results: list[Result]) -> None:
    """Print each contender's tick by size, and the ratio of largest to smallest."""
    for name in dict.fromkeys(result.name for result in results):
        found = sorted((r for r in results if r.name == name and r.world.name != "small"), key=lambda r: r.world.orders)
        if len(found) < 2:
            continue
        first, last = found[0], found[-1]
        head = ("figure", *(result.world.name for result in found), f"{last.world.name} : {first.world.name}", "")
        rows = [("seconds", *(f"{r.seconds:.2f}" for r in found), _ratio(last.seconds, first.seconds), "")]
        rows.append(("cpu seconds", *(f"{r.cpu:.2f}" for r in found), _ratio(last.cpu, first.cpu), ""))
        for label, field in FIGURES:
            a, b = getattr(first.total, field), getattr(last.total, field)
            verdict = _verdict(a, b) if field in ("rows_read", "files_read") else ""
            rows.append((label, *(figure(r.total, field) for r in found), _ratio(b, a), verdict))
        show(f"{name}: the same ticks after a longer history", head, rows)
        _tables_by_size(name, found)


def _tables_by_size(name: str, found: list[Result]) -> None:
    names = dict.fromkeys(table for result in found for table in result.tables)
    if not names:
        return
    head = ("table", *(f"{label} {r.world.name}" for label in ("rows", "files") for r in found))
    rows = []
    for table in names:
        costs = [result.tables.get(table, Cost()) for result in found]
        rows.append((table, *(figure(c, field) for field in ("rows_read", "files_read") for c in costs)))
    show(f"{name}: rows and files read by table", head, rows)


def _ratio(value: Any, base: Any) -> str:
    return f"{value / base:.2f}" if value is not None and base else "-"


def _verdict(first: Any, last: Any) -> str:
    if first is None or last is None or not first:
        return ""
    return f"ok (<= {LIMIT})" if last / first <= LIMIT else f"MORE THAN {LIMIT}"
