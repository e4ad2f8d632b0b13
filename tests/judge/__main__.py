"""`make judge N=1000`: random queries judged by Spark's own parser and engine; what differs becomes a case."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fuzz import writing
from tests.judge import alone
from tests.judge.judging import Counts, Judge, examples, shrunk

# Queries over a few rows: Spark is not to compile each.
QUICK = {
    "spark.sql.shuffle.partitions": "1", "spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}  # fmt: skip
FOUND = Path(__file__).parent.parent / "cases" / "found"


def run(session: Any, seed: int, count: int, seconds: float, *, shrink: bool = True, write: bool = True) -> Counts:
    """Judge examples until there are enough, or the time is over."""
    judge, counts, end = Judge(session), Counts(), time.monotonic() + seconds
    for made, steps, batch in examples(seed, count):
        judge.hold(made, steps)
        for example in batch:
            if time.monotonic() > end:
                return counts
            verdict = judge.judge(example)
            counts.add(verdict)
            if verdict.word != "different":
                continue
            small = shrunk(judge, example, verdict.why) if shrink else example
            text = judge.text(small)
            print(f"DIFFERENT\n  {text}\n  {verdict.why[:400]}", flush=True)
            if write:
                print("  written to", writing.write(small.case("found by the judge"), f"{text}\n{verdict.why}", FOUND))
    return counts


@contextmanager
def spark() -> Iterator[Any]:
    """Start Spark as sqlrun does."""
    from sqlrun.engines.spark.engine import SparkEngine

    engine = SparkEngine({"spark.driver.memory": "1500m"})
    engine.start()
    try:
        session = engine._spark.newSession()
        for key, value in QUICK.items():
            session.conf.set(key, value)
        yield session
    finally:
        engine.close()


def main() -> int:
    """Judge, print the counts; 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.judge", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, help="draw the same examples again")
    parser.add_argument("--whole", action="store_true", help="don't make failing examples smaller")
    parser.add_argument(
        "--alone", action="store_true", help="without Spark: look for errors that no query should end in"
    )
    options = parser.parse_args()
    if options.alone:
        return alone.main(options.seed, options.count)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    with spark() as session:
        counts = run(session, seed, options.count, options.seconds, shrink=not options.whole)
    print(counts.text())
    return 1 if counts.words["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
