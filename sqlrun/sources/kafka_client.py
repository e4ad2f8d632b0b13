"""Kafka's broker: topics, offsets and messages, with errors that say what to do. Shell: the network."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlrun.errors import SourceError

if TYPE_CHECKING:
    from sqlrun.project import Connection

EXTRA = "pip install 'sqlrun[kafka]'"
# Seconds for a request, and without any message or event while reading.
REQUEST_TIMEOUT, SILENCE = 20.0, 60.0
# Messages at once, and seconds to wait for the first of them, and for others.
MOST_MESSAGES, POLL, MOMENT = 10_000, 0.5, 0.005
# Errors that pass by themselves while a partition gets a leader, and the seconds between two requests.
TRANSIENT = (
    "NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "REPLICA_NOT_AVAILABLE", "UNKNOWN_LEADER_EPOCH",
    "FENCED_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE", "NOT_CONTROLLER",
)  # fmt: skip
PAUSE = 0.2
# No sqlrun consumer joins a group, so none is ever rebalanced; the client library requires a name.
GROUP = "sqlrun"
INTERNAL = "__"
# The end of the library's messages, which differs each time.
_SINCE = re.compile(r" \(after [0-9]+ms in state [^)]*\)$")
# A partition: the topic and the number.
Key = tuple[str, int]


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
    _admin: Any = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[Client], tuple[str, Connection]]:
        """Return what another process needs to open its own connection."""
        return Client, (self.name, self.connection)

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

        Raises: SourceError if the broker can't be reached or refuses.
        """
        library = kafka_library()
        with self.explained("list the topics"):
            admin = self._administration(library)
            names = [topic] if topic else self._matching(admin, pattern)
            if not names:
                return {}
            asked = admin.describe_topics(library.TopicCollection(names), request_timeout=REQUEST_TIMEOUT)
            found = {}
            for name, future in asked.items():
                try:
                    one = future.result()
                except library.KafkaException as error:
                    if error.args[0].code() == library.KafkaError.UNKNOWN_TOPIC_OR_PART:
                        continue
                    raise
                partitions = tuple(sorted(each.id for each in one.partitions))
                found[name] = TopicFacts(str(one.topic_id) if one.topic_id else "", partitions)
            return found

    def offsets(self, partitions: Sequence[Key]) -> dict[Key, Offsets]:
        """Return the offsets of partitions. The end is the last stable offset: no open transaction lies before it.

        Raises: SourceError.
        """
        if not partitions:
            return {}
        library = kafka_library()
        until = time.monotonic() + REQUEST_TIMEOUT
        with self.explained("list the offsets"):
            while True:
                try:
                    return self._offsets(library, partitions)
                except library.KafkaException as error:
                    # The library itself repeats a request only for a consumer.
                    if error.args[0].code() not in _transient(library) or time.monotonic() > until:
                        raise
                    time.sleep(PAUSE)

    def _offsets(self, library: Any, partitions: Sequence[Key]) -> dict[Key, Offsets]:
        admin = self._administration(library)
        level = library.IsolationLevel.READ_COMMITTED
        sides = []
        for spec in (library.admin.OffsetSpec.earliest(), library.admin.OffsetSpec.latest()):
            asked = {library.TopicPartition(topic, number): spec for topic, number in partitions}
            sides.append(admin.list_offsets(asked, isolation_level=level, request_timeout=REQUEST_TIMEOUT))
        # Both requests are under way before the first answer is waited for.
        first, end = (
            {(one.topic, one.partition): future.result().offset for one, future in answers.items()} for answers in sides
        )
        return {each: Offsets(first[each], end[each]) for each in partitions}

    def _administration(self, library: Any) -> Any:
        """Return the client of administration; it connects once."""
        if self._admin is None:
            self._admin = library.admin.AdminClient(self.settings())
        return self._admin

    def _matching(self, admin: Any, pattern: str) -> list[str]:
        listed = admin.list_topics(timeout=REQUEST_TIMEOUT).topics
        return sorted(name for name in listed if re.fullmatch(pattern, name) and not name.startswith(INTERNAL))

    def messages(self, ranges: Mapping[Key, tuple[int, int]]) -> Iterator[dict[Key, list[Any]]]:
        """Yield the messages of ranges of offsets, as lists of the library's messages by partition, in their order.

        Aborted transactions are left out. Offsets without a message at the end of a range are waited for, until the
        broker says that they are passed.

        Raises: SourceError; OffsetsGoneError if the broker no longer has a range's beginning.
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
                # A range ends before the last stable offset, so that the broker has all of it now.
                "fetch.min.bytes": 1,
                "fetch.wait.max.ms": 50,
                "fetch.message.max.bytes": 4_194_304,
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

    def _polled(self, library: Any, consumer: Any, left: dict[Key, int]) -> Iterator[dict[Key, list[Any]]]:
        heard = time.monotonic()
        while left:
            with self.explained("read messages"):
                # The library waits until it has as many as it is asked for: first for one, then for a moment.
                found = consumer.consume(1, POLL)
                found += consumer.consume(MOST_MESSAGES, MOMENT) if found else []
            if found:
                heard = time.monotonic()
            elif time.monotonic() - heard > SILENCE:
                raise self._unreachable(f"no message or event for {SILENCE:.0f} seconds")
            groups: dict[Key, list[Any]] = {}
            passed: dict[Key, int] = {}
            for message in found:
                part = message.topic(), message.partition()
                if message.error() is None:
                    groups.setdefault(part, []).append(message)
                else:
                    self._judge(library, message, part, left)
                    passed[part] = message.offset() or 0
            kept = {part: _below(group, left[part]) for part, group in groups.items() if part in left}
            for part, group in groups.items():
                passed[part] = max(passed.get(part, 0), group[-1].offset() + 1)
            for part, offset in passed.items():
                if part in left and offset >= left[part]:
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
        self._heard.append(_SINCE.sub("", error.str()))
        del self._heard[:-3]

    @contextmanager
    def explained(self, what: str) -> Iterator[None]:
        """Turn an error of the library into one that says what sqlrun tried and what to check."""
        try:
            yield
        except kafka_library().KafkaException as error:
            message = error.args[0].str() if hasattr(error.args[0], "str") else str(error.args[0])
            raise self._unreachable(f"{message} (while it tried to {what})") from error

    def _unreachable(self, message: str) -> SourceError:
        if self._admin is not None:
            # The library calls `_hear` only while it is polled.
            self._admin.poll(0)
        heard = [text for text in dict.fromkeys(self._heard) if text not in message]
        more = f": {'; '.join(heard)}" if heard else ""
        return SourceError(
            f"SR748 the broker of the connection `{self.name}` doesn't answer: {message}{more}. Check that it runs, "
            "and `bootstrap`, `protocol`, `username` and `password` of the connection in the profile"
        )


def _transient(library: Any) -> set[int]:
    return {getattr(library.KafkaError, name) for name in TRANSIENT}


def _below(messages: list[Any], until: int) -> list[Any]:
    """Return the messages before an offset."""
    if messages[-1].offset() < until:
        return messages
    return [message for message in messages if message.offset() < until]


class OffsetsGoneError(Exception):
    """The broker no longer has the first offset of a range of a partition."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic, self.partition = topic, partition
        super().__init__(f"{topic}/{partition}")


def kafka_library() -> Any:
    """Return the client library. Raises: SourceError if it isn't installed."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise SourceError(f"Kafka needs the package confluent-kafka: {EXTRA}") from error
    return confluent_kafka
