"""`make crash`: builds killed at random moments, then a reader that hammers; each kill is followed by one build.

Stops at the first warehouse that isn't right, and keeps its folder.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.crash import on_kafka
from tests.crash.hammer import hammer
from tests.crash.lives import BUILD, Lives, build
from tests.crash.project import World
from tests.support.projects import ROOT
from tests.support.servers import azure, gcs, object_stores

KEPT = ROOT / "target" / "crash"
STORES = {"s3": object_stores, "azure": azure, "gcs": gcs}


class Builds:
    """Builds of one engine: forked ones on DuckDB, else each with a JVM of its own, which dies with its Python.

    With `engine: auto` each table's engine is drawn.
    """

    def __init__(self, lives: Lives | None, world: World, seed: int) -> None:
        self.lives, self.world, self.seed = lives, world, seed
        self.number = 0

    def run(self, killed_after: float | None = None, point: str = "") -> tuple[int, float, str]:
        """Build, or begin to; give the exit code, the seconds and what was said."""
        if point and self.lives:
            life = build(self.lives, self.world.root, self.world.as_of, point)
            assert life.code is not None
            return life.code, 0.0, life.said
        started = time.perf_counter()
        code, said = (self._forked if self.lives else self._started)(killed_after)
        return code, time.perf_counter() - started, said

    def _forked(self, killed_after: float | None) -> tuple[int, str]:
        assert self.lives is not None
        pid = self.lives.begin(self.world.root, *BUILD, self.world.as_of)
        if killed_after is not None:
            time.sleep(killed_after)
            os.kill(pid, signal.SIGKILL)
        life = self.lives.wait(pid)
        assert life.code is not None
        return life.code, life.said

    def _started(self, killed_after: float | None) -> tuple[int, str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        log = self.world.root / "said.txt"
        self.number += 1
        drawn = self.world.engine == "auto"
        command = ["tests.crash.alternating", f"{self.seed} {self.number}", ""] if drawn else ["sqlrun"]
        with log.open("w") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", *command, *BUILD, self.world.as_of], cwd=self.world.root, env=environment,
                start_new_session=True, stdout=out, stderr=subprocess.STDOUT,
            )  # fmt: skip
            try:
                code = process.wait(timeout=killed_after)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                code = process.wait()
        return code, log.read_text()


def kill(builds: Builds, count: int, chance: random.Random) -> int:
    """Kill so many builds, each at a random moment of the time that a whole one takes; give how many died."""
    world, times, died = builds.world, list[float](), 0
    for _ in range(2):
        world.arrive()
        code, seconds, said = builds.run()
        assert code == 0, said
        times.append(seconds)
    for number in range(1, count + 1):
        world.arrive()
        before = world.published()
        after = chance.uniform(0, 1.1 * statistics.median(times[-9:]))
        code, _, said = builds.run(after)
        assert code in (0, -signal.SIGKILL), said
        died += code != 0
        outcome = f"killed after {after:.2f} s" if code else "done before it was killed"
        between = world.published()
        if between != before:
            world.check()
        code, seconds, said = builds.run()
        assert code == 0, said
        assert world.published() > before
        world.check()
        times.append(seconds)
        print(f"{number} of {count}: {outcome}, tick {before} -> {between} -> {world.published()}, {world.lines} lines")
    return died


@contextmanager
def kept_if_wrong(folder: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        print(f"Not right. The warehouse is kept in {folder}", file=sys.stderr)
        raise
    shutil.rmtree(folder)


def main() -> None:
    """Read the command line and run."""
    options = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--ticks", type=int, default=200, help="how many ticks the reader hammers")
    options.add_argument("--engine", choices=("duckdb", "spark", "auto"), default="duckdb")
    options.add_argument("--source", choices=("files", "kafka"), default="files")
    options.add_argument("--store", choices=("disk", *STORES), default="disk", help="on a server that this starts")
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    if chosen.store in STORES:
        os.environ["STORE"] = chosen.store
        STORES[chosen.store].shared()
    shutil.rmtree(KEPT, ignore_errors=True)
    with Lives() as lives:
        if chosen.source == "kafka":
            with kept_if_wrong(KEPT / "kafka"):
                on_kafka.run(KEPT / "kafka", lives, chosen.engine, chosen.kills, chosen.seed)
            return
        with kept_if_wrong(KEPT / "killed"):
            world = World(KEPT / "killed", chosen.engine)
            builds = Builds(lives if chosen.engine == "duckdb" else None, world, chosen.seed)
            died = kill(builds, chosen.kills, random.Random(chosen.seed))
        print(f"{chosen.kills} builds on {chosen.engine}, {died} of them killed: every published tick was right.")
        if chosen.ticks:
            with kept_if_wrong(KEPT / "hammered"):
                reader = hammer(lives, World(KEPT / "hammered"), chosen.ticks)
            print(f"{chosen.ticks} ticks under {reader.reads} reads of {len(reader.ticks)} ticks: all of them whole.")


if __name__ == "__main__":
    main()
