"""`make fuzz`: random examples from random seeds for as long as one likes; each failure is written as a case."""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from tests.fuzz import writing
from tests.fuzz.running import Failed, Statistics, check, made, play, search
from tests.fuzz.variants import VARIANTS

FOUND = Path(__file__).parent.parent / "cases" / "found"
EXAMPLES = 100


def careful(case, statistics: Statistics) -> None:
    """Ask the evaluator after each step, and bring the same changes in one other way."""
    memory = made(case, statistics)
    if memory is None:
        return
    plain = play(case, memory, statistics, evaluated=True)
    name, vary = list(VARIANTS.items())[statistics.examples % len(VARIANTS)]
    other = made(vary(case), Statistics())
    assert other is not None
    assert play(vary(case), other, statistics, evaluated=False) == plain, name


SETTINGS = {"plain": (check, 4), "careful": (careful, 4), "long scripts": (check, 12)}


def main() -> int:
    """Search until the time is over; 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, help="begin with this seed; the next rounds take the next ones")
    options = parser.parse_args()
    first = options.seed if options.seed is not None else random.SystemRandom().randrange(10**9)
    end, statistics, found = time.monotonic() + 60 * options.minutes, Statistics(), 0
    for number in range(first, first + 10**9):
        if time.monotonic() > end:
            break
        name, (checked, most) = list(SETTINGS.items())[number % len(SETTINGS)]
        mine = Statistics()
        try:
            search(number, EXAMPLES, checked, mine, most)
        except Failed as failed:
            found += 1
            path = writing.write(failed.case, f"seed {number}, {name}\n{failed.error}", FOUND)
            print(f"seed {number}, {name}: {str(failed.error).splitlines()[0][:200]}\n  written to {path}")
        statistics.add(mine)
        print(f"seed {number}, {name}: {statistics.examples} examples so far, {found} found", flush=True)
    print(statistics.text())
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
