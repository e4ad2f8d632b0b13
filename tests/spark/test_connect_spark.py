"""The reference project by Spark Connect: no JVM here, and no call past Spark's DataFrames."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.cluster_day import Day
from tests.support.servers.spark_cluster import Connect

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_ticks_run_on_a_server(tmp_path: Path) -> None:
    server = Connect(tmp_path / "server")
    server.start()
    try:
        day = Day(tmp_path / "project", {"spark.remote": server.url})
        tried = day.debug(engine="auto")
        for name in ("engine            spark", "engine            duckdb"):
            assert f"{name}: ok" in tried
        for name in ("commit race       ok", "write and read    ok", "time travel       ok"):
            assert tried.count(name) == 2
        assert "workers           ok" in tried and "java" not in {line.partition(" ")[0] for line in tried}
        day.land(0, timedelta(hours=2))
        assert day.build(0) == 0
        day.land(1)
        assert day.build(1) == 0
        day.check(1)
    finally:
        server.stop()
