"""Log entries of a version's files, in their original form. Shell: Delta files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.storage.factory import storage_of

# Fields of an entry (Delta protocol, "Add File and Remove File"); a checkpoint adds others for its own readers.
ADD = {
    "path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "tags", "deletionVector",
    "baseRowId", "defaultRowCommitVersion", "clusteringProvider",
}  # fmt: skip


def of_files(path: str, version: int, wanted: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the entries of some files of a version, by their paths in the log, without files that aren't found.

    The search runs backwards from the version, because a file's newest entry is in effect (Delta protocol, "Action
    Reconciliation"). A version's commit is read before its checkpoint is asked for: it is mostly known.
    """
    left, found = set(wanted), dict[str, dict[str, Any]]()
    storage = storage_of(path)
    for number in range(version, -1, -1):
        if not left:
            break
        checkpoint = delta_table.checkpoint_path(path, number)
        try:
            actions = delta_table.actions(path, number)
        except EngineError:
            if storage.stamp(checkpoint) is None:
                raise
            actions = []
        for action in actions:
            if "add" in action and action["add"]["path"] in left:
                found[action["add"]["path"]] = action["add"]
                left.discard(action["add"]["path"])
        if left and storage.stamp(checkpoint) is not None:
            found |= _in_checkpoint(checkpoint, left)
            break
    return found


def brought(actions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of the files that a commit added, without those whose deletion vector it changed."""
    removed = {action["remove"]["path"] for action in actions if "remove" in action}
    return [action["add"] for action in actions if "add" in action and action["add"]["path"] not in removed]


def _in_checkpoint(file: str, wanted: set[str]) -> dict[str, dict[str, Any]]:
    import pyarrow.compute as pc

    table = delta_table.columns_of(file, ["add"])
    paths = pc.struct_field(table["add"], "path")
    matches = table["add"].filter(pc.is_in(paths, value_set=_texts(wanted, paths.type)))
    return {entry["path"]: plain(entry) for entry in matches.to_pylist()}


def _texts(values: set[str], kind: Any) -> Any:
    import pyarrow as pa

    return pa.array(sorted(values), kind)


def plain(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry in its JSON form: maps as objects, without nulls and without fields of checkpoints."""
    vector = entry.get("deletionVector")
    found = {name: value for name, value in entry.items() if name in ADD and value is not None}
    found["partitionValues"] = dict(entry["partitionValues"] or ())
    if "tags" in found:
        found["tags"] = dict(found["tags"])
    if vector is not None:
        found["deletionVector"] = {name: value for name, value in vector.items() if value is not None}
    return found
