"""Tables with deletion vectors, which some readers don't support. Pure."""

from __future__ import annotations

from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.stages import Stage

# Values of `readable_by` for readers without deletion vectors; `any` stands for Delta's first reader version.
PLAIN = {"pandas", "pyarrow", "any"}
# Methods that append or overwrite: a MERGE is rare there and may copy files.
UNMARKED = {"land", "append", "partitions"}


def has_vectors(model: Compiled, stage: Stage) -> bool:
    """Return whether a MERGE into the table marks replaced rows instead of copying their files."""
    return marks(stage) and (stage.is_hidden or not is_plain(model))


def marks(stage: Stage) -> bool:
    """Return whether MERGE maintains the table."""
    return stage.method not in UNMARKED and bool(stage.key or stage.method != "full")


def is_plain(model: Compiled) -> bool:
    """Return whether the contract names a reader without deletion vectors."""
    return model.query.rendered.config.readable_by in PLAIN
