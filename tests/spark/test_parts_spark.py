"""Statements that are too long for Spark once each part is written out: some parts are computed before them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlrun.engines.spark import parts
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.runtime.stopping import limit_statements
from tests.incremental.test_cases_on_delta import KEPT
from tests.support.case_files import Case
from tests.support.on_delta import OnDelta

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
DEEP = [case for case in KEPT if str(case.id).startswith("deep")]
SAMPLE = random.Random(4).sample(KEPT, 10)


@pytest.fixture
def two_minutes() -> Iterator[None]:
    """Spark's analyzer heeds no interrupt: what takes twice as long and a minute ends the process."""
    limit_statements(120)
    yield
    limit_statements(1800)


@pytest.mark.usefixtures("two_minutes")
@pytest.mark.parametrize("case", DEEP)
def test_deep_models_are_kept_in_time(engine: SparkEngine, tmp_path: Path, case: Case) -> None:
    """Written out they have thousands of parts, which would take Spark minutes or all of its memory."""
    play = OnDelta(tmp_path, case, lambda: engine)

    play.play()

    assert set(play.wrote) == {"spark"}


@pytest.mark.parametrize("case", SAMPLE)
def test_any_statement_may_be_split(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    """A MERGE, an append, an overwrite: what is computed before changes no row, and leaves no view."""
    monkeypatch.setattr(parts, "MOST", 3)

    OnDelta(tmp_path, case, lambda: engine).play()

    with engine._session() as session:
        assert not session.catalog.tableExists(f"{parts.VIEW}0")
