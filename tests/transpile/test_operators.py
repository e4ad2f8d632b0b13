"""Every kind of query, maintained on real Delta files by DuckDB, equals its whole query after each tick."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.support.operators import Play, write_project
from tests.support.projects import Site
from tests.support.script import START
from tests.support.whole import differences

# Changes of the clock in a tick: none, one step, an hour, more than the widest window.
STEPS = (0, 5, 5, 60, 0, 400)


@pytest.mark.slow
@pytest.mark.long
def test_every_kind_of_query_is_true_on_delta_files(tmp_path: Path) -> None:
    """Rows are late, repeated, corrected, deleted and inserted again; one tick is empty, one jumps past all windows."""
    site = Site(write_project(tmp_path), DuckDBEngine())
    play, now = Play(tmp_path, 3), START
    for number, minutes in enumerate(STEPS):
        now += timedelta(minutes=minutes)
        if number != 4:
            play.write(now, 40)

        result = site.tick(now)

        bad = [check for check in result.checks if check.status != "pass"]
        assert result.published, [*bad, *(node.message for node in result.nodes if node.message)]
        assert differences(site, now) == {}, f"tick {number}"
