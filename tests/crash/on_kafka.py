"""Builds and a broker killed at random moments: every message of a committed producer is one row, and no other is."""

from __future__ import annotations

import json
import random
import signal
import statistics
from collections import Counter
from pathlib import Path
from typing import Protocol

from tests.crash import points
from tests.crash.lives import Lives, build
from tests.crash.topic_world import TopicWorld
from tests.support.servers import topics
from tests.support.servers.kafka import Broker

COUNTED = ("read", "landed", "quarantined", "dropped", "gaps", "lost", "unexplained")


class Builder(Protocol):
    """Runs builds of a world; gives the exit code, the seconds and what was said."""

    def run(self, killed_after: float | None = None, point: str = "") -> tuple[int, float, str]: ...


def kill(builder: Builder, world: TopicWorld, count: int, chance: random.Random) -> int:
    """Kill so many builds, and give how many died; a third of them at a step of landing, others at any moment."""
    times, died = list[float](), 0
    for _ in range(2):
        world.arrive()
        code, seconds, said = builder.run()
        assert code == 0, said
        times.append(seconds)
    for number in range(1, count + 1):
        world.arrive()
        topics.settle(world.broker, world.topic)
        if chance.random() < 0.1:
            world.delete_landed()
        if chance.random() < 0.25:
            world.open()
        before = world.published()
        longest = 1.1 * statistics.median(times[-9:])
        after, point = chance.uniform(0, longest), ""
        if world.engine == "duckdb" and chance.random() < 0.33:
            point = chance.choice(sorted(points.ON_KAFKA))
        with world.meanwhile(longest) as incidents:
            code, _, said = builder.run(None if point else after, point)
        broker_died = "broker killed" in incidents
        assert code in (0, -signal.SIGKILL) or (broker_died and "SR748" in said), (code, said)
        died += code == -signal.SIGKILL
        between = world.published()
        if between != before:
            world.check_partial()
        world.settle()
        again, seconds, said = builder.run()
        assert again == 0, said
        assert world.published() > before
        world.check()
        times.append(seconds)
        what = ", ".join([f"code {code}", point or f"{after:.2f} s", *incidents])
        print(f"{number} of {count}: {what}, tick {before} -> {between} -> {world.published()}, {world.lines} lines")
    return died


def compacted(lives: Lives, world: TopicWorld, rounds: int) -> int:
    """Compact a topic between kills: no row is there twice, and of each key at least the newest message is a row.

    Return the number of messages that compaction deleted before they landed: gaps, which are no loss.
    """
    for number in range(1, rounds + 1):
        world.number += 1
        world.produce(30)
        for partition in range(world.partitions):
            world.sent |= _closed(world, partition)
        build(lives, world.root, world.as_of, sorted(points.ON_KAFKA)[number % len(points.ON_KAFKA)])
        life = build(lives, world.root, world.as_of)
        assert life.code == 0, life.said
        landed = world.check_compacted()
    return len(world.sent) - landed


def _closed(world: TopicWorld, partition: int) -> dict[str, bytes]:
    """Compact a partition, and return the messages that this appended."""
    topics.compact(world.broker, world.topic, partition, b"last")
    found = topics.messages(world.broker, world.topic, partition)
    return {f"{world.topic}/{partition}/{one.offset}": b"last" for one in found if one.message.value == b"last"}


def lose(lives: Lives, world: TopicWorld) -> None:
    """Delete messages that have not landed: builds fail with the exact range, until the loss is accepted."""
    world.arrive()
    topics.settle(world.broker, world.topic)
    assert build(lives, world.root, world.as_of).code == 0
    world.check()
    since = topics.watermarks(world.broker, world.topic, 0)[1]
    world.produce(40)
    world.number += 1
    end = topics.watermarks(world.broker, world.topic, 0)[1]
    assert end - since > 4
    topics.delete_records(world.broker, world.topic, end - 2, 0)
    for _ in range(2):
        failed = build(lives, world.root, world.as_of)
        said = " ".join(failed.said.split())
        assert failed.code == 1 and "SR747" in said, failed.said
        assert f"[{since:,}, {end - 2:,}) never landed" in said, said
    accepted = lives.live(world.root, "source", "accept-loss", "shops.lines", "--yes")
    assert accepted.code == 0, accepted.said
    world.sent = {
        origin: text
        for origin, text in world.sent.items()
        if not (origin.startswith(f"{world.topic}/0/") and since <= int(origin.rpartition("/")[2]) < end - 2)
    }
    again = build(lives, world.root, world.as_of)
    assert again.code == 0, again.said
    world.check()
    audited(lives, world)
    print(f"the loss of [{since}, {end - 2}) is named and accepted, and all other messages landed")


def recreated(lives: Lives, world: TopicWorld) -> None:
    """Delete a topic and create it again: builds fail until that is accepted; then offsets 0 and up land again."""
    world.arrive()
    topics.settle(world.broker, world.topic)
    assert build(lives, world.root, world.as_of).code == 0
    world.check()
    old, world.sent, world.partitions = Counter(world.sent.keys()), {}, 2
    topics.recreate(world.broker, world.topic, 2)
    world.arrive()
    topics.settle(world.broker, world.topic)
    for _ in range(2):
        failed = build(lives, world.root, world.as_of)
        assert failed.code == 1 and "was deleted and created again" in " ".join(failed.said.split()), failed.said
    accepted = lives.live(world.root, "source", "accept-loss", "shops.lines", "--yes")
    assert accepted.code == 0, accepted.said
    again = build(lives, world.root, world.as_of)
    assert again.code == 0, again.said
    found = Counter(row["_file"] for row in world.rows())
    assert found == old + Counter(world.sent.keys())
    print(f"a topic that was created again landed {len(world.sent)} messages beside {old.total()} of the old one")


def audited(lives: Lives, world: TopicWorld) -> None:
    """The audit of the source explains every offset, and agrees with what was sent."""
    audit = lives.live(world.root, "source", "audit", "shops.lines", "--json")
    assert audit.code == 0, audit.said
    rows = json.loads(audit.said)
    total = {key: sum(row[key] or 0 for row in rows) for key in COUNTED}
    assert total["unexplained"] == 0 and total["landed"] + total["quarantined"] == len(world.sent), total
    print(f"The audit: {json.dumps(total)}")


def run(folder: Path, lives: Lives, engine: str, kills: int, seed: int) -> None:
    """Run all scenarios with a broker of their own, and print what happened."""
    from tests.crash.__main__ import Builds

    folder.mkdir(parents=True)
    broker = Broker(folder / "broker")
    broker.start()
    try:
        world = TopicWorld(folder / "killed", broker, engine)
        builds = Builds(lives if engine == "duckdb" else None, world, seed)
        died = kill(builds, world, kills, random.Random(seed))
        audited(lives, world)
        print(f"{kills} builds on {engine}, {died} of them killed: {len(world.sent)} messages, each of them one row.")
        print(f"Meanwhile: {json.dumps(dict(sorted(world.happened.items())))}")
        if engine == "duckdb":
            gone = compacted(lives, TopicWorld(folder / "compacted", broker, compacted=True), max(2, kills // 50))
            print(f"A compacted topic: {gone} messages were compacted before they landed, no other is missing.")
            lose(lives, TopicWorld(folder / "lost", broker))
            recreated(lives, TopicWorld(folder / "recreated", broker))
    finally:
        broker.stop()
