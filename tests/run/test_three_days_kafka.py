"""Three days of orders through a topic: every mart is the plain-Python oracle's, every table that of the same files."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.support.from_kafka import played
from tests.support.servers.kafka import Broker

pytestmark = [pytest.mark.slow, pytest.mark.long]


def test_every_tick_through_a_topic_equals_the_same_files(tmp_path: Path, broker: Broker) -> None:
    """All that the script crafts, in its first 70 minutes; aborted transactions are among the committed ones."""
    assert played(tmp_path, DuckDBEngine(), broker, 14) == 15
