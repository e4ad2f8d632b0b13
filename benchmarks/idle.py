"""A build without changes, compared with an empty PySpark + Delta session that reads a table. Shell: processes."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import tables, world
from benchmarks.ours import ROOT, make_project

LIMIT = 1.5
READ = """
import sys
from pathlib import Path
from benchmarks.expert import session
spark = session("4g")
print(len(spark.read.format("delta").load(sys.argv[1]).collect()), "rows")
spark.stop()
"""


def main(root: Path, engine: str, repeat: int) -> int:
    """Measure each requested engine; return 1 if a ratio is over the limit."""
    made = world.make(root / "idle", "idle", world.SMALL, 20_000, 500, 1)
    profiles = {"duckdb": ["duckdb"], "spark": ["local"], "both": ["duckdb", "local"]}[engine]
    commands = {}
    mart = ""
    for profile in profiles:
        work = root / "idle" / profile
        shutil.rmtree(work, ignore_errors=True)
        (work / "data" / "orders").mkdir(parents=True)
        make_project(work)
        for file in made.history:
            world.arrive(file, work / "data" / "orders")
        as_of = f"{made.as_of:%Y-%m-%dT%H:%M}"
        command = [sys.executable, "-m", "sqlrun", "build", "--profile", profile, "--as-of", as_of]
        timed(command, work)  # the history
        commands[f"sqlrun build --profile {profile}, nothing new"] = (command, work)
        mart = mart or str(next((work / "warehouse").rglob("restaurant_windows/*/_delta_log")).parent)
    yardstick = "PySpark + Delta, one table read"
    everything = {yardstick: ([sys.executable, "-c", READ, mart], ROOT), **commands}
    seconds: dict[str, list[float]] = {name: [] for name in everything}
    for _ in range(repeat):
        # Alternately, so that other processes' load affects all of them.
        for name, (command, folder) in everything.items():
            seconds[name].append(timed(command, folder))
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    rows = [
        (
            name,
            f"{medians[name]:.2f}",
            f"{min(found):.2f}",
            f"{max(found):.2f}",
            f"{medians[name] / medians[yardstick]:.2f}",
        )
        for name, found in seconds.items()
    ]
    tables.show(f"a fresh process, medians of {repeat} in turns", ("command", "s", "least", "most", "ratio"), rows)
    worst = max(medians[name] / medians[yardstick] for name in commands)
    print(f"  {'ok' if worst < LIMIT else 'TOO SLOW'}: at most {LIMIT} is wanted")
    return int(worst >= LIMIT)


def timed(command: list[str], folder: Path) -> float:
    """Run a command and return its seconds; a failure prints its output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # Without bytecode, each process would compile all modules.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return seconds
