"""The changes of a database on Spark: its current rows and their history, from files and from a topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from tests.land.test_change_drift import rows_are_right
from tests.sources import test_maxwell, test_mongodb, test_mysql
from tests.sources.test_changes import decimals_are_exact, holds, never_mix, project, through_a_topic
from tests.support.servers import jars
from tests.support.servers.kafka import Broker

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.long
def test_a_log_in_files_is_the_database(tmp_path: Path, engine: SparkEngine) -> None:
    holds(project(tmp_path, engine), 0, 15)


@pytest.mark.long
def test_two_databases_of_one_name_never_mix(tmp_path: Path, engine: SparkEngine) -> None:
    never_mix(project(tmp_path, engine))


@pytest.mark.long
def test_a_decimal_beyond_the_declared_precision_is_quarantined(tmp_path: Path, engine: SparkEngine) -> None:
    decimals_are_exact(tmp_path, engine, "bytes")


@pytest.mark.long
def test_rows_before_and_after_an_alteration_are_right(tmp_path: Path, engine: SparkEngine) -> None:
    rows_are_right(tmp_path, "sync", engine)


@pytest.mark.long
def test_changes_of_mysql_are_its_tables(tmp_path: Path, engine: SparkEngine) -> None:
    test_mysql.holds(test_mysql.site(tmp_path, engine))


@pytest.mark.long
def test_changes_of_maxwell_are_its_tables(tmp_path: Path, engine: SparkEngine) -> None:
    test_maxwell.holds(test_maxwell.site(tmp_path, engine), 1)


@pytest.mark.long
@pytest.mark.servers
def test_a_topic_of_mongodb_says_by_its_keys_what_is_deleted(
    tmp_path: Path, engine: SparkEngine, broker: Broker
) -> None:
    jars.needed(jars.SPARK_KAFKA)
    test_mongodb.through_a_topic(tmp_path, broker, engine)


@pytest.mark.long
@pytest.mark.servers
def test_one_topic_has_the_events_of_all_tables(tmp_path: Path, engine: SparkEngine, broker: Broker) -> None:
    jars.needed(jars.SPARK_KAFKA)
    test_maxwell.through_a_topic(tmp_path, broker, engine)


@pytest.mark.long
@pytest.mark.servers
def test_a_log_in_a_topic_is_the_database(tmp_path: Path, engine: SparkEngine, broker: Broker) -> None:
    jars.needed(jars.SPARK_KAFKA)
    through_a_topic(tmp_path, broker, engine, 15)
