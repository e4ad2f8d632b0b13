"""`engine: auto` whose choice is drawn for each table of each tick, whatever it would cost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from sqlrun.engines.auto import AutoEngine
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.incremental.stages import Stage
from sqlrun.maintain import engine_selection


def auto(engine: SparkEngine, **given: Any) -> AutoEngine:
    """Make an engine whose Spark is the one of all tests."""
    made = AutoEngine(**given)
    made.spark = engine
    return made


@contextmanager
def at_random(seed: str, share: float = 0.5) -> Iterator[list[str]]:
    """Have each table's engine drawn, Spark with a chance of `share`; give the names of those that were drawn.

    A seed draws the same for a table whatever other threads do meanwhile.
    """
    drawn: list[str] = []
    turn: Counter[str] = Counter()

    def volume(_progress: Any, stage: Stage, *_: Any) -> int:
        turn[stage.name] += 1
        some = random.Random(f"{seed} {stage.name} {turn[stage.name]}")
        drawn.append("spark" if some.random() < share else "duckdb")
        return 1 << 60 if drawn[-1] == "spark" else 0

    with mock.patch.object(engine_selection, "_volume", volume):
        yield drawn
