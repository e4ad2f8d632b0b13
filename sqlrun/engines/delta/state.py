"""State of a Delta table's version, built from the entries of its log. Shell: Delta files.

delta-rs opens no table with features that it doesn't know, and another writer may have added one; this code opens it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlrun.engines.delta import log_entries, log_faults
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.storage.factory import storage_of

Entry = Mapping[str, Any]
# Names of checkpoints: of one file, of several parts, and of the second version (Delta protocol, "Checkpoints").
CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint(\.\d{10}\.(?P<of>\d{10})|\.(?P<id>[0-9a-f-]{36}))?\.(parquet|json)"
)
SIDECARS = "_sidecars"


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
    newest = _newest_checkpoint(path, version)
    state = State() if newest is None else _of_checkpoint(newest[1])
    for number in range(0 if newest is None else newest[0] + 1, version + 1):
        state.follow(delta_table.actions(path, number))
    return state


def _newest_checkpoint(path: str, version: int) -> tuple[int, list[str]] | None:
    """Return the newest complete checkpoint up to a version, as files: one, several parts, or one with sidecars."""
    log = f"{path}/_delta_log"
    parts: dict[int, dict[str, list[str]]] = {}
    for name in storage_of(path).names(log):
        found = CHECKPOINT.fullmatch(name)
        if found is not None and int(found["version"]) <= version:
            kind = found["of"] or found["id"] or ""
            parts.setdefault(int(found["version"]), {}).setdefault(kind, []).append(f"{log}/{name}")
    for number in sorted(parts, reverse=True):
        for kind, files in sorted(parts[number].items()):
            if not kind.isdigit() or len(files) == int(kind):
                return number, [*files, *(f"{log}/{SIDECARS}/{name}" for file in files for name in _sidecars(file))]
    return None


def _sidecars(file: str) -> list[str]:
    """Return the names of the files in which a checkpoint of the second version lists the table's files."""
    if file.endswith(".json"):
        actions = log_faults.actions_of(storage_of(file).text(file))
        found = [action["sidecar"] for action in actions if "sidecar" in action]
    else:
        columns = delta_table.columns_of(file, ["sidecar"])
        found = columns["sidecar"].to_pylist() if "sidecar" in columns.column_names else []
    # Sidecars are always in their own folder (Delta protocol, "Sidecar File Information").
    return [each["path"].rpartition("/")[2] for each in found if each and each.get("path")]


def _of_checkpoint(files: list[str]) -> State:
    state = State()
    for file in files:
        try:
            if file.endswith(".json"):
                state.follow(log_faults.actions_of(storage_of(file).text(file)))
            else:
                _add_checkpoint(state, file)
        except (OSError, ValueError) as error:
            raise EngineError(f"{file} can't be read: {error}") from error
    return state


def _add_checkpoint(state: State, file: str) -> None:
    import pyarrow.compute as pc

    columns = delta_table.columns_of(file, ["add", "metaData", "protocol"])
    there = set(columns.column_names)
    if "add" in there:
        adds = columns["add"].filter(pc.is_valid(pc.struct_field(columns["add"], "path"))).to_pylist()
        state.files |= {entry["path"]: log_entries.plain(entry) for entry in adds}
    for each in columns["metaData"].to_pylist() if "metaData" in there else ():
        state.metadata = _metadata(each) if each and each.get("schemaString") else state.metadata
    for each in columns["protocol"].to_pylist() if "protocol" in there else ():
        state.protocol = _without_nulls(each) if each and each.get("minReaderVersion") else state.protocol


def _metadata(entry: dict[str, Any]) -> Entry:
    options = dict(entry["format"]["options"] or ())
    format_ = {"format": {"provider": entry["format"]["provider"], "options": options}}
    return {**_without_nulls(entry), **format_, "configuration": dict(entry["configuration"] or ())}


def _without_nulls(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if value is not None}
