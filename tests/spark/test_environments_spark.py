"""An environment on Spark: its name in its tables' paths, a stream of its own, and no commit skipped as done before."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.publish import environment_paths
from sqlrun.publish.reader import tick_of
from tests.publish.test_environments import edit, sales
from tests.run.test_machine import project
from tests.support.projects import Site
from tests.support.script import FIVE, START
from tests.support.whole import differences

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.long
def test_an_environment_is_built_and_promoted(tmp_path: Path, engine: SparkEngine) -> None:
    """Production's tick has a number that the environment has used up on the same tables."""
    prod = Site(project(tmp_path / "shops"), engine)
    sales(prod, "0.jsonl", ("a", 1, "x", 5, -1), ("b", 1, "y", 3, -2))
    assert prod.tick(START).published
    edit(prod, "stg_lines")
    dev = Site(prod.root, engine, "dev")
    for step in (0, 1):
        sales(prod, f"dev{step}.jsonl", (f"d{step}", 1, "z", 9, step))
        assert dev.tick(START + step * FIVE).published
    assert differences(dev, START + FIVE) == {}
    assert len(prod.rows("stg_lines")) == 2

    sales(prod, "prod.jsonl", ("e", 1, "z", 4, 0))
    prod.prepared = dev.prepared
    result = prod.tick(START + FIVE)

    assert result.tick == 2
    assert {environment_paths.owner(state.path) for state in tick_of(prod.ledger).tables.values()} == {"dev"}
    assert len(prod.rows("stg_lines")) == 5
    assert differences(prod, START + FIVE) == {}
