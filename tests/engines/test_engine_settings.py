"""Settings that DuckDB rejects, or that leave it too little memory, are reported and change no result."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.auto import AutoEngine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import EngineError
from tests.engines.test_landed_elsewhere import LINE
from tests.run.test_machine import project
from tests.support.projects import Site
from tests.support.script import FIVE, START
from tests.support.whole import differences


@pytest.mark.parametrize("settings", [{"memory_limit": "abc"}, {"memory_limit": ""}, {"memory_limits": "1GB"}])
@pytest.mark.parametrize("kind", [DuckDBEngine, AutoEngine])
def test_settings_that_duckdb_rejects_are_named(
    settings: dict[str, str], kind: type[DuckDBEngine] | type[AutoEngine]
) -> None:
    """The build used to end with a Python traceback."""
    with pytest.raises(EngineError, match=f"DuckDB rejects the profile's settings .{next(iter(settings))}.: "):
        kind(settings).start()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
def test_too_little_memory_is_reported_and_more_gives_the_same_result(tmp_path: Path) -> None:
    """The tick fails and names the setting; with enough memory the next build is correct."""
    lines = [LINE % f"{n:09}" for n in range(60_000)]
    site = Site(project(tmp_path / "shops"), DuckDBEngine({"memory_limit": "4MB"}))
    site.write("0.jsonl", lines)

    failed = site.tick(START)
    site.engine = DuckDBEngine()
    after = site.tick(START + FIVE)

    assert not failed.published
    said = next(node.message for node in failed.nodes if node.message)
    assert "Out of Memory" in said and "Increase `memory_limit` in the profile's settings" in said
    assert after.published and differences(site, START + FIVE) == {}
    assert len(site.rows("stg_lines")) == len(lines)
