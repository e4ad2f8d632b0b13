"""Features of a Delta table that only Spark supports. Pure."""

from __future__ import annotations

from typing import Any

# Features that delta-rs supports when it writes; tables with others need Spark.
WRITTEN = frozenset(
    {"appendOnly", "invariants", "changeDataFeed", "timestampNtz", "deletionVectors", "variantType", "v2Checkpoint"}
)  # fmt: skip
# First writer version that names features; before it, the version implies them.
NAMED = 7
OLDER = {5: ("columnMapping",), 6: ("columnMapping", "identityColumns")}


def foreign(table: Any) -> tuple[str, ...]:
    """Return the features of an open table that delta-rs can't write, in order; empty for most tables."""
    protocol = table.protocol()
    if protocol.min_writer_version >= NAMED:
        return tuple(sorted(set(protocol.writer_features or ()) - WRITTEN))
    return OLDER.get(protocol.min_writer_version, ())
