"""Rollback of another writer's commits in one commit that keeps sqlrun's later ones. Shell: Delta files."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from sqlrun.engines.delta import foreign_commits
from sqlrun.engines.delta import state as delta_state
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.state import State, vector_of
from sqlrun.errors import EngineError
from sqlrun.storage.factory import storage_of
from sqlrun.version import __version__

OPERATION = "UNDO"


@dataclass(frozen=True, slots=True)
class Undo:
    """A planned rollback: the version that it starts from, and the table's state before and after it."""

    head: int
    versions: tuple[int, ...]
    now: State
    then: State


def planned(path: str, versions: Collection[int]) -> Undo:
    """Plan the rollback of some commits; nothing is written.

    All other later commits stay. Raises: EngineError if one of them depends on a rolled-back commit, or if a needed
    file is gone.
    """
    head = delta_table.head(path)
    assert head is not None and versions
    then, now = delta_state.at(path, min(versions) - 1), delta_state.at(path, head)
    reshaped = False
    for version in range(min(versions), head + 1):
        actions = delta_table.actions(path, version)
        reshaped = reshaped or (version in versions and foreign_commits.reshapes(actions))
        if version not in versions and not then.follow(actions):
            raise EngineError(f"version {version} depends on the change")
    if not reshaped:
        then.metadata = then.protocol = None  # unchanged
    for entry in _unlike(then, now):
        if not storage_of(path).is_there(f"{path}/{unquote(entry['path'])}"):
            raise EngineError(
                f"the file {entry['path']}, which the other writer removed, is no longer on disk, as after a VACUUM"
            )
    return Undo(head, tuple(sorted(versions)), now, then)


def carry_out(path: str, undo: Undo) -> int:
    """Commit a planned rollback; return the new version.

    Raises: EngineError if another commit came in the meantime.
    """
    text = "".join(json.dumps(action, separators=(",", ":"), ensure_ascii=False) + "\n" for action in _actions(undo))
    file = delta_table.entry_path(path, undo.head + 1)
    if not storage_of(path).put_if_absent(file, text.encode(), synced=True):
        raise EngineError(f"another writer wrote version {undo.head + 1} of {path} at the same time")
    return undo.head + 1


def _unlike(one: State, other: State) -> list[Mapping[str, Any]]:
    """Return the files of one state that the other lacks, or has with other deleted rows."""
    return [
        entry
        for path, entry in one.files.items()
        if path not in other.files or vector_of(other.files[path]) != vector_of(entry)
    ]


def _actions(undo: Undo) -> Iterator[dict[str, Any]]:
    stamp = time.time_ns() // 1_000_000
    listed = ",".join(map(str, undo.versions))
    yield {
        "commitInfo": {
            "timestamp": stamp,
            "operation": OPERATION,
            "operationParameters": {"versions": listed},
            "readVersion": undo.head,
            "txnId": str(uuid.uuid4()),
            "engineInfo": f"{foreign_commits.ENGINE}{__version__}",
            foreign_commits.UNDOES: listed,
        }
    }
    if undo.then.protocol is not None:
        yield {"protocol": undo.then.protocol}
    if undo.then.metadata is not None:
        yield {"metaData": undo.then.metadata}
    for entry in _unlike(undo.now, undo.then):
        removal = {"path": entry["path"], "deletionTimestamp": stamp, "dataChange": True, "extendedFileMetadata": True}
        vector = {"deletionVector": entry["deletionVector"]} if entry.get("deletionVector") else {}
        yield {"remove": {**removal, "partitionValues": entry["partitionValues"], "size": entry["size"], **vector}}
    for entry in _unlike(undo.then, undo.now):
        yield {"add": {**entry, "dataChange": True}}
