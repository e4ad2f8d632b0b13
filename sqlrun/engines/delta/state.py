"""State of a Delta table's version, built from the entries of its log. Shell: Delta files.

delta-rs opens no table with features that it doesn't know, and another writer may have added one; this code opens it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlrun.engines.delta import log_entries
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.storage.factory import storage_of

Entry = Mapping[str, Any]


@dataclass(slots=True)
class State:
    """Files by their paths in the log, and the table's metadata and protocol."""

    files: dict[str, Entry] = field(default_factory=dict)
    metadata: Entry | None = None
    protocol: Entry | None = None

    def follow(self, actions: Iterable[Entry]) -> bool:
        """Apply a commit; return whether all files that it removes were present."""
        found, fits = list(actions), True
        for removal in (a["remove"] for a in found if "remove" in a):
            file = self.files.get(removal["path"])
            fits = fits and file is not None and vector_of(file) == vector_of(removal)
            self.files.pop(removal["path"], None)
        for action in found:
            if "add" in action:
                self.files[action["add"]["path"]] = action["add"]
            self.metadata = action.get("metaData", self.metadata)
            self.protocol = action.get("protocol", self.protocol)
        return fits


def vector_of(entry: Entry) -> str:
    """Return the unique id of a file's deletion vector, "" if it has none (Delta protocol, "Deletion Vectors")."""
    vector = entry.get("deletionVector")
    return "" if not vector else f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


def at(path: str, version: int) -> State:
    """Return the state at a version, from the newest intact checkpoint up to it and the later commits.

    Raises: EngineError if a needed entry is gone.
    """
    storage, newest = storage_of(path), range(version, -1, -1)
    existing = [n for n in newest if storage.is_there(delta_table.checkpoint_path(path, n))]
    state = State() if not existing else _of_checkpoint(delta_table.checkpoint_path(path, existing[0]))
    for number in range(existing[0] + 1 if existing else 0, version + 1):
        state.follow(delta_table.actions(path, number))
    return state


def _of_checkpoint(file: str) -> State:
    import pyarrow.compute as pc

    try:
        columns = delta_table.columns_of(file, ["add", "metaData", "protocol"])
    except (OSError, ValueError) as error:
        raise EngineError(f"{file} can't be read: {error}") from error
    adds = columns["add"].filter(pc.is_valid(pc.struct_field(columns["add"], "path"))).to_pylist()
    metadata = [each for each in columns["metaData"].to_pylist() if each and each.get("schemaString")]
    protocol = [each for each in columns["protocol"].to_pylist() if each and each.get("minReaderVersion")]
    files: dict[str, Entry] = {entry["path"]: log_entries.plain(entry) for entry in adds}
    return State(
        files, _metadata(metadata[-1]) if metadata else None, _without_nulls(protocol[-1]) if protocol else None
    )


def _metadata(entry: dict[str, Any]) -> Entry:
    options = dict(entry["format"]["options"] or ())
    format_ = {"format": {"provider": entry["format"]["provider"], "options": options}}
    return {**_without_nulls(entry), **format_, "configuration": dict(entry["configuration"] or ())}


def _without_nulls(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if value is not None}
