"""Topics of a test's broker, their messages, and what happens to them in the field. Shell: the network, the clock."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.support.servers.kafka import Broker

# Seconds for one answer of the broker, and for what it does in the background.
SECONDS = 30.0
# Compaction looks at closed segments alone. A segment can't be smaller than 1 MiB, so age closes it.
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": "0",
}


@dataclass(frozen=True, slots=True)
class Message:
    """A message; a value of None is a tombstone, a timestamp of None is the producer's now, else milliseconds."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int | None = None
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """A message as it was read."""

    offset: int
    message: Message


def unique(prefix: str = "topic") -> str:
    """Return a name that no other test's topic has."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def create(broker: Broker, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> str:
    """Create a topic with settings (`COMPACTED`, `{"retention.ms": "1"}`), and return its name."""
    _done(broker.admin.create_topics([NewTopic(name, partitions, 1, config=dict(settings or {}))]))
    _led(broker, name, partitions)
    return name


def add_partitions(broker: Broker, name: str, total: int) -> None:
    """Add empty partitions to a topic, so that it has `total` of them."""
    _done(broker.admin.create_partitions([NewPartitions(name, total)]))
    _led(broker, name, total)


def delete(broker: Broker, name: str) -> None:
    """Delete a topic, and return after it is gone."""
    _done(broker.admin.delete_topics([name]))
    _until(f"{name} is still there", lambda: name not in broker.admin.list_topics(timeout=SECONDS).topics)


def recreate(broker: Broker, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
    """Replace a topic by an empty one of the same name."""
    delete(broker, name)
    create(broker, name, partitions, settings)


def topic_id(broker: Broker, name: str) -> str:
    """Return the id of a topic, which a topic made later under the same name doesn't have."""
    (found,) = broker.admin.describe_topics(TopicCollection([name])).values()
    return str(found.result(SECONDS).topic_id)


def watermarks(broker: Broker, name: str, partition: int = 0) -> tuple[int, int]:
    """Return the first offset that can be read, and the offset that the next message gets."""
    with _consumer(broker) as consumer:
        found = consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=SECONDS)
    assert found is not None
    return found[0], found[1]


def settle(broker: Broker, name: str) -> None:
    """Wait until each partition has the end of each transaction: the broker writes these after it answered."""

    def settled() -> bool:
        partitions = broker.admin.list_topics(name, timeout=SECONDS).topics[name].partitions
        asked = {TopicPartition(name, number): OffsetSpec.latest() for number in partitions}
        ends = [
            {
                each: one.result(SECONDS).offset
                for each, one in broker.admin.list_offsets(asked, isolation_level=level).items()
            }
            for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
        ]
        return ends[0] == ends[1]

    _until(f"{name} has open transactions", settled)


def delete_records(broker: Broker, name: str, below: int, partition: int = 0) -> None:
    """Delete the messages below an offset, as retention does."""
    _done(broker.admin.delete_records([TopicPartition(name, partition, below)]))


def configure(broker: Broker, name: str, settings: Mapping[str, str | None]) -> None:
    """Set settings of a topic; None returns one to its default."""
    entries = [ConfigEntry(key, value, incremental_operation=_operation(value)) for key, value in settings.items()]
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
    _done(broker.admin.incremental_alter_configs([resource]))


def expire(broker: Broker, name: str, partition: int = 0) -> None:
    """Let retention delete all messages of a partition; its offsets go on."""
    configure(broker, name, {"retention.ms": "1"})
    # Retention looks at timestamps that must lie more than a millisecond back.
    _until(f"{name} has not expired", lambda: len(set(watermarks(broker, name, partition))) == 1)
    configure(broker, name, {"retention.ms": None})


def compact(broker: Broker, name: str, partition: int = 0, last: bytes = b"last") -> None:
    """Let a topic made with `COMPACTED` lose all messages that have a newer one of their key; tombstones stay.

    A segment closes when a message comes after its time, so this appends one: key and value are `last`.
    """
    _close(broker, name, partition, last)

    def happened() -> bool:
        keys = Counter(each.message.key for each in messages(broker, name, partition)[:-1])
        return all(count == 1 for count in keys.values())

    _until(f"{name} was not compacted", happened)


def compact_tombstones(broker: Broker, name: str, partition: int = 0, last: bytes = b"last") -> None:
    """Let a topic made with `COMPACTED` lose its tombstones too: the next compaction after the first deletes them."""
    compact(broker, name, partition, last)
    _close(broker, name, partition, last)

    def happened() -> bool:
        return all(each.message.value is not None for each in messages(broker, name, partition))

    _until(f"{name} still has tombstones", happened)


def produce(
    broker: Broker, name: str, made: Iterable[Message], settings: Mapping[str, str | int | bool] | None = None
) -> int:
    """Produce messages, in their order within a partition; return their number after the broker has all of them."""
    return _sent(_producer(broker, settings), name, made)


def begin(broker: Broker, name: str, made: Iterable[Message], transactional_id: str | None = None) -> Producer:
    """Produce messages in a transaction that is still open; the producer commits or aborts it."""
    producer = _producer(broker, {"transactional.id": transactional_id or unique("transaction")})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    _sent(producer, name, made)
    return producer


def commit(broker: Broker, name: str, made: Iterable[Message]) -> None:
    """Produce messages in one transaction, and commit it: its marker takes an offset of each partition."""
    begin(broker, name, made).commit_transaction(SECONDS)


def abort(broker: Broker, name: str, made: Iterable[Message]) -> None:
    """Produce messages in one transaction, and abort it: they keep their offsets, and readers skip them."""
    begin(broker, name, made).abort_transaction(SECONDS)


def messages(broker: Broker, name: str, partition: int = 0, committed: bool = True) -> list[Read]:
    """Return a partition's messages in their order; with `committed`, only those of no or a committed transaction."""
    found: list[Read] = []
    end = time.monotonic() + SECONDS
    with _consumer(broker, isolation="read_committed" if committed else "read_uncommitted") as consumer:
        consumer.assign([TopicPartition(name, partition, 0)])
        while time.monotonic() < end:
            each = consumer.poll(0.5)
            if each is None:
                continue
            error = each.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return found
            if error is not None:
                raise KafkaException(error)
            kind, stamp = each.timestamp()
            at = None if kind == TIMESTAMP_NOT_AVAILABLE else stamp
            headers: Any = each.headers() or ()
            message = Message(each.value(), each.key(), tuple(headers), at, partition)
            found.append(Read(each.offset() or 0, message))
    raise AssertionError(f"the end of {name} was not reached in {SECONDS:.0f} seconds")


def _sent(producer: Producer, name: str, made: Iterable[Message]) -> int:
    failed: list[KafkaError] = []
    number = 0

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failed.append(error)

    for number, each in enumerate(made, 1):
        while True:
            try:
                producer.produce(
                    name, each.value, each.key, each.partition, on_delivery=delivered,
                    timestamp=each.timestamp or 0, headers=list(each.headers) or None,
                )  # fmt: skip
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    left = producer.flush(SECONDS)
    assert left == 0, f"{left} messages were not delivered in {SECONDS:.0f} seconds"
    if failed:
        raise KafkaException(failed[0])
    return number


def _producer(broker: Broker, settings: Mapping[str, str | int | bool] | None) -> Producer:
    return Producer(
        {
            "bootstrap.servers": broker.address,
            "enable.idempotence": True,
            "linger.ms": 5,
            "log_level": 0,
            **(settings or {}),
        }
    )


class _consumer:
    """A consumer without a group, which is closed at the end."""

    def __init__(self, broker: Broker, isolation: str = "read_committed") -> None:
        self._made = Consumer(
            {
                "bootstrap.servers": broker.address, "group.id": "none", "enable.auto.commit": False,
                "enable.partition.eof": True, "auto.offset.reset": "earliest", "isolation.level": isolation,
                "fetch.wait.max.ms": 20, "log_level": 0,
            }
        )  # fmt: skip

    def __enter__(self) -> Consumer:
        return self._made

    def __exit__(self, *_: object) -> None:
        self._made.close()


def _close(broker: Broker, name: str, partition: int, last: bytes) -> None:
    """Append a message that closes the segment, as all before it are older than `segment.ms`."""
    newest = max((each.message.timestamp or 0 for each in messages(broker, name, partition)), default=0)
    time.sleep(0.2)
    stamp = max(round(time.time() * 1000), newest + 1000)
    produce(broker, name, [Message(last, last, timestamp=stamp, partition=partition)])


def _operation(value: str | None) -> AlterConfigOpType:
    return AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET


def _done(asked: Mapping[Any, Future[Any]]) -> None:
    for each in asked.values():
        each.result(SECONDS)


def _led(broker: Broker, name: str, partitions: int) -> None:
    """Wait until each partition of a topic has a leader, so that a producer finds it at once."""

    def led() -> bool:
        found = broker.admin.list_topics(timeout=SECONDS).topics.get(name)
        return found is not None and [each.leader for each in found.partitions.values()] == [1] * partitions

    _until(f"{name} does not have {partitions} partitions", led)


def _until(complaint: str, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not _held(holds):
        assert time.monotonic() < end, f"{complaint} after {SECONDS:.0f} seconds"
        time.sleep(0.05)


def _held(holds: Callable[[], bool]) -> bool:
    """Return whether a condition holds; not yet, if the broker has only now started again."""
    try:
        return holds()
    except KafkaException as error:
        if error.args[0].code() not in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT):
            raise
        return False
