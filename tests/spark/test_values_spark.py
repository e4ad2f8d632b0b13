"""Hostile values on Spark, in every place of a project; `make values ENGINE=spark` plays more."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.spark import SparkEngine
from tests.values import playing

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("unchecked"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.slow
def test_hostile_values_are_kept_true_on_spark(engine: SparkEngine, tmp_path: Path) -> None:
    """Keys, group keys, partition values, below folders named like columns; small files are put together between."""
    play = playing.play(tmp_path / "city=x" / "day=1", 5, engine=engine)

    play.tick(20)
    play.maintain()
    play.tick(20)
    play.require_true()
