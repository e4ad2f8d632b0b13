"""`sqlrun simulate --to kafka`: a topic has each line once, however often the command is interrupted and repeated."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from sqlrun.errors import UsageError
from sqlrun.project import Connection
from sqlrun.simulate import simulate
from sqlrun.simulate.orders import minutes
from sqlrun.simulate.orders_topic import OrdersTopic
from sqlrun.simulate.settings import Settings, to_minute
from sqlrun.sources.kafka_client import Client
from tests.support.projects import ROOT
from tests.support.servers import topics
from tests.support.servers.kafka import Broker
from tests.support.waiting import HUNG

pytestmark = pytest.mark.long

END = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
SETTINGS = Settings(broken_rate=0.02)


@pytest.fixture
def topic(broker: Broker) -> str:
    return topics.unique("orders")


def place(broker: Broker, topic: str, partitions: int = 3) -> OrdersTopic:
    return OrdersTopic(Client("kafka", Connection(broker.address)), topic, partitions)


def written(
    broker: Broker, topic: str, start: datetime, end: datetime, settings: Settings = SETTINGS, step: int = 60
) -> Iterator[simulate.Written]:
    return simulate.write_history(place(broker, topic), settings, start, end, step=5, history_step=step)


def read(broker: Broker, topic: str, partitions: int = 3) -> list[topics.Message]:
    topics.settle(broker, topic)
    return [one.message for number in range(partitions) for one in topics.messages(broker, topic, number)]


def lines(broker: Broker, topic: str) -> Counter[tuple[int, str]]:
    """Return each message's time in minutes and its text."""
    return Counter(((one.timestamp or 0) // 60_000, (one.value or b"").decode() + "\n") for one in read(broker, topic))


def wanted(start: datetime, end: datetime) -> Counter[tuple[int, str]]:
    """Return what files would have, with the minute of each line's arrival."""
    found = minutes(SETTINGS, to_minute(start), to_minute(end))
    return Counter((minute, line) for minute, each in found for line in each)


def test_a_topic_has_the_lines_that_files_have(broker: Broker, topic: str) -> None:
    pieces = list(written(broker, topic, END - 2 * HOUR, END))

    assert lines(broker, topic) == wanted(END - 2 * HOUR, END)
    assert sum(piece.lines for piece in pieces) == lines(broker, topic).total()


def test_an_order_s_messages_have_one_key_and_lie_in_one_partition(broker: Broker, topic: str) -> None:
    list(written(broker, topic, END - 3 * HOUR, END))

    found = read(broker, topic)
    places: dict[bytes | None, set[int]] = {}
    for one in found:
        places.setdefault(one.key, set()).add(one.partition)
        assert dict(one.headers)["content-type"] == b"application/json"
        assert (one.key or b"order_id") in (one.value or b"") or one.key is None
    keyed = [numbers for key, numbers in places.items() if key is not None]
    assert len(keyed) > 100 and all(len(numbers) == 1 for numbers in keyed)
    assert set().union(*keyed) == {0, 1, 2}


def test_a_second_call_continues_at_the_end(broker: Broker, topic: str) -> None:
    list(written(broker, topic, END - 2 * HOUR, END - HOUR))
    list(written(broker, topic, END - 2 * HOUR, END))
    again = list(written(broker, topic, END - 2 * HOUR, END))

    assert again == []
    assert lines(broker, topic) == wanted(END - 2 * HOUR, END)


def test_a_call_that_stopped_halfway_is_completed(broker: Broker, topic: str) -> None:
    list(itertools.islice(written(broker, topic, END - 2 * HOUR, END, step=5), 7))
    first = lines(broker, topic)
    list(written(broker, topic, END - 2 * HOUR, END, step=10))

    assert first == wanted(END - 2 * HOUR, END - 2 * HOUR + timedelta(minutes=35))
    assert lines(broker, topic) == wanted(END - 2 * HOUR, END)


def test_a_history_survives_the_deletion_of_its_messages(broker: Broker, topic: str) -> None:
    """Retention deletes messages, but not the record of what was sent."""
    list(written(broker, topic, END - 2 * HOUR, END - HOUR))
    topics.settle(broker, topic)
    for number in range(3):
        topics.delete_records(broker, topic, topics.watermarks(broker, topic, number)[1], number)
    list(written(broker, topic, END - 2 * HOUR, END))

    assert lines(broker, topic) == wanted(END - HOUR, END)


def test_a_topic_made_again_begins_again(broker: Broker, topic: str) -> None:
    list(written(broker, topic, END - HOUR, END))
    topics.recreate(broker, topic, 3)
    list(written(broker, topic, END - HOUR, END))

    assert lines(broker, topic) == wanted(END - HOUR, END)


def test_other_settings_are_rejected(broker: Broker, topic: str) -> None:
    list(written(broker, topic, END - HOUR, END - HOUR / 2))

    with pytest.raises(UsageError, match=r"other settings: seed 1 \(now 2\)"):
        list(written(broker, topic, END - HOUR, END, replace(SETTINGS, seed=2)))


def test_messages_of_others_are_rejected(broker: Broker, topic: str) -> None:
    topics.create(broker, topic)
    topics.produce(broker, topic, [topics.Message(b"theirs")])

    with pytest.raises(UsageError, match="has no record of how far"):
        list(written(broker, topic, END - HOUR, END))

    assert [one.value for one in read(broker, topic, 1)] == [b"theirs"]


def test_of_two_writers_the_older_one_stops(broker: Broker, topic: str) -> None:
    first = written(broker, topic, END - HOUR, END, step=10)
    next(first)
    list(written(broker, topic, END - HOUR, END))

    with pytest.raises(UsageError, match="another `sqlrun simulate`"):
        list(first)

    assert lines(broker, topic) == wanted(END - HOUR, END)


PROFILE = "engine: duckdb\nwarehouse: warehouse\nconnections: {{kafka: {{bootstrap: {}}}}}\n"


def command(root: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "sqlrun", "--project-dir", str(root), "simulate", "--to", "kafka", *arguments]


@pytest.fixture
def root(broker: Broker, tmp_path: Path) -> Path:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / "profiles" / "here.yml").write_text(PROFILE.format(broker.address))
    (tmp_path / "pyproject.toml").write_text('[tool.sqlrun]\nname = "p"\nprofile = "here"\n')
    return tmp_path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(arguments, env=environment, text=True, capture_output=True, timeout=HUNG, check=False)


@pytest.mark.slow
def test_the_command_survives_kills(root: Path, broker: Broker, topic: str) -> None:
    start = END - 40 * HOUR
    arguments = ("--topic", topic, "--partitions", "3", "--from", f"{start:%Y-%m-%dT%H:%MZ}", "--broken-rate", "0.02")
    asked = command(root, *arguments, "--to", f"{END:%Y-%m-%dT%H:%MZ}")
    chance = random.Random(5)
    killed = 0
    for _ in range(4):
        process = subprocess.Popen(asked, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL)
        with_end = time.monotonic() + 30
        before = total(broker, topic)
        while process.poll() is None and total(broker, topic) == before and time.monotonic() < with_end:
            time.sleep(0.05)
        time.sleep(chance.uniform(0, 0.5))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() != 0
    done = run(*asked)

    assert killed >= 2
    assert done.returncode == 0, done.stderr
    assert f"topic {topic} of the connection kafka" in done.stdout
    assert lines(broker, topic) == wanted(start, END)


def total(broker: Broker, topic: str) -> int:
    """Return the number of offsets; 0 if the topic has no leader yet."""
    try:
        return sum(topics.watermarks(broker, topic, number)[1] for number in range(3))
    except KafkaException:
        return 0


@pytest.mark.slow
def test_errors_name_the_way_out(root: Path) -> None:
    (root / "profiles" / "dead.yml").write_text(PROFILE.format("127.0.0.1:1"))
    unknown = run(*command(root, "--connection", "none"))
    elsewhere = run(*command(root, "--out", "x"))

    assert unknown.returncode == 2
    assert "doesn't have the connection `none`. It has: kafka." in " ".join(unknown.stderr.split())
    assert elsewhere.returncode == 2 and "--out can't be combined with --to kafka" in elsewhere.stderr
