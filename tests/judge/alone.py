"""Random queries kept on DuckDB without a judge: what ends in an error that no query should end in.

`python -m tests.judge --alone` needs no Spark. An internal error of DuckDB's takes its whole database along.
"""

from __future__ import annotations

import random
from collections import Counter

import duckdb

from sqlrun.errors import ProjectError
from tests.fuzz.running import shared
from tests.judge.judging import Example, _kept, _Stopped, examples

_BROKEN = ("INTERNAL Error", "FATAL Error", "Binder Error", "Catalog Error", "Parser Error", "invalidated")


def ending(example: Example) -> tuple[str, str]:
    """Say how an example ends: kept, refused, stopped by one of its values, or broken; and why."""
    try:
        _kept(example, tuple(example.given))
    except ProjectError as error:
        return "refused", error.problems[0].code
    except _Stopped as stopped:
        if not any(word in str(stopped) for word in _BROKEN):
            return "stopped", str(stopped)
        why = str(stopped)
    except Exception as error:
        why = repr(error)[:300]
    else:
        return "kept", ""
    shared.cache_clear()
    return "broken", why


def run(seed: int, count: int) -> Counter[str]:
    """Keep examples, print what is broken, and count how they end."""
    counts: Counter[str] = Counter()
    for _, _, batch in examples(seed, count):
        for example in batch:
            word, why = ending(example)
            counts[word] += 1
            if word == "broken":
                print(f"BROKEN\n  {example.query.text()}\n  {why}", flush=True)
    return counts


def main(seed: int | None, count: int) -> int:
    """Print how examples end; 1 where one is broken."""
    chosen = seed if seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {chosen}, DuckDB {duckdb.__version__}")
    counts = run(chosen, count)
    print(", ".join(f"{word} {number}" for word, number in counts.most_common()))
    return 1 if counts["broken"] else 0
