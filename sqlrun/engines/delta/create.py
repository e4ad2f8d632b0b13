"""Creation of models' tables: the first entry of a Delta log. Shell: Delta files."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from sqlrun.engine_api import TableSpec
from sqlrun.engines.delta import deletion_vectors
from sqlrun.engines.delta import table as delta_table
from sqlrun.storage.factory import storage_of
from sqlrun.version import __version__

# Features that sqlrun's writers support in such a table; delta-rs would name features that none of its columns needs.
WRITERS = ("appendOnly", "changeDataFeed", "invariants")
NTZ = "timestampNtz"


def create(table: TableSpec) -> None:
    """Create the empty table as version 0; do nothing if it exists."""
    if delta_table.head(table.path) is not None:
        return
    file = delta_table.entry_path(table.path, 0)
    with delta_table.explained(f"{table.name} can't be created"):
        storage_of(file).put_if_absent(file, _entry(table).encode(), synced=False)


def _entry(table: TableSpec) -> str:
    now = time.time_ns() // 1_000_000
    schema = json.dumps(delta_table.struct_of(table.columns), separators=(",", ":"), ensure_ascii=False)
    configuration = dict(delta_table.PROPERTIES) | (dict(delta_table.VECTORS) if table.vectors else {})
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": list(table.partition_by),
        "createdTime": now,
        "configuration": configuration,
    }
    info: dict[str, Any] = {
        "timestamp": now,
        "operation": "CREATE TABLE",
        "operationParameters": {},
        "txnId": str(uuid.uuid4()),
    }
    actions = (
        {"commitInfo": info | {"engineInfo": f"sqlrun:{__version__}", "isBlindAppend": True}},
        {"protocol": _protocol(schema, vectors=table.vectors)},
        {"metaData": metadata},
    )
    return "".join(json.dumps(action, separators=(",", ":"), ensure_ascii=False) + "\n" for action in actions)


def _protocol(schema: str, *, vectors: bool) -> dict[str, Any]:
    """Return the lowest protocol that supports the table's features."""
    readers = [*([deletion_vectors.FEATURE] if vectors else []), *([NTZ] if '"timestamp_ntz"' in schema else [])]
    if not readers:
        return {"minReaderVersion": 1, "minWriterVersion": 4}
    named = {"readerFeatures": readers, "writerFeatures": [*readers, *WRITERS]}
    return {"minReaderVersion": 3, "minWriterVersion": 7, **named}
