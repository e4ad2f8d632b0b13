"""The reader of a declared source. Shell: the sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from sqlrun.decoding import confluent
from sqlrun.decoding.change_events import ChangeEvents
from sqlrun.decoding.formats import ChangeLines
from sqlrun.errors import SourceError
from sqlrun.project import JSON, KAFKA, Connection, Source, Topic
from sqlrun.source_api import SourceReader, Values
from sqlrun.sources import checkpoint, message_values, whole_transactions
from sqlrun.sources.files import Files
from sqlrun.sources.folder import Folder
from sqlrun.sources.kafka import Kafka
from sqlrun.sources.kafka_client import Client
from sqlrun.sources.message_values import Changed, Delimited, Registered
from sqlrun.sources.registry import Registry
from sqlrun.sources.whole_transactions import Group

# Turns texts of quarantined lines into their texts now, and the reasons why one can't be read.
DecodeAgain: TypeAlias = Callable[[Sequence[str]], tuple[list[str], list[str | None]]]


def reader_of(root: str, source: Source, connections: Mapping[str, Connection]) -> SourceReader:
    """Return the reader of a source by its format; `root` is the project's folder, `connections` are the profile's.

    Raises: SourceError if the profile lacks the source's connection.
    """
    match source.format:
        case _ if source.files is not None:
            return Files.of(f"{root}/{source.path}", source)
        case _ if source.format == JSON:
            return Folder(f"{root}/{source.path}")
        case _ if source.format == KAFKA and source.topic is not None:
            name = source.topic.connection
            if name not in connections:
                known = f"It has: {', '.join(sorted(connections))}." if connections else "It has none."
                raise SourceError(
                    f"SR749 the source {source.group}.{source.name} needs the connection `{name}`, which the profile "
                    f"doesn't have. {known} Add it under `connections:` of the profile"
                )
            client = Client(name, connections[name])
            values = _values(source, source.topic, client)
            if source.changes is not None:
                events = ChangeEvents(source.changes, source.columns)
                values = Changed(events, values if isinstance(values, Registered) else None)
            return Kafka(source.topic, source.attached, client, values)
        case _:
            raise AssertionError(f"unsupported format {source.format}")


def group_of(root: str, sources: Sequence[Source], connections: Mapping[str, Connection], folder: str) -> Group:
    """Return the group of sources that take whole transactions together: of one connection and transaction topic.

    `folder` is for what is known of the last cut.

    Raises: SourceError as `reader_of`.
    """
    readers = [reader for each in sources if isinstance(reader := reader_of(root, each, connections), Kafka)]
    topic = sources[0].transactions[1] if sources[0].transactions is not None else ""
    assert readers and topic
    place = whole_transactions.place_of(folder, readers[0].client.name, topic)
    return Group(topic, readers[0].client, tuple(readers), place)


def bound(reader: SourceReader, group: Group) -> SourceReader:
    """Return a reader that lands whole transactions."""
    assert isinstance(reader, Kafka)
    return replace(reader, bound=group)


def of_one_table(reader: SourceReader, folder: str) -> SourceReader:
    """Return a reader that quarantines change events of a second table with the declared name.

    The checkpoint `folder` records which one is the first.
    """
    first_table = partial(checkpoint.first_table, folder)
    match reader:
        case Kafka(values=Changed() as values):
            events = replace(values.events, first_table=first_table)
            return replace(reader, values=replace(values, events=events))
        case Files(form=ChangeLines() as form):
            return replace(reader, form=replace(form, first_table=first_table))
        case _:
            return reader


def decoder_of_quarantined(reader: SourceReader) -> DecodeAgain | None:
    """Return what decodes the texts of a source's quarantined values again; None if their text is all there is."""
    match reader:
        case Kafka(values=Registered() as values):
            return partial(message_values.decoded_again, values)
        case _:
            return None


def _values(source: Source, topic: Topic, client: Client) -> Values | None:
    """Return what decodes a topic's values; None if they need no decoding.

    Raises: SourceError if they have schemas and the connection names no registry.
    """
    match topic.value_format:
        case "avro" | "protobuf":
            if not client.connection.registry:
                raise SourceError(
                    f"SR752 the source {source.group}.{source.name} has `value_format: {topic.value_format}`, and the "
                    f"connection `{client.name}` names no schema registry. Add `registry: https://HOST` to the "
                    "connection in the profile"
                )
            kind = confluent.AVRO if topic.value_format == "avro" else confluent.PROTOBUF
            return Registered(kind, Registry(client.name, client.connection))
        case "csv":
            return Delimited(tuple(column for column in source.columns if not column.comes_from))
        case "json" | "text":
            return None
        case _:
            raise AssertionError(f"unsupported value format {topic.value_format}")
