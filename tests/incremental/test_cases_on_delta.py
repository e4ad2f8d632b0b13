"""Every `.case` file on Delta tables, by the DuckDB engine; spark/test_cases_alternating_spark.py uses both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.incremental.test_incremental import CASES, FAULTS
from tests.support.case_files import Case
from tests.support.on_delta import OnDelta
from tests.support.projects import READER

pytestmark = [pytest.mark.slow, pytest.mark.long]
KEPT = [pytest.param(c.values[0], id=c.id) for c in CASES if not c.values[0].refuse and c.values[0].name not in FAULTS]


@pytest.mark.parametrize("case", KEPT)
def test_case_on_delta(tmp_path: Path, case: Case) -> None:
    """After every step, each table has the same rows as in memory."""
    OnDelta(tmp_path, case, lambda: READER).play()
