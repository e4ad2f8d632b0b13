"""Flame graph of a warm tick's CPU time on Spark: `python -m benchmarks.flame --keep DIR`.

The JDK's Flight Recorder samples Java's threads; the kernel counts the time of compilers and the garbage collector,
thread by thread. Shell: processes, files.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks import tables, world
from benchmarks.ours import Ours
from benchmarks.tick import folder_of
from benchmarks.worker import Run, arrive, prepared

WIDTH, ROW, LEAST = 1400, 17, 0.003
# The kernel's names of the JVM's threads, and their work.
KINDS = (
    (r"C2 CompilerThre", "second compiler"),
    (r"C1 CompilerThre", "first compiler"),
    (r"GC Thread|VM Thread|G1|ParGC|Parallel", "garbage collection, VM"),
    (r"python", "Python"),
)
COLOURS = (
    ("parquet", "#8fbf7f"), ("delta", "#e8954a"), ("streaming", "#c9a0dc"), ("catalyst", "#e0685f"),
    ("janino", "#c03a2b"), ("spark", "#edc25e"), ("hadoop", "#7fb3a0"), ("scala", "#c7c0b0"), ("java", "#b8c4d6"),
)  # fmt: skip
RECORDER = "-XX:StartFlightRecording=settings={settings},maxsize=500m -XX:FlightRecorderOptions=stackdepth=250"
# Frames that only delegate: the graph is easier to read without them.
PASSING = re.compile(r"\$anonfun|lambda|^scala\.(collection|Function|runtime|Option|util)|\.Iterator|AbstractIterator")


@dataclass(slots=True)
class Frame:
    """A frame of the graph, with its weight, callees included."""

    weight: float = 0.0
    below: dict[str, Frame] = field(default_factory=dict)

    def add(self, names: Iterable[str], weight: float) -> None:
        """Add a stack, outermost first."""
        self.weight += weight
        place = self
        for name in names:
            place = place.below.setdefault(name, Frame())
            place.weight += weight


def main(arguments: list[str] | None = None) -> int:
    """Run ticks, record the last ones, write the picture."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flame", description=__doc__)
    parser.add_argument("--size", default="small", help="small, or orders of history like 1m")
    parser.add_argument("--warm", type=int, default=6, help="ticks before those that are recorded")
    parser.add_argument("--ticks", type=int, default=3, help="ticks that are recorded")
    parser.add_argument("--memory", default="6g")
    parser.add_argument("--keep", help="folder with the tables of an earlier run of benchmarks.tick")
    parser.add_argument("--out", default="benchmarks/notes/spark-tick.svg")
    args = parser.parse_args(arguments)
    with folder_of(args.keep) as root:
        settings, orders, new = (
            (world.SMALL, 20_000, 500) if args.size == "small" else (world.LARGE, world.size_of(args.size), 20_000)
        )
        made = world.make(root / args.size, args.size, settings, orders, new, args.warm + args.ticks)
        run = Run("sqlrun", "spark", str(root / args.size / "sqlrun-spark"), made, args.memory)
        graph, seconds = record(run, args.warm, root / "ticks.jfr")
    title = f"A warm tick of {new:,} orders on {orders:,} on Spark: {graph.weight / args.ticks:.1f} processor s"
    Path(args.out).write_text(picture(graph, title, args.ticks), encoding="utf-8")
    tables.say(f"{title}, {seconds / args.ticks:.1f} s by the clock: {args.out}")
    return 0


def record(run: Run, warm: int, file: Path) -> tuple[Frame, float]:
    """Run and record ticks; weigh Java's stacks by the kernel's count for its threads."""
    work = prepared(run)
    # A recorder that starts later makes the JVM compile code again for minutes, so it runs from the start.
    settings = _sampling(file)
    contender = Ours(work, "spark", run.memory, java=RECORDER.format(settings=settings))
    try:
        from pyspark.sql import SparkSession

        jvm = SparkSession.builder.getOrCreate().sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        seconds = 0.0
        before, since = Counter[str](), datetime.now(timezone.utc)
        for number, tick in enumerate(run.world.ticks):
            if number == warm:
                before, since = threads(jvm) + threads(os.getpid()), datetime.now(timezone.utc)
            arrive(tick.file, work / "data" / "orders")
            cost = contender.tick(tick.as_of)
            print(f"  {cost.seconds:6.2f} s {cost.cpu:6.2f} processor s, {cost.total.jobs} jobs", flush=True)
            seconds += cost.seconds if number >= warm else 0.0
        spent = threads(jvm) + threads(os.getpid())
        spent.subtract(before)
        _jcmd(jvm, "JFR.dump", f"filename={file}", f"begin={since:%Y-%m-%dT%H:%M:%S.%fZ}")
    finally:
        contender.close()
    return graph_of(stacks(file), spent), seconds


def _sampling(file: Path) -> Path:
    """Write settings that sample stacks only."""
    settings = file.with_suffix(".jfc")
    settings.write_text(
        '<?xml version="1.0" encoding="UTF-8"?><configuration version="2.0"><event name="jdk.ExecutionSample">'
        '<setting name="enabled">true</setting><setting name="period">10 ms</setting></event></configuration>'
    )
    return settings


def _jcmd(pid: int, *words: str) -> None:
    subprocess.run(["jcmd", str(pid), *words], check=True, capture_output=True)


def threads(pid: int) -> Counter[str]:
    """Return the CPU seconds of a process by the work of its threads."""
    found: Counter[str] = Counter()
    per_second = os.sysconf("SC_CLK_TCK")
    kind_of = "Python" if pid == os.getpid() else ""
    for file in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            name, _, rest = file.read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has ended meanwhile
            continue
        fields = rest.split()
        kind = kind_of or next((kind for pattern, kind in KINDS if re.match(pattern, name)), "Java")
        found[kind] += (int(fields[11]) + int(fields[12])) / per_second  # type: ignore[assignment]
    return found


def stacks(file: Path) -> Counter[tuple[str, ...]]:
    """Return the recorded stacks, outermost frame first, with their number of samples."""
    command = ["jfr", "print", "--json", "--stack-depth", "250", "--events", "jdk.ExecutionSample", str(file)]
    events = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    found: Counter[tuple[str, ...]] = Counter()
    for event in events["recording"]["events"]:
        values = event["values"]
        thread = (values.get("sampledThread") or {}).get("javaName") or "?"
        frames = [_frame(frame) for frame in reversed(values["stackTrace"]["frames"])]
        found[(re.sub(r"[-#:\[( ]*[\d.]+.*", "", thread), *_shortened(frames))] += 1
    return found


def _frame(frame: dict[str, Any]) -> str:
    method = frame["method"]
    return f"{method['type']['name'].replace('/', '.')}.{method['name']}"


def _shortened(frames: Iterable[str]) -> list[str]:
    """Return frames without delegating ones and repetitions."""
    kept: list[str] = []
    for name in frames:
        if PASSING.search(name):
            continue
        short = re.sub(r"\$\$Lambda.*|\$\d+", "", name).replace("org.apache.", "").replace("io.delta.", "delta.")
        if short not in kept[-3:]:
            kept.append(short)
    return kept


def graph_of(seen: Counter[tuple[str, ...]], spent: Counter[str]) -> Frame:
    """Return the graph: Java's CPU time split by samples of each stack, and the other kinds beside it."""
    graph, samples = Frame(), sum(seen.values()) or 1
    for kind, seconds in spent.items():
        if kind != "Java":
            graph.add([kind], seconds)
    for stack, count in seen.items():
        graph.add(["Java", *stack], spent["Java"] * count / samples)
    return graph


def picture(graph: Frame, title: str, ticks: int) -> str:
    """Return the graph as SVG: a box's width is its CPU time, its callees are below it, its tooltip has the name."""
    boxes: list[str] = []
    deepest = _draw(boxes, graph, "tick", 0.0, 0, graph.weight, ticks)
    height = (deepest + 2) * ROW + 30
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="11"><rect width="{WIDTH}" height="{height}" fill="#fff"/>'
        f'<text x="8" y="18" font-size="14">{html.escape(title)}</text>'
    )
    return "\n".join([head, *boxes, "</svg>\n"])


def _draw(boxes: list[str], frame: Frame, name: str, x: float, depth: int, whole: float, ticks: int) -> int:
    wide, deepest = frame.weight / whole * WIDTH, depth
    tooltip = f"{name}: {frame.weight / ticks:.2f} s a tick, {frame.weight / whole:.1%}"
    colour = next((c for word, c in COLOURS if word in name), "#d9d9d9")
    shade = 0.75 + (zlib.crc32(name.encode()) % 25) / 100
    y = 26 + depth * ROW
    shown = ".".join(name.split(".")[-2:])
    fits = int(wide / 6.2)
    label = shown if len(shown) <= fits else shown[: fits - 1] + "…" if fits > 4 else ""
    text = f'<text x="{x + 3:.1f}" y="{y + 12}">{html.escape(label)}</text>' if label else ""
    boxes.append(
        f'<g><title>{html.escape(tooltip)}</title><rect x="{x:.1f}" y="{y}" width="{max(wide - 0.5, 0.3):.1f}" '
        f'height="{ROW - 1}" fill="{colour}" fill-opacity="{shade:.2f}"/>{text}</g>'
    )
    for below, inner in sorted(frame.below.items(), key=lambda item: -item[1].weight):
        if inner.weight >= LEAST * whole:
            deepest = max(deepest, _draw(boxes, inner, below, x, depth + 1, whole, ticks))
            x += inner.weight / whole * WIDTH
    return deepest


if __name__ == "__main__":
    sys.exit(main())
