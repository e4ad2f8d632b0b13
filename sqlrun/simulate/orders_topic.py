"""A Kafka topic of simulated orders, which is continued where its last transaction ended. Shell: the broker."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from sqlrun.errors import UsageError
from sqlrun.simulate.settings import Settings, differing, from_minute, to_minute
from sqlrun.simulate.simulate import Written
from sqlrun.sources.kafka_client import REQUEST_TIMEOUT, Client, kafka_library

# A broken line may still name its order.
_ORDER = re.compile(r"""["']order_id["']\s*:\s*["']([^"']+)["']""")
_HEADERS = [("content-type", b"application/json"), ("sent-by", b"sqlrun simulate")]
# Milliseconds that a transaction may take, as long as a broker allows by default: a piece may be a day.
_LONGEST = 900_000
# A topic of samples has a history of any age, which a broker would otherwise delete after a week.
_RETENTION = {"retention.ms": "-1"}


@dataclass(slots=True)
class OrdersTopic:
    """A topic as a `simulate.Place`: a piece is a transaction.

    Each transaction also commits where it ended, and the settings, as the offset of a consumer group that has no
    members: the broker has both the messages and their end, or neither. The transactional id is the topic's, so that
    of two writers the older one can't commit.
    """

    client: Client
    topic: str
    partitions: int
    _producer: Any = field(default=None, repr=False)
    _group: Any = field(default=None, repr=False)
    _end: datetime | None = None
    _noted: str = ""

    @property
    def name(self) -> str:
        """Return the topic and its connection."""
        return f"topic {self.topic} of the connection {self.client.name}"

    @property
    def has_fine_pieces(self) -> bool:
        """Return no: readers see no pieces, and each transaction takes a tenth of a second."""
        return False

    def claim(self, settings: Settings) -> None:
        """Reject a topic with messages of other settings, or of another writer; create it if it doesn't exist.

        Raises: UsageError; EngineError if the broker can't be reached.
        """
        self._open()
        if self._end is not None:
            other = differing(json.loads(self._noted), settings)
            if other:
                raise UsageError(
                    f"{self.name} has other settings: {other}. "
                    "Continue with those, or choose another topic with --topic."
                )
        elif self._has_messages():
            raise UsageError(
                f"{self.name} has messages, and the broker has no record of how far `sqlrun simulate` wrote it. "
                "Choose another topic with --topic, or delete this one."
            )
        self._noted = json.dumps(asdict(settings))

    def end(self) -> datetime | None:
        """Return the end of the last committed transaction; None without any."""
        self._open()
        return self._end

    def write(self, end: datetime, minutes: Iterable[tuple[int, list[str]]]) -> Written:
        """Write a transaction; the time of a message is the minute in which it arrives."""
        library, producer = kafka_library(), self._producer
        count = 0
        with self._explained():
            producer.begin_transaction()
            try:
                for minute, lines in minutes:
                    for line in lines:
                        self._send(line, minute)
                    count += len(lines)
                note = library.TopicPartition(self.topic, 0, to_minute(end), self._noted)
                producer.send_offsets_to_transaction([note], self._group, REQUEST_TIMEOUT)
                producer.commit_transaction(_LONGEST / 1000)
            except BaseException:
                # Otherwise readers of committed messages would wait until the transaction times out.
                with suppress(library.KafkaException):
                    producer.abort_transaction(REQUEST_TIMEOUT)
                raise
        self._end = end
        return Written(end, count)

    def _send(self, line: str, minute: int) -> None:
        found = _ORDER.search(line)
        while True:
            try:
                self._producer.produce(
                    self.topic,
                    line.rstrip("\n"),
                    found[1] if found else None,
                    timestamp=minute * 60_000,
                    headers=_HEADERS,
                )
                return
            except BufferError:
                self._producer.poll(0.1)

    def _open(self) -> None:
        """Connect, end what an earlier writer left open, and read how far the topic is written."""
        if self._producer is not None:
            return
        library = kafka_library()
        settings = self.client.settings()
        group = f"sqlrun-simulate-{self.topic}"
        if self.topic not in self.client.topics(self.topic, ""):
            self._create(library, settings)
        with self._explained():
            producer = library.Producer(
                settings
                | {
                    "transactional.id": group,
                    "transaction.timeout.ms": _LONGEST,
                    "partitioner": "murmur2_random",  # Java's own
                    "linger.ms": 20,
                }
            )
            producer.init_transactions(REQUEST_TIMEOUT)
            consumer = library.Consumer(
                settings | {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_committed"}
            )
            try:
                found = self._committed(library, consumer)
                self._group = consumer.consumer_group_metadata()
            finally:
                consumer.close()
        if found.offset >= 0:
            self._end, self._noted = from_minute(found.offset), found.metadata
        self._producer = producer

    def _committed(self, library: Any, consumer: Any) -> Any:
        """Return the group's offset, after the broker found who coordinates the group."""
        codes = library.KafkaError
        early = (codes.NOT_COORDINATOR, codes.COORDINATOR_LOAD_IN_PROGRESS, codes.COORDINATOR_NOT_AVAILABLE)
        until = time.monotonic() + REQUEST_TIMEOUT
        while True:
            try:
                [found] = consumer.committed([library.TopicPartition(self.topic, 0)], REQUEST_TIMEOUT)
                if found.error is None:
                    return found
                raise library.KafkaException(found.error)
            except library.KafkaException as error:
                if error.args[0].code() not in early or time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def _create(self, library: Any, settings: dict[str, Any]) -> None:
        with self._explained():
            admin = library.admin.AdminClient(settings)
            made = library.admin.NewTopic(self.topic, self.partitions, config=_RETENTION)
            admin.create_topics([made])[self.topic].result(REQUEST_TIMEOUT)

    def _has_messages(self) -> bool:
        partitions = self.client.topics(self.topic, "")[self.topic].partitions
        offsets = self.client.offsets([(self.topic, number) for number in partitions])
        return any(each.end > 0 for each in offsets.values())

    @contextmanager
    def _explained(self) -> Iterator[None]:
        codes = kafka_library().KafkaError
        with self.client.explained(f"write the topic {self.topic}"):
            try:
                yield
            except kafka_library().KafkaException as error:
                fenced = (codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH)
                if error.args[0].code() in fenced:
                    raise UsageError(f"another `sqlrun simulate` writes {self.name} now. This one stopped") from error
                raise
