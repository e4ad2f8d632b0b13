"""Builds and a broker killed while a topic lands; `make crash SOURCE=kafka` kills more."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash import on_kafka
from tests.crash.__main__ import Builds
from tests.crash.lives import Lives
from tests.crash.topic_world import TopicWorld
from tests.support.servers.kafka import Broker

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    with Lives() as made:
        yield made


def test_each_committed_message_is_one_row(lives: Lives, own_broker: Broker, tmp_path: Path) -> None:
    world = TopicWorld(tmp_path / "world", own_broker)

    assert on_kafka.kill(Builds(lives, world, 1), world, 12, random.Random(2)) > 3
    on_kafka.audited(lives, world)


def test_compaction_is_no_loss(lives: Lives, broker: Broker, tmp_path: Path) -> None:
    assert on_kafka.compacted(lives, TopicWorld(tmp_path / "world", broker, compacted=True), 3) > 0


def test_a_loss_is_named_and_accepted(lives: Lives, broker: Broker, tmp_path: Path) -> None:
    on_kafka.lose(lives, TopicWorld(tmp_path / "world", broker))


def test_a_topic_created_again_lands_after_that_is_accepted(lives: Lives, broker: Broker, tmp_path: Path) -> None:
    on_kafka.recreated(lives, TopicWorld(tmp_path / "world", broker))
