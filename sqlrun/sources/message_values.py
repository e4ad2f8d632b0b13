"""The values of messages that aren't JSON, as lines: decoded, or their bytes and a fault. Shell: the registry.

A value that can't be decoded is one line. Its text has the bytes, so that `sqlrun quarantine replay` can decode them
when the registry has the schema.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlrun.decoding import confluent, csv_file, records
from sqlrun.decoding.change_events import OTHER_TABLE, ChangeEvents, OtherTable
from sqlrun.decoding.formats import Csv
from sqlrun.decoding.undecodable import Undecodable
from sqlrun.project import MAXWELL, Column
from sqlrun.source_api import Decode
from sqlrun.sources import attached, blank_lines
from sqlrun.sources.registry import MissingReferenceError, Registry

# The text of a value that can't be decoded: this word, its bytes, and the values that came with it.
UNDECODED = "undecoded:"
NO_HEADER = Csv(header=False)
MARKS = re.compile('["\r\n]')


@dataclass(frozen=True, slots=True)
class Registered:
    """Values of a schema in a registry. `kind`: AVRO or PROTOBUF."""

    kind: str
    registry: Registry

    def decoder(self) -> Decode:
        """Return what decodes values; it remembers schemas, and ids without one."""
        return _Registered(self.kind, self.registry).decode


@dataclass(frozen=True, slots=True)
class Delimited:
    """Values that are a record of CSV each, with the fields of `columns` in their order."""

    columns: tuple[Column, ...]

    def decoder(self) -> Decode:
        """Return what decodes values."""
        return self._decode

    def _decode(self, values: Sequence[bytes | None], members: Sequence[str]) -> tuple[list[str], list[str | None]]:
        if not self.columns:
            values = [None] * len(values)  # all columns come with the message
        found = [None if value is None else attached.text_of(value).removeprefix("\ufeff") for value in values]
        texts: list[str] = ["" if text is None else text for text in found]
        faults: list[str | None] = [None] * len(texts)
        # Text without quotes and line breaks is one record, so that all of it can be read at once.
        plain = [n for n, text in enumerate(found) if text and _is_plain(text)]
        if plain:
            table = csv_file.decode(NO_HEADER, "\n".join([texts[n] for n in plain]).encode(), self.columns)
            for n, text, fault in zip(plain, *(table.column(c).to_pylist() for c in ("value", "fault")), strict=True):
                texts[n], faults[n] = text, fault
        for n in {*range(len(found))}.difference(plain):
            text = found[n]
            if text is not None and not blank_lines.is_blank(text):
                texts[n], faults[n] = self._record(text)
        joined = [
            text if fault is not None else attached.joined(None if value is None else text, member)
            for text, fault, value, member in zip(texts, faults, found, members, strict=True)
        ]
        return joined, faults

    def _record(self, text: str) -> tuple[str, str | None]:
        table = csv_file.decode(NO_HEADER, text.encode(), self.columns)
        if table.num_rows != 1:
            return records.visible(text), f"CSV: {table.num_rows:,} records in one message"
        (row,) = table.to_pylist()
        return row["value"], row["fault"]


@dataclass(frozen=True, slots=True)
class Changed:
    """Values that are change events of a database, in JSON or of a schema in a registry."""

    events: ChangeEvents
    registered: Registered | None = None

    def decoder(self) -> Decode:
        """Return what decodes values."""
        return partial(self._decode, self.texts())

    def texts(self) -> Decode:
        """Return what decodes values to the JSON texts of their events."""
        return _json_texts if self.registered is None else self.registered.decoder()

    def _decode(
        self, inner: Decode, values: Sequence[bytes | None], members: Sequence[str]
    ) -> tuple[list[str], list[str | None]]:
        """Return the lines of events, and why others have none; a value that is None or blank stays without a row."""
        texts, faults = inner(values, [""] * len(values))
        found = [
            (attached.joined(None, member), None) if value is None else self._line(text, fault, member)
            for value, text, fault, member in zip(values, texts, faults, members, strict=True)
        ]
        return [line for line, _ in found], [fault for _, fault in found]

    def _line(self, text: str, fault: str | None, member: str) -> tuple[str, str | None]:
        if fault is not None or blank_lines.is_blank(text):
            return text, fault
        try:
            found = self.events.line(text, member)
        except OtherTable as error:
            # Maxwell sends all tables to one topic, Debezium each to its own.
            return records.visible(text), OTHER_TABLE if self.events.changes.format == MAXWELL else error.reason
        except Undecodable as error:
            return records.visible(text), error.reason
        if found is None:
            return records.visible(text), "the change event has no payload"
        return attached.joined(found, member), None


def _json_texts(values: Sequence[bytes | None], members: Sequence[str]) -> tuple[list[str], list[str | None]]:
    """Return the texts of values in JSON, with or without the id of a schema."""
    texts = ["" if value is None else attached.text_of(confluent.json_of(value)) for value in values]
    return texts, [None] * len(texts)


def _is_plain(text: str) -> bool:
    return not MARKS.search(text) and not blank_lines.is_blank(text)


@dataclass(slots=True)
class _Registered:
    """What decodes the values of one reading."""

    kind: str
    registry: Registry
    known: dict[int, Callable[[bytes], str] | Undecodable] = field(default_factory=dict)

    def decode(self, values: Sequence[bytes | None], members: Sequence[str]) -> tuple[list[str], list[str | None]]:
        texts, faults = list[str](), list[str | None]()
        for value, member in zip(values, members, strict=True):
            fault = None
            try:
                text = attached.joined(None if value is None else self._text(value), member)
            except Undecodable as error:
                assert value is not None
                text, fault = undecoded(value, member), error.reason
            texts.append(text)
            faults.append(fault)
        return texts, faults

    def _text(self, value: bytes) -> str:
        number, payload = confluent.split(value)
        found = self.known.get(number)
        if found is None:
            found = self.known[number] = self._payloads(number)
        if isinstance(found, Undecodable):
            raise Undecodable(found.reason)
        try:
            return found(payload)
        except Undecodable as error:
            raise Undecodable(f"{error.reason} (schema id {number})") from error

    def _payloads(self, number: int) -> Callable[[bytes], str] | Undecodable:
        """Return what decodes payloads of a schema, or why none can be decoded.

        Raises: SourceError if the registry doesn't answer: its messages land later.
        """
        try:
            schema = self.registry.schema(number)
            if schema is None:
                return Undecodable(f"unknown schema id {number}")
            if schema.kind != self.kind:
                return Undecodable(f"the schema id {number} is of {schema.kind}, not of {self.kind}")
            return confluent.payloads(schema.kind, schema.text, schema.references)
        except MissingReferenceError as error:
            return Undecodable(f"the schema id {number} lacks a part: {error}")
        except Undecodable as error:
            return Undecodable(f"{error.reason} (schema id {number})")


def undecoded(value: bytes, members: str) -> str:
    """Return the text of a value that can't be decoded: its own text if it has no id of a schema, else its bytes.

    >>> undecoded(b"plain", ""), undecoded(bytes([0, 1]), '"k":2')
    ('plain', 'undecoded:AAE= {"k":2}')
    """
    try:
        text = "" if value.startswith(confluent.MAGIC) else value.decode()
    except UnicodeDecodeError:
        text = ""
    if text.strip() and "".join(text.split()).isprintable() and not text.startswith(UNDECODED):
        return records.visible(text)
    return f"{UNDECODED}{base64.b64encode(value).decode()}{f' {{{members}}}' if members else ''}"


def decoded_again(values: Registered, texts: Sequence[str]) -> tuple[list[str], list[str | None]]:
    """Return the texts and the faults of quarantined values now; a text without a value's bytes stays as it is.

    Raises: SourceError if the registry doesn't answer.
    """
    decode, found = values.decoder(), list[tuple[str, str | None]]()
    for text in texts:
        value, members = bytes_of(text) or (text.encode("utf-8", "replace"), "")
        (now,), (fault,) = decode([value], [members])
        found.append((text if fault is not None else now, fault))
    return [text for text, _ in found], [fault for _, fault in found]


def bytes_of(text: str) -> tuple[bytes, str] | None:
    """Return the value and the members of a text of `undecoded`; None for any other text.

    >>> bytes_of(undecoded(b"\\0", '"k":2')), bytes_of("plain")
    ((b'\\x00', '"k":2'), None)
    """
    if not text.startswith(UNDECODED):
        return None
    data, _, members = text.removeprefix(UNDECODED).partition(" ")
    try:
        return base64.b64decode(data, validate=True), members[1:-1]
    except binascii.Error:
        return None
