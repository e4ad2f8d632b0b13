"""The reader of a declared source. Shell: the sources."""

from __future__ import annotations

from collections.abc import Mapping

from sqlrun.errors import SourceError
from sqlrun.project import JSON, KAFKA, Connection, Source
from sqlrun.source_api import SourceReader
from sqlrun.sources.folder import Folder
from sqlrun.sources.kafka import Kafka
from sqlrun.sources.kafka_client import Client


def reader_of(root: str, source: Source, connections: Mapping[str, Connection]) -> SourceReader:
    """Return the reader of a source by its format; `root` is the project's folder, `connections` are the profile's.

    Raises: SourceError if the profile lacks the source's connection.
    """
    match source.format:
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
            return Kafka(source.topic, source.attached, Client(name, connections[name]))
        case _:
            raise AssertionError(f"unsupported format {source.format}")
