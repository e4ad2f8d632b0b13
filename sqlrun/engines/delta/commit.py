"""Atomic commits that sqlrun itself writes to a Delta table's log. Shell: Delta files."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from sqlrun.engine_api import StoredColumn, Write
from sqlrun.engines.delta import deletion_vectors, table_facts
from sqlrun.engines.delta import stats as delta_stats
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.storage.factory import storage_of
from sqlrun.version import __version__

PRIMITIVE = re.compile(
    r"string|long|integer|short|byte|float|double|boolean|binary|date|timestamp|timestamp_ntz|decimal\(\d+,\d+\)"
)
PARTITIONS = {"string", "long", "integer", "short", "byte", "boolean", "date", "timestamp", "timestamp_ntz"}
# Names that DuckDB uses for a row's position, and names of columns in change files.
TAKEN = {"filename", "file_index", "file_row_number", "_change_type", "_commit_version", "_commit_timestamp"}
LEGACY = (1, 4)
FEATURES = {"changeDataFeed", "timestampNtz", "appendOnly", "invariants", deletion_vectors.FEATURE}


@dataclass(frozen=True, slots=True)
class File:
    """A file of a table: its path below the table's folder, its partition values, its size and statistics."""

    path: str
    partition: Mapping[str, str | None]
    size: int
    rows: int = 0
    stats: str = ""

    @property
    def entry(self) -> str:
        """Return the path as the log has it: a URI, which escapes a folder's escapes again."""
        return quote(self.path, safe="/=:~!$&'()*+,;@")


@dataclass(frozen=True, slots=True)
class Gone:
    """A removed file, as the log names it: its path, partition, size and deletion vector."""

    path: str
    partition: Mapping[str, str | None]
    size: int
    vector: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Marked:
    """A retained file with more deleted rows: its entry in the log, and its new deletion vector."""

    entry: Mapping[str, Any]
    vector: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """The contents of a commit: added files, removed files, files with newly deleted rows, and change files."""

    operation: str
    parameters: Mapping[str, str]
    metrics: Mapping[str, int]
    added: tuple[File, ...]
    removed: tuple[Gone, ...] = ()
    marked: tuple[Marked, ...] = ()
    feed: tuple[File, ...] = ()


def ours(table: Any, write: Write) -> bool:
    """Return whether sqlrun created a table and the table demands nothing special of its writers.

    Tables with constraints, generated or renamed columns, and append-only tables are left to the
    engine's library, and so is every table if the profile sets `delta_writer: library`.
    """
    metadata, protocol = table.metadata(), table.protocol()
    return write.own_commit and _known_table(
        (protocol.min_reader_version, protocol.min_writer_version),
        frozenset((*(protocol.reader_features or ()), *(protocol.writer_features or ()))),
        frozenset(metadata.configuration.items()),
        table.schema().to_json(),
        tuple(metadata.partition_columns),
        write.table.columns,
        tuple(write.table.partition_by),
    )


@lru_cache(256)  # the same in each tick
def _known_table(
    version: tuple[int, int],
    named: frozenset[str],
    configuration: frozenset[tuple[str, str | None]],
    schema: str,
    partitions: tuple[str, ...],
    columns: tuple[StoredColumn, ...],
    partition_by: tuple[str, ...],
) -> bool:
    settings, fields = dict(configuration), json.loads(schema)
    kinds = {field["name"]: field["type"] for field in fields["fields"]}
    return (
        (version == LEGACY or (version in ((1, 7), (3, 7)) and named <= FEATURES))
        and set(settings) <= {*delta_table.PROPERTIES, *delta_table.VECTORS}
        and settings.get("delta.enableChangeDataFeed") == "true"
        and fields == delta_table.struct_of(columns)
        and all(map(_known, kinds.values()))
        and not {name.lower() for name in kinds} & TAKEN
        and partitions == partition_by
        and len(partitions) < len(kinds)
        and all(str(kinds[name]) in PARTITIONS and re.fullmatch(r"\w+", name, re.ASCII) for name in partitions)
    )


def marks(table: Any) -> bool:
    """Return whether deletion vectors may delete rows: older tables don't have the property that allows them."""
    settings = table.metadata().configuration
    return deletion_vectors.allowed(table) and delta_table.VECTORS.items() <= settings.items()


def _known(kind: Any) -> bool:
    """Return whether DuckDB and all readers write and read a type of Delta's schema in the same way."""
    if isinstance(kind, str):
        return PRIMITIVE.fullmatch(kind) is not None
    match kind["type"]:
        case "array":
            return _known(kind["elementType"])
        case "map":
            return _known(kind["keyType"]) and _known(kind["valueType"])
        case _:
            return bool(kind["fields"]) and all(_known(field["type"]) for field in kind["fields"])


def commit(table: Any, write: Write, change: Change) -> None:
    """Commit a change as the version after `write.base`; the open table reads the log at its next use.

    Raises: EngineError if another commit already has this version.
    """
    if not was_committed(table, write, change):
        raise EngineError(
            f"another writer wrote version {write.base + 1} of {write.table.name} during this tick",
            model=write.table.name,
        )


def was_committed(table: Any, write: Write, change: Change) -> bool:
    """Commit a change as `commit` does; return False if another commit already has its version: one has to fail.

    Nothing is synced here; publishing the tick syncs it.
    """
    now = time.time_ns() // 1_000_000
    path, version = write.table.path, write.base + 1
    file, text = delta_table.entry_path(path, version), "\n".join(_lines(write, change, now)) + "\n"
    if not storage_of(file).put_if_absent(file, text.encode(), synced=False):
        return False
    table_facts.note(table, version, table_facts.COMMITTED, found=True)
    return True


def _lines(write: Write, change: Change, now: int) -> Iterable[str]:
    info = {
        "timestamp": now,
        "operation": change.operation,
        "operationParameters": change.parameters,
        "readVersion": write.base,
        "engineInfo": f"sqlrun:{__version__}",
        # A lost answer's commit is recognized by its bytes.
        "txnId": str(uuid.uuid4()),
        **write.metadata,
        "sqlrun.tick": str(write.tick),
        "operationMetrics": change.metrics,
    }
    yield _line("commitInfo", info)
    if write.app_id:
        yield _line("txn", {"appId": write.app_id, "version": write.tick, "lastUpdated": now})
    for removed in (*change.removed, *map(_before, change.marked)):
        removal = {"path": removed.path, "deletionTimestamp": now, "dataChange": True, "extendedFileMetadata": True}
        vector = {} if removed.vector is None else {"deletionVector": removed.vector}
        yield _line("remove", {**removal, "partitionValues": removed.partition, "size": removed.size, **vector})
    for mark in change.marked:
        entry = {**mark.entry, "dataChange": True, "stats": delta_stats.loosened(mark.entry["stats"])}
        yield _line("add", {**entry, "deletionVector": mark.vector})
    for file in change.added:
        addition = {"path": file.entry, "partitionValues": file.partition, "size": file.size, "modificationTime": now}
        yield _line("add", {**addition, "dataChange": True, "stats": file.stats})
    for file in change.feed:
        fed = {"path": file.entry, "partitionValues": file.partition, "size": file.size, "dataChange": False}
        yield _line("cdc", fed)


def _before(mark: Marked) -> Gone:
    """Return a file with its previous vector: another vector makes it another file ("Action Reconciliation")."""
    entry = mark.entry
    return Gone(entry["path"], entry["partitionValues"], entry["size"], entry.get("deletionVector"))


def _line(kind: str, action: Mapping[str, Any]) -> str:
    return json.dumps({kind: action}, separators=(",", ":"), ensure_ascii=False)
