"""Every kind of query, kept on real Delta files by the `duckdb` engine, equals its whole query after each tick."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.support.operators import Play, write_project
from tests.support.projects import Site
from tests.support.script import START
from tests.support.whole import differences

# What a tick does to time: nothing, one step, an hour, more than the widest window.
STEPS = (0, 5, 5, 60, 0, 400)


@pytest.mark.slow
@pytest.mark.long
def test_every_kind_of_query_is_true_on_delta_files(tmp_path: Path) -> None:
    """Rows come late, twice, corrected, leave and come back; one tick is empty, one jumps over all windows."""
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
