"""Features of a Delta table that only Spark writes. Pure."""

from __future__ import annotations

from typing import Any

# Features whose tables delta-rs writes as Delta's protocol asks for; of all others Spark is the one who knows.
WRITTEN = frozenset(
    {"appendOnly", "invariants", "changeDataFeed", "timestampNtz", "deletionVectors", "variantType", "v2Checkpoint"}
)  # fmt: skip
# From this writer version on features are named; before, the version says which there may be.
NAMED = 7
OLDER = {5: ("columnMapping",), 6: ("columnMapping", "identityColumns")}


def foreign(table: Any) -> tuple[str, ...]:
    """Return the names of the features of an open table that delta-rs can't write, in order; none of most tables."""
    protocol = table.protocol()
    if protocol.min_writer_version >= NAMED:
        return tuple(sorted(set(protocol.writer_features or ()) - WRITTEN))
    return OLDER.get(protocol.min_writer_version, ())
