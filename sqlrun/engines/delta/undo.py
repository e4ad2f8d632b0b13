"""Commits of another writer taken back, those of sqlrun's that came after them kept: one commit. Shell: Delta files."""

from __future__ import annotations

import json
import time
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
    """What takes commits back: the version that it is made from, and the table before and after it."""

    head: int
    versions: tuple[int, ...]
    now: State
    then: State


def planned(path: str, versions: Collection[int]) -> Undo:
    """Work out how some commits can be taken back; nothing is written.

    All others that came after the first of them stay. Raises: EngineError where one of those builds on what is to be
    taken back, or where a file that is needed is gone.
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
        then.metadata = then.protocol = None  # as they are
    for entry in _unlike(then, now):
        if not storage_of(path).is_there(f"{path}/{unquote(entry['path'])}"):
            raise EngineError(
                f"the file {entry['path']}, which the other writer removed, is no longer on disk, as after a VACUUM"
            )
    return Undo(head, tuple(sorted(versions)), now, then)


def carry_out(path: str, undo: Undo) -> int:
    """Commit what was planned; give the version made.

    Raises: EngineError where another commit has come meanwhile.
    """
    text = "".join(json.dumps(action, separators=(",", ":"), ensure_ascii=False) + "\n" for action in _actions(undo))
    file = delta_table.entry_path(path, undo.head + 1)
    if not storage_of(path).put_if_absent(file, text.encode(), synced=True):
        raise EngineError(f"another writer wrote version {undo.head + 1} of {path} at the same time")
    return undo.head + 1


def _unlike(one: State, other: State) -> list[Mapping[str, Any]]:
    """List the files that one state has and the other hasn't, or not with the same deleted rows."""
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
            "engineInfo": f"{foreign_commits.ENGINE}{__version__}",
            foreign_commits.UNDOES: listed,
        }
    }
    if undo.then.protocol is not None:
        yield {"protocol": undo.then.protocol}
    if undo.then.metadata is not None:
        yield {"metaData": undo.then.metadata}
    for entry in _unlike(undo.now, undo.then):
        told = {"path": entry["path"], "deletionTimestamp": stamp, "dataChange": True, "extendedFileMetadata": True}
        held = {"deletionVector": entry["deletionVector"]} if entry.get("deletionVector") else {}
        yield {"remove": {**told, "partitionValues": entry["partitionValues"], "size": entry["size"], **held}}
    for entry in _unlike(undo.then, undo.now):
        yield {"add": {**entry, "dataChange": True}}
