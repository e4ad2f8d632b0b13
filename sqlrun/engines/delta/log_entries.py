"""How a Delta log names the files of a version: their entries as they were written. Shell: Delta files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlrun.engines.delta import table as delta_table
from sqlrun.storage.factory import storage_of

# What an entry has (Delta protocol, "Add File and Remove File"); a checkpoint has more, for its own readers.
ADD = {
    "path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "tags", "deletionVector",
    "baseRowId", "defaultRowCommitVersion", "clusteringProvider",
}  # fmt: skip


def of_files(path: str, version: int, wanted: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Find the entries of some files of a version, by their paths in the log; those that aren't found are left out.

    Backwards from the version: the newest entry of a file is the one that counts (Delta protocol, "Action
    Reconciliation").
    """
    left, found = set(wanted), dict[str, dict[str, Any]]()
    for number in range(version, -1, -1):
        if not left:
            break
        checkpoint = delta_table.checkpoint_path(path, number)
        if storage_of(path).is_there(checkpoint):
            found |= _in_checkpoint(checkpoint, left)
            break
        for action in delta_table.actions(path, number):
            if "add" in action and action["add"]["path"] in left:
                found[action["add"]["path"]] = action["add"]
                left.discard(action["add"]["path"])
    return found


def brought(actions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the entries of the files that a commit has brought; those that it only marks were there."""
    gone = {action["remove"]["path"] for action in actions if "remove" in action}
    return [action["add"] for action in actions if "add" in action and action["add"]["path"] not in gone]


def _in_checkpoint(file: str, wanted: set[str]) -> dict[str, dict[str, Any]]:
    import pyarrow.compute as pc

    table = delta_table.columns_of(file, ["add"])
    paths = pc.struct_field(table["add"], "path")
    kept = table["add"].filter(pc.is_in(paths, value_set=_texts(wanted, paths.type)))
    return {entry["path"]: plain(entry) for entry in kept.to_pylist()}


def _texts(values: set[str], kind: Any) -> Any:
    import pyarrow as pa

    return pa.array(sorted(values), kind)


def plain(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry as JSON has it: maps as objects, nothing that is null, nothing that only checkpoints have."""
    vector = entry.get("deletionVector")
    found = {name: value for name, value in entry.items() if name in ADD and value is not None}
    found["partitionValues"] = dict(entry["partitionValues"] or ())
    if "tags" in found:
        found["tags"] = dict(found["tags"])
    if vector is not None:
        found["deletionVector"] = {name: value for name, value in vector.items() if value is not None}
    return found
