"""Engines may alternate at maintaining; a table's files land on the engine that landed its first ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlrun.engine_api import Landing, TableSpec
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.landed_elsewhere import nothing_waits
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.errors import EngineError
from sqlrun.plan.plan import tick_plan
from sqlrun.sources.checkpoint import path_of
from sqlrun.sources.folder import Folder
from tests.run.test_machine import project
from tests.support.projects import Site
from tests.support.script import FIVE, START

pytestmark = pytest.mark.slow
LINE = '{"id": "%s", "version": 1, "shop": "x", "amount": "1.00", "sold_at": "2026-01-10T11:59:00Z"}'


def test_spark_does_not_land_into_a_table_that_duckdb_landed(tmp_path: Path) -> None:
    """Neither needs a JVM: first there is nothing new, then landing is rejected."""
    first = Site(project(tmp_path / "shops"), DuckDBEngine())
    first.write("0.jsonl", [LINE % "a"])
    assert first.tick(START).published
    second = Site(first.root, SparkEngine({}))

    idle = second.tick(START)
    second.write("1.jsonl", [LINE % "b"])
    refused = second.tick(START + FIVE)

    assert idle.published and {node.status for node in idle.nodes} == {"no-op"}
    assert not refused.published
    message = next(node.message for node in refused.nodes if node.message)
    assert "the engine duckdb landed stg_lines, and 1 of its source's files are pending (1.jsonl)" in message
    assert first.tick(START + FIVE).published
    assert len(first.rows("stg_lines")) == 2


def test_a_stream_without_a_finished_batch_is_reported(tmp_path: Path) -> None:
    """Its checkpoint lists a file of an unfinished batch, and has no folder of commits yet."""
    site = Site(project(tmp_path / "shops"), DuckDBEngine())
    site.write("0.jsonl", [LINE % "a"])
    plan = tick_plan(site.prepared.workspace, site.warehouse, None, 1, START, ("stg_lines",), False)
    checkpoint = Path(site.warehouse) / path_of(plan.tables["stg_lines"].path)
    (checkpoint / "sources" / "0").mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id": "a"}')
    entry = {"path": (site.orders / "0.jsonl").as_uri(), "timestamp": 0, "batchId": 0}
    (checkpoint / "sources" / "0" / "0").write_text(f"v1\n{json.dumps(entry)}")
    spec = TableSpec("stg_lines", plan.tables["stg_lines"].spec.path, plan.tables["stg_lines"].spec.columns)
    request = Landing(spec, Folder(str(site.orders)), str(checkpoint), "", "app")

    with pytest.raises(EngineError, match=r"the engine spark landed .*, and 1 of its source's files are pending"):
        nothing_waits(request, "duckdb")
