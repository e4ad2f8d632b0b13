"""The example `shop_cdc` on Spark: each tick is the database at one of its transactions, with the events' numbers."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from tests.sources.test_shop_cdc import AT, caught_up, simulated, started
from tests.support import shop
from tests.support.servers import jars
from tests.support.servers.kafka import Broker
from tests.support.servers.postgres import Postgres

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


def test_the_database_has_the_numbers_of_the_events(
    tmp_path: Path, postgres: Postgres, broker: Broker, engine: SparkEngine
) -> None:
    jars.needed(jars.SPARK_KAFKA)
    lines = simulated(tmp_path / "lines", 60)
    site, connect = started(tmp_path, postgres, broker, engine)
    platform = shop.Platform(postgres, 1)
    try:
        for number in range(2):
            platform.write(lines[number::2])
            assert site.tick(AT + timedelta(seconds=number)).published
            shop.judged(site, postgres)
        caught_up(site, postgres, 10)
    finally:
        connect.kill()
    as_of = AT + timedelta(minutes=5)
    assert site.tick(as_of).published
    assert shop.windows(site) == shop.expected_windows(lines, as_of)
