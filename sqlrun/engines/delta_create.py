"""Tables of models as sqlrun makes them: the first entry of a Delta log. Shell: Delta files."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

from sqlrun import __version__, durable
from sqlrun.engines import deletion_vectors, delta_files
from sqlrun.engines.protocol import TableSpec

# What sqlrun's writers keep to in such a table; delta-rs would name features that no column of it needs.
WRITERS = ("appendOnly", "changeDataFeed", "invariants")
NTZ = "timestampNtz"


def create(table: TableSpec) -> None:
    """Make the empty table as version 0, its files to have deletion vectors; nothing if it is there."""
    if delta_files.head(table.path) is not None:
        return
    log = Path(table.path) / "_delta_log"
    with delta_files.explained(f"{table.name} can't be made"):
        durable.write_new(log / f"{0:020d}.json", _entry(table), synced=False)


def _entry(table: TableSpec) -> str:
    now = time.time_ns() // 1_000_000
    schema = json.dumps(delta_files.struct_of(table.columns), separators=(",", ":"), ensure_ascii=False)
    readers = [deletion_vectors.FEATURE, *([NTZ] if '"timestamp_ntz"' in schema else [])]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": readers}
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": list(table.partition_by),
        "createdTime": now,
        "configuration": dict(delta_files.PROPERTIES) | dict(delta_files.VECTORS),
    }
    info: dict[str, Any] = {"timestamp": now, "operation": "CREATE TABLE", "operationParameters": {}}
    actions = (
        {"commitInfo": info | {"engineInfo": f"sqlrun:{__version__}", "isBlindAppend": True}},
        {"protocol": protocol | {"writerFeatures": [*readers, *WRITERS]}},
        {"metaData": metadata},
    )
    return "".join(json.dumps(action, separators=(",", ":"), ensure_ascii=False) + "\n" for action in actions)
