"""A source that is one or more Kafka topics: pending ranges of offsets, named losses, messages. Shell: the broker.

A partition of a topic is a part, `topic/number@id` with the id of the topic; its position is the range of offsets from
the first to the one after the last. A message's origin is `topic/partition/offset`. No consumer group is involved: the
checkpoint of the landing table has the offsets.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from sqlrun.decoding import confluent
from sqlrun.decoding.change_events import OTHER_TABLE
from sqlrun.errors import SourceError
from sqlrun.project import BLANK_LINE, Column, Topic
from sqlrun.runtime.text_table import counted
from sqlrun.source_api import (
    Count,
    Decode,
    Extent,
    Frame,
    Loss,
    Origin,
    Pending,
    Position,
    Positions,
    Streaming,
    Values,
)  # fmt: skip
from sqlrun.sources import attached, blank_lines, message_table, other_tables
from sqlrun.sources.folder import PIECE
from sqlrun.sources.kafka_client import Client, Offsets, OffsetsGoneError, TopicFacts
from sqlrun.sources.kafka_part import Part, part_of
from sqlrun.transpile.writer import string

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 32 * 1024 * 1024  # maximum bytes of text in a table
TOMBSTONE = "tombstone"


class Bound(Protocol):
    """What ends the ranges of several sources at the same transaction of a database."""

    def ends(self) -> Mapping[str, int]:
        """Return the end of each partition by name: the offset after the last one to land. Raises: SourceError."""

    def notes(self) -> tuple[str, ...]:
        """Return what a tick must say about it, once."""


@dataclass(frozen=True, slots=True)
class Kafka:
    """The reader of a Kafka source."""

    topic: Topic
    columns: tuple[Column, ...]  # the ones that come with a message
    client: Client
    values: Values | None = None  # what decodes values that aren't JSON
    bound: Bound | None = field(default=None, repr=False, compare=False)

    @property
    def location(self) -> str:
        """Return the topic and the connection."""
        what = f"topic {self.topic.topic}" if self.topic.topic else f"topics {self.topic.pattern}"
        return f"{what} of the connection {self.topic.connection}"

    @property
    def streaming(self) -> Streaming | None:
        """Return nothing: both engines land planned ranges of offsets."""
        return None

    def frame(self, parts: Positions) -> Frame | None:
        """Return how Spark's Kafka connector reads these ranges, and fails if the broker lacks a part of one."""
        ranges: dict[str, dict[str, tuple[int, int]]] = {}
        for part, since, until in _ranges(parts):
            ranges.setdefault(part.topic, {})[str(part.number)] = since, until
        starts = {topic: {number: one[0] for number, one in each.items()} for topic, each in ranges.items()}
        ends = {topic: {number: one[1] for number, one in each.items()} for topic, each in ranges.items()}
        options = {
            "assign": json.dumps({topic: sorted(map(int, each)) for topic, each in ranges.items()}),
            "startingOffsets": json.dumps(starts),
            "endingOffsets": json.dumps(ends),
            "failOnDataLoss": "true",
            "includeHeaders": "true",
            "kafka.isolation.level": "read_committed",
            **_spark_settings(self.client),
        }
        columns = ("concat(topic, '/', partition, '/', offset) as file", f"{_named(parts)} as part")
        if self.values is not None:
            members = f"{attached.members_in_spark(self.columns)} as members"
            return Frame("kafka", options, ("value", members, *columns), tuple(self._drops()), self.values)
        text = f"make_valid_utf8(cast({self._json_in_spark()} as string))"
        if self.topic.value_format == "text":
            text = "cast(null as string)"
        value = f"{attached.in_spark(self.columns, text)} as value"
        return Frame("kafka", options, (value, *columns), tuple(self._drops()))

    @property
    def may_have_ids(self) -> bool:
        """Return whether a message of JSON may begin with the id of its schema."""
        return self.topic.value_format == "json" and bool(self.client.connection.registry)

    def _json_in_spark(self) -> str:
        """Return Spark SQL for a message's JSON, as `confluent.json_of`."""
        if not self.may_have_ids:
            return "value"
        head = confluent.HEAD
        return f"if(startswith(value, X'00') and length(value) > {head}, substring(value, {head + 1}), value)"

    def _drops(self) -> Iterator[tuple[str, str]]:
        """Yield the reasons to leave a message out, with Spark's conditions."""
        if self.topic.tombstones == "drop":
            yield TOMBSTONE, "value is null"
        if self.topic.value_format in ("json", "csv"):
            text = f"cast({self._json_in_spark()} as string)"
            yield BLANK_LINE, f"value is not null and trim(both ' \\t' from {text}) = ''"

    def pending(self, landed: Positions) -> Pending:
        """Return the ranges after the landed ones, at most `max_offsets_per_tick` offsets, and losses.

        Raises: SourceError if the broker can't be reached, or the topic has never existed.
        """
        # Before anything is asked of the broker: what it has now contains what it had when the ends were found.
        ends = None if self.bound is None else self.bound.ends()
        topics = self.client.topics(self.topic.topic, self.topic.pattern)
        if not topics and not landed:
            raise SourceError(f"SR748 {self.location} doesn't exist. Create it, or correct `topic` of the source")
        parts = [Part(name, n, facts.id) for name, facts in topics.items() for n in facts.partitions]
        offsets = self.client.offsets([part.key for part in parts])
        losses = [*_gone(landed, topics), *self._lost(landed, parts, offsets)]
        if losses:
            return Pending({}, losses=tuple(losses))
        ready = {part.name: self._range(landed.get(part.name), offsets[part.key]) for part in parts}
        ready = {name: one for name, one in ready.items() if one[0] < one[1] or name not in landed}
        if ends is not None:
            return Pending(_up_to(ready, ends), backlog=_size(ready))
        return Pending(limited(ready, self.topic.max_offsets_per_tick), backlog=_size(ready))

    def read(self, parts: Positions) -> Reading:
        """Return a reading of ranges."""
        return Reading(self, parts)

    def commit(self, parts: Positions) -> None:
        """Do nothing: sqlrun joins no consumer group."""

    def lost(self, parts: Positions) -> tuple[Loss, ...]:
        """Return the beginnings of ranges that the broker no longer has, and ranges of partitions that are gone."""
        topics = self.client.topics(self.topic.topic, self.topic.pattern)
        ranges = {part.name: (part, since, until) for part, since, until in _ranges(parts) if since < until}
        gone = tuple(_gone({name: (None, since) for name, (_, since, _) in ranges.items()}, topics))
        left = [one for name, one in ranges.items() if name not in {loss.part for loss in gone}]
        offsets = self.client.offsets([part.key for part, _, _ in left])
        aged = []
        for part, since, until in left:
            first = offsets[part.key].first
            if first > since:
                end = min(first, until)
                aged.append(_loss("aged out", part, since, end, _unlanded(part, since, end, first), end))
        return (*gone, *aged)

    def shown(self, part: str) -> str:
        """Return topic and partition, without the topic's id."""
        return part_of(part).shown

    def span(self, position: Position) -> tuple[int | None, int | None]:
        """Return the first offset and the one after the last."""
        return position

    def gaps(self, position: Position, lines: int) -> int | None:
        """Return the number of offsets without a message: transactions and compaction leave some."""
        since, until = position
        return None if since is None or until is None else until - since - lines

    def oldest(self, origin: str) -> str:
        """Return the first message of each partition."""
        partition, offset = self.part(origin), f"regexp_extract({origin}, '[0-9]+$')"
        return (
            f"select {partition} || '/' || min(cast({offset} as bigint)) as file from held "
            f"where {origin} is not null group by {partition}"
        )

    def part(self, origin: str) -> str:
        """Return topic and partition of an origin, without its offset."""
        return f"regexp_replace({origin}, '/[0-9]+$', '')"

    def missing(self, parts: Collection[str]) -> list[str]:
        """Return the partitions that don't exist, and the origins before the first retained offset."""
        names = {name: _of_origin(name) for name in parts}
        topics = self.client.topics(self.topic.topic, self.topic.pattern)
        exist = {(name, number) for name, facts in topics.items() for number in facts.partitions}
        offsets = self.client.offsets(sorted({key for key, _ in names.values()} & exist))
        return sorted(
            name
            for name, (key, offset) in names.items()
            if key not in exist or (offset is not None and offset < offsets[key].first)
        )

    def describe(self, lines: Sequence[tuple[str, str]]) -> list[Origin]:
        """Return partition and offset of each message."""
        return [Origin(origin.rpartition("/")[0], int(origin.rpartition("/")[2])) for origin, _ in lines]

    def count(self, parts: Positions) -> Count:
        """Return the number of offsets, an estimate: transactions and compaction leave offsets without a message."""
        return Count(_size(parts), False)

    def summary(self, pending: Pending) -> str:
        """Return the number of offsets and partitions."""
        size = pending.backlog
        if not size:
            return ""
        now = _size(pending.ready)
        limit = f", {now:,} of them in the next tick" if now < size else ""
        return f"{counted(size, 'new message')} in {counted(_held(pending.ready), 'partition')}{limit}"

    def notes(self, unfinished: Sequence[str], changed: Sequence[str]) -> tuple[str, ...]:
        """Return the transactions that wait: a range neither grows nor changes."""
        return () if self.bound is None else self.bound.notes()

    def _range(self, before: Position | None, now: Offsets) -> tuple[int, int]:
        if before is not None:
            since = before[1]
            assert since is not None
            return since, now.end
        return (now.first, now.end) if self.topic.start == "earliest" else (now.end, now.end)

    def _lost(
        self, landed: Positions, parts: Sequence[Part], offsets: Mapping[tuple[str, int], Offsets]
    ) -> Iterator[Loss]:
        """Yield the losses of partitions that exist."""
        known = {(part.topic, part.id) for part in map(part_of, landed)}
        for part in parts:
            now, before = offsets[part.key], landed.get(part.name)
            if before is None:
                if (part.topic, part.id) in known and now.first > 0 and self.topic.start == "earliest":
                    what = f"the added partition {part.shown} does not begin at offset 0, but at {now.first:,}"
                    yield _loss("added", part, 0, now.first, what, now.first)
                continue
            next_one = before[1]
            if next_one is None:
                continue
            if now.first > next_one:
                what = _unlanded(part, next_one, now.first, now.first)
                yield _loss("aged out", part, next_one, now.first, what, now.first)
            elif now.end < next_one:
                what = (
                    f"{part.shown} ends at offset {now.end:,}, but sqlrun has landed up to {next_one:,}: the broker "
                    f"lost [{now.end:,}, {next_one:,}), and new messages will have these offsets again"
                )
                yield _loss("end moved back", part, now.end, next_one, what, now.end)


@dataclass(slots=True)
class Reading:
    """Ranges that are being read."""

    source: Kafka
    parts: Positions
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    extents: dict[str, Extent] = field(default_factory=dict)
    _decode: Decode | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Prepare the decoding of values, once for all messages."""
        self._decode = None if self.source.values is None else self.source.values.decoder()

    def tables(self) -> Iterator[pa.Table]:
        """Yield the messages as lines, about 32 MB of text per table; the last table may be empty.

        Raises: SourceError, also if the broker deleted a part of a range before or while it was read.
        """
        ranges = {part.key: (part, since, until) for part, since, until in _ranges(self.parts)}
        counts, dropped = dict.fromkeys(ranges, 0), {key: Counter[str]() for key in ranges}
        parts, size = list[Any](), 0
        try:
            for found in self.source.client.messages({key: one[1:] for key, one in ranges.items()}):
                for key, messages in found.items():
                    counts[key] += len(messages)
                    parts.append(self._lines(f"{key[0]}/{key[1]}", messages, dropped[key]))
                    size += parts[-1].nbytes
                if size >= CHUNK:
                    yield message_table.joined(parts, PIECE, with_faults=self._decode is not None)
                    parts, size = [], 0
        except OffsetsGoneError as error:
            raise self._gone() or SourceError(f"SR748 {error} can't be read from its first offset") from error
        gone = self._gone()
        if gone is not None:
            raise gone
        for key, (part, _, _) in ranges.items():
            reasons = {reason: count for reason, count in dropped[key].items() if count}
            self.extents[part.name] = Extent(counts[key], reasons)
        yield message_table.joined(parts, PIECE, with_faults=self._decode is not None)

    def _lines(self, place: str, messages: list[Any], dropped: Counter[str]) -> Any:
        """Return a table of a partition's messages, and count the ones that are left out."""
        topic = self.source.topic
        values: list[bytes | None] = [message.value() for message in messages]
        if topic.tombstones == "drop" and None in values:
            messages = [message for message, value in zip(messages, values, strict=True) if value is not None]
            dropped[TOMBSTONE] += len(values) - len(messages)
            values = [message.value() for message in messages]
        start = place.encode()
        origins = [b"%s/%d" % (start, message.offset()) for message in messages]
        if self._decode is not None:
            decoded = self._decoded(self._decode, values, messages, origins)
            table = other_tables.without(decoded)
            dropped[OTHER_TABLE] += len(decoded) - len(table)
        else:
            if topic.value_format == "text":
                values = [None] * len(values)
            elif self.source.may_have_ids:
                values = [None if value is None else confluent.json_of(value) for value in values]
            if self.source.columns or None in values:
                values = [self._joined(value, message) for value, message in zip(values, messages, strict=True)]
            table = message_table.of(values, origins)
        # The landing query leaves these out.
        dropped[BLANK_LINE] += blank_lines.count(table.column("value"))
        return table

    def _decoded(self, decode: Decode, values: list[bytes | None], messages: list[Any], origins: list[bytes]) -> Any:
        columns = self.source.columns
        members = [attached.members(columns, message) for message in messages] if columns else [""] * len(messages)
        texts, faults = decode(values, members)
        return message_table.of([text.encode("utf-8", "replace") for text in texts], origins, faults)

    def _joined(self, value: bytes | None, message: Any) -> bytes:
        text = None if value is None else attached.text_of(value)
        return attached.joined(text, attached.members(self.source.columns, message)).encode()

    def _gone(self) -> SourceError | None:
        """Return the error for ranges of which the broker has deleted a part meanwhile; None if it has all of them.

        Offsets without a message are no loss as long as the range's beginning is retained: they belong to a
        transaction or were compacted.
        """
        losses = "; ".join(loss.what for loss in self.source.lost(self.parts))
        if not losses:
            return None
        return SourceError(
            f"SR747 the broker deleted messages before they were read: {losses}. Retain messages for longer. To record "
            "the loss and continue: sqlrun source accept-loss"
        )


def limited(ranges: Mapping[str, tuple[int, int]], most: int) -> dict[str, tuple[int, int]]:
    """Return ranges cut to `most` offsets in total, the smallest ones whole; 0 means no limit.

    >>> limited({"a": (0, 10), "b": (5, 6), "c": (0, 0)}, 5)
    {'c': (0, 0), 'b': (5, 6), 'a': (0, 4)}
    """
    if not most:
        return dict(ranges)
    cut, left = {}, most
    ordered = sorted(ranges.items(), key=lambda item: item[1][1] - item[1][0])
    for place, (name, (since, until)) in enumerate(ordered):
        share = -(-left // (len(ordered) - place))
        size = min(until - since, share, left)
        cut[name] = since, since + size
        left -= size
    return cut


def _up_to(ranges: Mapping[str, tuple[int, int]], ends: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return ranges cut at ends; a partition without one was added a moment ago, and lands in the next tick.

    >>> _up_to({"a": (0, 9), "b": (5, 9), "c": (0, 1)}, {"a": 4, "b": 2})
    {'a': (0, 4), 'b': (5, 5)}
    """
    return {
        name: (since, max(since, min(until, ends[name]))) for name, (since, until) in ranges.items() if name in ends
    }


def _ranges(parts: Positions) -> Iterator[tuple[Part, int, int]]:
    for name, (since, until) in parts.items():
        assert since is not None and until is not None
        yield part_of(name), since, until


def _size(parts: Positions) -> int:
    return sum(until - since for _, since, until in _ranges(parts))


def _held(parts: Positions) -> int:
    return sum(until > since for _, since, until in _ranges(parts))


def _gone(landed: Positions, topics: Mapping[str, TopicFacts]) -> Iterator[Loss]:
    """Yield the losses of partitions that no longer exist."""
    for name, (_, until) in sorted(landed.items()):
        part = part_of(name)
        if until is None:
            continue
        facts = topics.get(part.topic)
        if facts is None:
            what = f"the topic {part.topic} no longer exists; sqlrun landed {part.shown} up to offset {until:,}"
            yield _loss("topic deleted", part, until, None, what, None)
        elif facts.id != part.id:
            what = (
                f"the topic {part.topic} was deleted and created again; sqlrun landed {part.shown} of the old one up "
                f"to offset {until:,}"
            )
            yield _loss("topic recreated", part, until, None, what, None)
        elif part.number not in facts.partitions:
            what = f"{part.shown} no longer exists; sqlrun landed it up to offset {until:,}"
            yield _loss("partition deleted", part, until, None, what, None)


def _loss(kind: str, part: Part, since: int, until: int | None, what: str, resumes: int | None) -> Loss:
    return Loss(kind, part.name, since, until, what, resumes)


def _named(parts: Positions) -> str:
    """Return Spark SQL for a message's part: all parts of a topic have its id."""
    ids = {part.topic: part.id for part, _, _ in _ranges(parts) if part.id}
    place = "concat(topic, '/', partition)"
    if not ids:
        return place
    cases = " ".join(f"when {string(topic, 'spark')} then {string(f'@{one}', 'spark')}" for topic, one in ids.items())
    return f"concat({place}, case topic {cases} else '' end)"


def _unlanded(part: Part, since: int, until: int, first: int) -> str:
    return f"{part.shown} begins at offset {first:,}, so [{since:,}, {until:,}) never landed"


def _of_origin(name: str) -> tuple[tuple[str, int], int | None]:
    """Return the partition of a part's name or an origin, and the origin's offset.

    A topic's id is in base64: it may contain slashes. No topic's name contains `/` or `@`.

    >>> _of_origin("orders/3@Z/x"), _of_origin("orders/3"), _of_origin("orders/3/15")
    ((('orders', 3), None), (('orders', 3), None), (('orders', 3), 15))
    """
    pieces = name.partition("@")[0].split("/")
    return (pieces[0], int(pieces[1])), int(pieces[2]) if len(pieces) == 3 else None


def _spark_settings(client: Client) -> dict[str, str]:
    """Return the settings of Kafka's Java client; they may contain secrets."""
    one = client.connection
    found = {"bootstrap.servers": one.bootstrap, "security.protocol": one.protocol, "sasl.mechanism": one.mechanism}
    if one.username:
        login = "scram.ScramLoginModule" if one.mechanism.startswith("SCRAM") else "plain.PlainLoginModule"
        name, password = (json.dumps(text, ensure_ascii=False) for text in (one.username, one.password))
        found["sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{login} required username={name} password={password};"
        )
    if one.ca_file:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": one.ca_file}
    return {f"kafka.{key}": value for key, value in found.items() if value}
