"""Which tables may have deletion vectors, which some readers don't know. Pure."""

from __future__ import annotations

from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.stages import Stage

# These read no table that has the feature; `any` is whoever knows Delta's first reader version.
PLAIN = {"pandas", "pyarrow", "any"}
# Tables that are appended to or overwritten: a MERGE is rare there, and may copy.
UNMARKED = {"land", "append", "partitions"}


def has_vectors(model: Compiled, stage: Stage) -> bool:
    """Return whether a MERGE into the table marks the replaced rows, instead of copying their files."""
    return marks(stage) and (stage.is_hidden or not is_plain(model))


def marks(stage: Stage) -> bool:
    """Return whether a table is kept by a MERGE."""
    return stage.method not in UNMARKED and bool(stage.key or stage.method != "full")


def is_plain(model: Compiled) -> bool:
    """Return whether a contract names a reader that knows no deletion vectors."""
    return model.query.rendered.config.readable_by in PLAIN
