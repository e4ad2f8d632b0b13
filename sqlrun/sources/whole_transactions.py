"""Kafka sources of one database, cut so that a tick takes whole transactions of it. Shell: the broker, a file.

The sources with the same connection and `transactions` topic form a group. The first of them that lands in a tick
finds the cut for all; the others land up to the same one, also if more has arrived since. A file remembers the last
cut, so that what was before it isn't read again. It says what the broker had: if it is lost, the next cut takes longer.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote

from sqlrun.decoding import transaction_marks
from sqlrun.decoding.change_events import ChangeEvents
from sqlrun.decoding.transaction_marks import Mark
from sqlrun.decoding.undecodable import Undecodable
from sqlrun.errors import SourceError
from sqlrun.runtime.text_table import counted
from sqlrun.source_api import CompleteTo, Decode
from sqlrun.sources.kafka import Kafka, limited
from sqlrun.sources.kafka_client import Client, Key, OffsetsGoneError
from sqlrun.sources.kafka_part import Part
from sqlrun.sources.message_values import Changed
from sqlrun.sources.transaction_cut import Complete, Cut, Partition, cut
from sqlrun.storage.factory import storage_of

MARKS = 200_000  # maximum number of marks that a tick reads
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Before:
    """The last cut: the name of the transaction topic's partition, the last transaction, and the partitions' ends."""

    marks: str = ""
    complete: Complete = field(default_factory=Complete)
    ends: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Followed:
    """A partition of a member, and the range of its offsets after the last cut."""

    part: Part
    source: Kafka
    events: ChangeEvents
    since: int
    until: int


@dataclass(slots=True)
class Group:
    """The sources of one transaction topic. `place` is the file of the last cut. Threads share it."""

    topic: str
    client: Client
    members: tuple[Kafka, ...]
    place: str
    _cut: Cut | None = field(default=None, init=False)
    _failure: SourceError | None = field(default=None, init=False)
    _is_noted: bool = field(default=False, init=False)
    _lost: int = field(default=0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def renew(self) -> None:
        """Forget the cut: the next landing finds a new one."""
        with self._lock:
            self._cut, self._failure, self._is_noted = None, None, False

    def ends(self) -> Mapping[str, int]:
        """Return the end of each partition of the members, the same in a tick. Raises: SourceError."""
        with self._lock:
            if self._failure is not None:
                raise SourceError(str(self._failure))
            if self._cut is None:
                try:
                    self._cut = self._found()
                except SourceError as error:
                    # The other members needn't wait for the same broker, one after the other.
                    self._failure = error
                    raise
            return self._cut.ends

    def complete(self) -> CompleteTo | None:
        """Return until where the tick has whole transactions; None if no member looked for new messages."""
        with self._lock:
            found = self._cut
        if found is None:
            return None
        last, connection = found.complete, self.members[0].topic.connection
        at = EPOCH + timedelta(milliseconds=last.committed) if last.committed else None
        return CompleteTo(connection, self.topic, last.transaction, at, last.offset, found.waiting)

    def notes(self) -> tuple[str, ...]:
        """Return what a tick must say, once: until where it is complete if messages wait, and marks that are gone."""
        with self._lock:
            found, is_noted, self._is_noted = self._cut, self._is_noted, True
        if is_noted:
            return ()
        texts = list[str]()
        if found is not None and found.waiting:
            last = found.complete
            at = EPOCH + timedelta(milliseconds=last.committed)
            until = f"the transaction {last.transaction} of {at:%Y-%m-%d %H:%M:%S} UTC" if last.transaction else "none"
            texts.append(f"complete to {until}; {counted(found.waiting, 'message')} wait: {found.reason}")
        if self._lost:
            texts.append(
                f"the broker deleted {counted(self._lost, 'mark')} of {self.topic} before they were read: the events "
                "of their transactions landed without being counted"
            )
        return tuple(texts)

    def _found(self) -> Cut:
        """Return the next cut, and remember it."""
        facts = self.client.topics(self.topic, "").get(self.topic)
        if facts is not None and len(facts.partitions) != 1:
            raise SourceError(
                f"SR755 the transaction topic {self.topic} has {len(facts.partitions)} partitions, and its marks have "
                "no order then. Create it with one partition"
            )
        topic = None if facts is None else Part(self.topic, facts.partitions[0], facts.id)
        before = self._before("" if topic is None else topic.name)
        marks = [] if topic is None else list(self._marks(topic, before.complete.offset))
        followed = self._followed(before)
        factor = 1
        while True:
            partitions = self._windows(followed, before, factor)
            self._read(partitions, followed)
            found = cut(marks, partitions, before.complete)
            if all(one.until == followed[name].until for name, one in partitions.items()):
                break
            if any(found.ends[name] > one.since for name, one in partitions.items()):
                found = replace(found, waiting=0)  # the next tick goes on
                break
            factor *= 2  # the next transaction has more messages than a tick takes
        self._remember(Before(before.marks, found.complete, {**before.ends, **found.ends}))
        return found

    def _followed(self, before: Before) -> dict[str, Followed]:
        """Return the partitions of all members; one that no cut has yet begins with its first retained message."""
        found = {}
        for source in self.members:
            assert isinstance(source.values, Changed)
            topics = self.client.topics(source.topic.topic, source.topic.pattern)
            parts = [Part(name, number, facts.id) for name, facts in topics.items() for number in facts.partitions]
            offsets = self.client.offsets([part.key for part in parts])
            for part in parts:
                now = offsets[part.key]
                since = min(max(now.first, before.ends.get(part.name, now.first)), now.end)
                found[part.name] = Followed(part, source, source.values.events, since, now.end)
        return found

    def _marks(self, topic: Part, offset: int) -> Iterator[tuple[int, Mark]]:
        """Yield the marks of transactions from an offset on, with their offsets."""
        now = self.client.offsets([topic.key])[topic.key]
        self._lost = max(0, now.first - offset) if offset else 0
        since = min(max(now.first, offset), now.end)
        for (_, at), _, text, fault in self._texts({topic.key: (since, min(now.end, since + MARKS))}, self.members[0]):
            try:
                if fault is not None:
                    raise Undecodable(fault)
                mark = transaction_marks.mark(text)
            except Undecodable as error:
                raise SourceError(
                    f"SR755 the message {topic.shown}/{at} of the transaction topic can't be used: {error.reason}. "
                    "Correct `transactions` of the sources: the topic has the marks of one connector, and nothing else"
                ) from error
            if mark is not None:
                yield at, mark

    def _windows(self, followed: Mapping[str, Followed], before: Before, factor: int) -> dict[str, Partition]:
        """Return the partitions to read, with `factor` times as many offsets of each source as a tick takes."""
        found = {}
        for source in self.members:
            own = {name: (one.since, one.until) for name, one in followed.items() if one.source is source}
            for name, (since, until) in limited(own, source.topic.max_offsets_per_tick * factor).items():
                table = transaction_marks.table_of(followed[name].events.changes.table)
                found[name] = Partition(table, since, until, self._lost > 0 or name not in before.ends)
        return found

    def _read(self, partitions: Mapping[str, Partition], followed: Mapping[str, Followed]) -> None:
        """Add to each partition the transactions of its messages. A message that can't be read belongs to none."""
        for source in self.members:
            own = {one.part.key: name for name, one in followed.items() if one.source is source}
            ranges = {key: (partitions[name].since, partitions[name].until) for key, name in own.items()}
            for (key, offset), message_key, text, fault in self._texts(ranges, source):
                name = own[key]
                try:
                    member = None if fault is not None else transaction_marks.member(followed[name].events, text)
                except Undecodable:
                    continue
                if member is not None:
                    partitions[name].add(offset, message_key, member)

    def _texts(
        self, ranges: Mapping[Key, tuple[int, int]], source: Kafka
    ) -> Iterator[tuple[tuple[Key, int], bytes, str, str | None]]:
        """Yield partition, offset, key, text and fault of the messages of ranges that have a value."""
        assert isinstance(source.values, Changed)
        decode: Decode = source.values.texts()
        try:
            for found in self.client.messages(ranges):
                for key, messages in found.items():
                    held = [message for message in messages if message.value() is not None]
                    texts, faults = decode([message.value() for message in held], [""] * len(held))
                    for message, text, fault in zip(held, texts, faults, strict=True):
                        yield (key, message.offset()), message.key() or b"", text, fault
        except OffsetsGoneError as error:
            raise SourceError(f"SR748 {error} can't be read from its first offset") from error

    def _before(self, marks: str) -> Before:
        """Return the last cut; an empty one if there is none, or if the transaction topic was created again."""
        try:
            found = json.loads(storage_of(self.place).text(self.place))
            ends = {name: int(end) for name, end in found["ends"].items()}
            kept = Before(found["marks"], _complete(found["complete"]), ends)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            kept = Before()
        return kept if kept.marks == marks else Before(marks)

    def _remember(self, before: Before) -> None:
        storage = storage_of(self.place)
        storage.make_folder(self.place.rpartition("/")[0])
        storage.put(self.place, json.dumps(asdict(before)).encode(), synced=False)


def _complete(found: Mapping[str, Any]) -> Complete:
    recent = tuple(map(str, found["recent"]))
    return Complete(str(found["transaction"]), int(found["committed"]), int(found["offset"]), recent)


def place_of(folder: str, connection: str, topic: str) -> str:
    """Return the file of a group's last cut.

    >>> place_of("warehouse/_sqlrun", "kafka", "shop.transaction")
    'warehouse/_sqlrun/transactions/kafka,shop.transaction.json'
    """
    return f"{folder}/transactions/{quote(connection, safe='')},{topic}.json"
