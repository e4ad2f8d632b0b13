"""Kafka's broker: topics, offsets and messages, with errors that say what to do. Shell: the network."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlrun.errors import EngineError

if TYPE_CHECKING:
    from sqlrun.project import Connection

EXTRA = "pip install 'sqlrun[kafka]'"
# Seconds for a request, and without any message or event while reading.
REQUEST_TIMEOUT, SILENCE = 20.0, 60.0
# Messages at once, and seconds to wait for the first of them.
MOST_MESSAGES, POLL = 10_000, 0.5
# No sqlrun consumer joins a group, so none is ever rebalanced; the client library requires a name.
GROUP = "sqlrun"
INTERNAL = "__"


@dataclass(frozen=True, slots=True)
class Offsets:
    """The offsets of a partition: the first retained one, and the one after the last committed message."""

    first: int
    end: int


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic's id ("" if the broker has none) and its partitions."""

    id: str
    partitions: tuple[int, ...]


@dataclass(slots=True)
class Client:
    """A connection to a broker; it opens when it is first used. `name` is the connection's name in the profile."""

    name: str
    connection: Connection
    _heard: list[str] = field(default_factory=list)

    def settings(self) -> dict[str, Any]:
        """Return the client library's settings."""
        one = self.connection
        found = {
            "bootstrap.servers": one.bootstrap,
            "security.protocol": one.protocol,
            "sasl.mechanism": one.mechanism,
            "sasl.username": one.username,
            "sasl.password": one.password,
            "ssl.ca.location": one.ca_file,
            "ssl.certificate.location": one.certificate_file,
            "ssl.key.location": one.key_file,
            "ssl.key.password": one.key_password,
        }
        return {key: value for key, value in found.items() if value} | {
            "client.id": "sqlrun",
            "error_cb": self._hear,
            # What the library would print on standard error is in the exceptions, too.
            "log_level": 0,
        }

    def topics(self, topic: str, pattern: str) -> dict[str, TopicFacts]:
        """Return the topic, or the topics whose whole name matches the pattern; a topic that doesn't exist is left out.

        Raises: EngineError if the broker can't be reached or refuses.
        """
        library = kafka_library()
        with self.explained("list the topics"):
            admin = library.admin.AdminClient(self.settings())
            listed = admin.list_topics(timeout=REQUEST_TIMEOUT).topics
            names = (
                [topic]
                if topic
                else sorted(name for name in listed if re.fullmatch(pattern, name) and not name.startswith(INTERNAL))
            )
            names = [name for name in names if name in listed]
            if not names:
                return {}
            asked = admin.describe_topics(library.TopicCollection(names), request_timeout=REQUEST_TIMEOUT)
            found = {}
            for name, future in asked.items():
                one = future.result()
                partitions = tuple(sorted(each.id for each in one.partitions))
                found[name] = TopicFacts(str(one.topic_id) if one.topic_id else "", partitions)
            return found

    def offsets(self, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Offsets]:
        """Return the offsets of partitions. The end is the last stable offset: no open transaction lies before it.

        Raises: EngineError.
        """
        if not partitions:
            return {}
        library = kafka_library()
        with self.explained("list the offsets"):
            admin = library.admin.AdminClient(self.settings())
            level = library.IsolationLevel.READ_COMMITTED
            sides = []
            for spec in (library.admin.OffsetSpec.earliest(), library.admin.OffsetSpec.latest()):
                asked = {library.TopicPartition(topic, number): spec for topic, number in partitions}
                answers = admin.list_offsets(asked, isolation_level=level, request_timeout=REQUEST_TIMEOUT)
                sides.append({(one.topic, one.partition): future.result().offset for one, future in answers.items()})
            first, end = sides
            return {each: Offsets(first[each], end[each]) for each in partitions}

    def messages(self, ranges: Mapping[tuple[str, int], tuple[int, int]]) -> Iterator[list[Any]]:
        """Yield the messages of ranges of offsets, as lists of the library's messages, in each partition's order.

        Aborted transactions are left out. Offsets without a message at the end of a range are waited for, until the
        broker says that they are passed.

        Raises: EngineError; OffsetsGoneError if the broker no longer has a range's beginning.
        """
        library = kafka_library()
        left = {each: until for each, (since, until) in ranges.items() if until > since}
        if not left:
            return
        consumer = library.Consumer(
            self.settings()
            | {
                "group.id": GROUP,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
                "fetch.min.bytes": 65_536,
                "queued.max.messages.kbytes": 65_536,
            }
        )
        try:
            starts = [library.TopicPartition(topic, number, ranges[topic, number][0]) for topic, number in left]
            with self.explained("read messages"):
                consumer.assign(starts)
            yield from self._polled(library, consumer, left)
        finally:
            consumer.close()

    def _polled(self, library: Any, consumer: Any, left: dict[tuple[str, int], int]) -> Iterator[list[Any]]:
        heard = time.monotonic()
        while left:
            with self.explained("read messages"):
                found = consumer.consume(MOST_MESSAGES, POLL)
            if found:
                heard = time.monotonic()
            elif time.monotonic() - heard > SILENCE:
                raise self._unreachable(f"no message or event for {SILENCE:.0f} seconds")
            kept = []
            for message in found:
                part = (message.topic(), message.partition())
                if message.error() is not None:
                    self._judge(library, message, part, left)
                elif part in left and message.offset() < left[part]:
                    kept.append(message)
                if part in left and (message.offset() or 0) >= left[part] - (message.error() is None):
                    del left[part]
                    consumer.incremental_unassign([library.TopicPartition(*part)])
            if kept:
                yield kept

    def _judge(self, library: Any, message: Any, part: tuple[str, int], left: Mapping[tuple[str, int], int]) -> None:
        """Raise for an error of a partition that is still read; its end is no error."""
        error = message.error()
        codes = library.KafkaError
        if error.code() == codes._PARTITION_EOF or (part not in left and message.topic() is not None):
            return
        if error.code() in (codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE):
            raise OffsetsGoneError(*part)
        raise self._unreachable(error.str())

    def _hear(self, error: Any) -> None:
        self._heard.append(error.str())
        del self._heard[:-3]

    @contextmanager
    def explained(self, what: str) -> Iterator[None]:
        """Turn an error of the library into one that says what sqlrun tried and what to check."""
        try:
            yield
        except kafka_library().KafkaException as error:
            told = error.args[0].str() if hasattr(error.args[0], "str") else str(error.args[0])
            raise self._unreachable(f"{told} (while it tried to {what})") from error

    def _unreachable(self, told: str) -> EngineError:
        heard = [text for text in dict.fromkeys(self._heard) if text not in told]
        more = f": {'; '.join(heard)}" if heard else ""
        return EngineError(
            f"SR748 the broker of the connection `{self.name}` doesn't answer: {told}{more}. Check that it runs, and "
            "`bootstrap`, `protocol`, `username` and `password` of the connection in the profile"
        )


class OffsetsGoneError(Exception):
    """The broker no longer has the first offset of a range of a partition."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic, self.partition = topic, partition
        super().__init__(f"{topic}/{partition}")


def kafka_library() -> Any:
    """Return the client library. Raises: EngineError if it isn't installed."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise EngineError(f"Kafka needs the package confluent-kafka: {EXTRA}") from error
    return confluent_kafka
