"""`.case` files on Delta tables, each statement by an engine that is drawn: a sample, other ones with `SQLRUN_SEED=9`.

`test_cases_spark.py` holds that all cases leave the same rows on both engines; here the files are written by both, too.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from sqlrun.engine_api import Engine
from sqlrun.engines.spark.engine import SparkEngine
from tests.incremental.test_cases_on_delta import KEPT
from tests.support.case_files import Case
from tests.support.on_delta import OnDelta
from tests.support.projects import READER

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SEED = os.environ.get("SQLRUN_SEED", "8")
SAMPLE = random.Random(SEED).sample([case for case in KEPT if len(case.values[0].steps) > 2], 12)


@pytest.mark.long
@pytest.mark.parametrize("case", SAMPLE)
def test_engines_alternate_in_a_case(engine: SparkEngine, tmp_path: Path, case: Case) -> None:
    """Either writes at least once, and goes on from what the other has written."""
    some = random.Random(f"{SEED} {case.place}")

    def draw() -> Engine:
        other = {"spark": READER, "duckdb": engine}
        return other[play.wrote[0]] if len(set(play.wrote)) == 1 else some.choice([engine, READER])

    play = OnDelta(tmp_path, case, draw)
    print(f"SQLRUN_SEED={SEED}")
    play.play()

    assert len(set(play.wrote)) == min(len(play.wrote), 2)
