"""`engine: auto` with a random choice for each table of each tick, whatever it costs."""

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
    """Return an engine that uses the Spark session of all tests."""
    made = AutoEngine(**given)
    made.spark = engine
    return made


@contextmanager
def at_random(seed: str, share: float = 0.5) -> Iterator[list[str]]:
    """Draw each table's engine, Spark with probability `share`; yield the list of drawn engines.

    A seed draws the same engine for a table, whatever other threads do meanwhile.
    """
    drawn: list[str] = []
    draws: Counter[str] = Counter()

    def volume(_progress: Any, stage: Stage, *_: Any) -> int:
        draws[stage.name] += 1
        some = random.Random(f"{seed} {stage.name} {draws[stage.name]}")
        drawn.append("spark" if some.random() < share else "duckdb")
        return 1 << 60 if drawn[-1] == "spark" else 0

    with mock.patch.object(engine_selection, "_volume", volume):
        yield drawn
