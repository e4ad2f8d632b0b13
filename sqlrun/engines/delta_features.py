"""Features of a Delta table that only Spark writes. Pure."""

from __future__ import annotations

from typing import Any

# Features whose tables delta-rs writes as Delta's protocol asks for; of all others Spark is the one who knows.
WRITTEN = frozenset(
    {"appendOnly", "invariants", "changeDataFeed", "timestampNtz", "deletionVectors", "variantType", "v2Checkpoint"}
)  # fmt: skip
# Writer versions say before 7 which features there are: 5 adds column mapping, 6 identity columns.
NAMED, PLAIN = 7, 4
MAPPING = "delta.columnMapping.mode"


def foreign(table: Any) -> tuple[str, ...]:
    """Name the features of an open table that delta-rs can't write, in order; none of most tables."""
    protocol = table.protocol()
    found: set[str] = set()
    if protocol.min_writer_version >= NAMED:
        found = set(protocol.writer_features or ()) - WRITTEN
    elif protocol.min_writer_version > PLAIN:
        found = {f"writer version {protocol.min_writer_version}"}
    if table.metadata().configuration.get(MAPPING, "none") != "none":
        found = {name for name in found if not name.startswith("writer version")} | {"columnMapping"}
    return tuple(sorted(found))
