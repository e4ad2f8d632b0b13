"""Play hostile values through many projects: `make values N=100`."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import traceback
from pathlib import Path

from sqlrun.engines.factory import engine_of
from sqlrun.project import Profile
from tests.values import playing, pool


def main() -> int:
    """Return 1 where a project went wrong; its folder stays."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--projects", type=int, default=20)
    parser.add_argument("--ticks", type=int, default=6)
    parser.add_argument("--lines", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", default="duckdb")
    wanted = parser.parse_args()
    failed = 0
    for seed in range(wanted.seed, wanted.seed + wanted.projects):
        folder = Path(tempfile.mkdtemp(prefix=f"values-{seed}-"))
        try:
            _play(folder, seed, wanted.ticks, wanted.lines, wanted.engine)
        except Exception:
            failed += 1
            traceback.print_exc()
            print(f"seed {seed} failed; its project is {folder}", flush=True)
            continue
        print(f"seed {seed}: {wanted.ticks} ticks are right", flush=True)
    print(f"{wanted.projects - failed} of {wanted.projects} projects are right")
    return 1 if failed else 0


def _play(folder: Path, seed: int, ticks: int, lines: int, engine: str) -> None:
    profile = Profile(name=engine, engine=engine, warehouse=str(folder / "warehouse"))
    play = playing.play(folder, seed, engine=engine_of(profile))
    if random.Random(seed).random() < 0.5:
        play.times = (*pool.TIMES, *pool.ODD_TIMES)
    for number in range(1, ticks + 1):
        play.tick(lines)
        play.require_true()
        if number % 3 == 0:
            play.maintain()
            play.require_true()
    play.require_shown()
    play.site.engine.close()


if __name__ == "__main__":
    sys.exit(main())
