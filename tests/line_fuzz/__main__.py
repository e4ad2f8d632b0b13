"""`make lines`: judge random lines on an engine and by the strict reader until so many are done; 1 where two differ."""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.line_fuzz import judges
from tests.line_fuzz.mutations import Lines
from tests.line_fuzz.sources import sources

SHOWN = 20


def main() -> int:
    """Judge files of lines, of one source after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.line_fuzz", description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--batch", type=int, default=20_000, help="lines that one statement judges")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    options = parser.parse_args()
    counts, found, begun = judges.Counts(), 0, time.monotonic()
    with judges.judge(options.engine) as judge:
        names = list(sources())
        for number in range(10**9):
            if counts.lines >= options.lines:
                break
            seed, source = options.seed + number, sources()[names[number % len(names)]]
            lines = Lines.of(source, random.Random(seed))
            data = lines.file(min(options.batch, options.lines - counts.lines))
            differ = judges.differences(judges.by_python(source, data), judge(source, data), counts)
            for one in differ[: max(0, SHOWN - found)]:
                print(f"seed {seed}, {source.name}: {one}")
            found += len(differ)
            summary = f"{counts.lines} lines, {counts.landed} landed, {found} differ, {time.monotonic() - begun:.0f} s"
            print(f"{options.engine}, seed {seed}: {summary}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
