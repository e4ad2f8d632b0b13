"""The suite's backfill history, and facts on the machine. Shell: files, /proc."""

from __future__ import annotations

import json
import os
import platform
from datetime import timedelta
from pathlib import Path

from benchmarks import world
from sqlrun.runtime.clock import MINUTES_PER_DAY
from sqlrun.simulate.orders import start_for
from sqlrun.simulate.orders_folder import OrdersFolder
from sqlrun.simulate.settings import from_minute, to_minute
from sqlrun.simulate.simulate import write_history


def backfill(root: Path, orders: int, name: str) -> world.World:
    """Write a history of the latest million orders, and one tick with all earlier orders."""
    folder = root / name
    made = world.make(folder, name, world.LARGE, 1_000_000, 20_000, 1)
    end = made.as_of - timedelta(days=made.days)
    begin = from_minute(start_for(world.LARGE, to_minute(end), orders) // world.STEP * world.STEP)
    note = folder / "backfill.json"
    wanted = {"begin": begin.isoformat(), "end": end.isoformat()}
    known = json.loads(note.read_text()) if note.is_file() else {}
    if {key: known.get(key) for key in wanted} != wanted:
        step = MINUTES_PER_DAY
        found = write_history(OrdersFolder(folder / "backfill"), world.LARGE, begin, end, step=step, history_step=step)
        known = {**wanted, "lines": sum(file.lines for file in found)}
        note.write_text(json.dumps(known))
    files = tuple(str(path) for path in sorted((folder / "backfill").glob("*.jsonl")))
    as_of = made.as_of + timedelta(minutes=world.STEP)
    tick = world.Tick(files[0], as_of, known["lines"], files[1:])
    return world.World(name, 1_000_000, orders, made.days, made.history, made.history_lines, made.as_of, (tick,))


def machine() -> str:
    """Return a description of the machine."""
    model = platform.processor() or platform.machine()
    memory = ""
    if Path("/proc/cpuinfo").is_file():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), model)
        total = int(Path("/proc/meminfo").read_text().split()[1])
        memory = f", {total / (1 << 20):.0f} GiB"
    return f"{os.cpu_count()} cores ({model}){memory}, {platform.system()}, Python {platform.python_version()}"
