"""Three days of orders, two hours of ticks: after every tick each table equals its own query run in full."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.support.projects import Site, copy_project
from tests.support.script import START, crafted, play

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_every_table_equals_its_query_after_every_tick(tmp_path: Path) -> None:
    """Late, repeated, corrected, cancelled, stale, future and broken orders; skipped, empty and repeated ticks."""
    site = Site(copy_project(tmp_path), DuckDBEngine())

    assert play(site, 24) == 25

    seen = {row["order_id"] for row in site.rows("stg_orders")}
    wanted = {f"x{n}" for n in (10, 11, 12, 20, 30, 31, 40, 50, 60, 70)}
    assert wanted <= seen, crafted(START)
    assert not {"x80", "x81"} & seen
