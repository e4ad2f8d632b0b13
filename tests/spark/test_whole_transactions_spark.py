"""On Spark, too, a tick takes whole transactions of a database."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from tests.sources.test_whole_transactions import holds, made_log
from tests.support.commits import Lagging, with_crashes
from tests.support.commits_site import Databases
from tests.support.servers import jars
from tests.support.servers.kafka import Broker

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


def test_every_tick_on_spark_has_whole_transactions(tmp_path: Path, engine: SparkEngine, broker: Broker) -> None:
    jars.needed(jars.SPARK_KAFKA)
    made, random, log = Databases(tmp_path, broker, engine, 2), Random(3), made_log(3, 2, 16)
    holds(made, Lagging(list(with_crashes(log, random, 0.05)), random), log, most=40)
