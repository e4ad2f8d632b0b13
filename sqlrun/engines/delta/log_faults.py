"""What a loss of power leaves of logs: names, sizes and contents to what is wrong with them. Pure.

Spark and Delta write without a sync, so the newest files may be there with no bytes, with some, or not at all,
whatever was written after them. What was published was synced before, so only what is newer may be set aside.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlrun.runtime.text_lines import text_lines

MAGIC = b"PAR1"
# What a checksum of Hadoop's begins with.
VERSION = re.compile(r"\.?(\d{20})\.")
COMMIT = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..+")
CHECKSUM = re.compile(r"(\d{20})\.crc")
UNFINISHED = re.compile(r".*\.tmp|\..*\.tmp\.crc|.*\.json#\d+")
# Commits that add rows carry a transaction id; those that only move rows have none.
WRITES = {"WRITE", "MERGE", "STREAMING UPDATE"}
COUNTED = {"OPTIMIZE", "STREAMING UPDATE"}
ADDED = ("num_added_files", "numFilesAdded", "numRestoredFile")
REMOVED = ("num_removed_files", "numFilesRemoved", "numRemovedFile")
# Commits of up to so many letters stay parsed: every tick begins with a look at the newest ones of each table.
SMALL = 20_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `aside`: nothing that was published needs the file, so it may be moved away."""

    table: str
    file: str
    what: str
    aside: bool
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.table}: {self.file} {self.what}" + (f". {self.advice}" if self.advice else "")


@dataclass(frozen=True, slots=True)
class Log:
    """The names in a `_delta_log`: commits and checkpoints by version."""

    names: frozenset[str]
    commits: tuple[int, ...] = ()
    checkpoints: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def head(self) -> int:
        """Return the newest commit; -1 where there is none."""
        return self.commits[-1] if self.commits else -1


def listed(names: Collection[str]) -> Log:
    """Sort the names in a `_delta_log`.

    >>> listed(["00000000000000000001.json", "_last_checkpoint", "00000000000000000000.json"]).commits
    (0, 1)
    """
    commits = sorted(int(m[1]) for m in map(COMMIT.fullmatch, names) if m)
    checkpoints: dict[int, tuple[str, ...]] = {}
    for name in sorted(names):
        if (m := CHECKPOINT.fullmatch(name)) and not name.endswith((".crc", ".tmp")):
            checkpoints[int(m[1])] = (*checkpoints.get(int(m[1]), ()), name)
    return Log(frozenset(names), tuple(commits), checkpoints)


def commit_name(version: int) -> str:
    """Return the name of a version's commit."""
    return f"{version:020d}.json"


def gap(log: Log, whole: Collection[int]) -> int | None:
    """Find the first version that is missing between the newest whole checkpoint (or the beginning) and the head."""
    expected = max((v for v in whole if v <= log.head), default=-1) + 1
    for version in (v for v in log.commits if v >= expected):
        if version != expected:
            return expected
        expected += 1
    return None


def since(log: Log, version: int) -> tuple[str, ...]:
    """Return the names of all files of a version and of those after it, the newest first."""
    numbered = [(int(m[1]), name) for name in log.names if (m := VERSION.match(name)) and int(m[1]) >= version]
    return tuple(name for _, name in sorted(numbered, key=lambda item: (-item[0], item[1])))


def orphans(log: Log) -> tuple[str, ...]:
    """Name files that were never finished, and checksums whose file is gone: one of them shuts delta-rs out."""
    found = [name for name in log.names if UNFINISHED.fullmatch(name)]
    found += [name for name in log.names if (m := CHECKSUM.fullmatch(name)) and int(m[1]) > log.head]
    found += orphan_checksums(log.names)
    return tuple(sorted(set(found)))


def orphan_checksums(names: Collection[str]) -> list[str]:
    """Return the names of Hadoop's checksums of files that are not there."""
    return [name for name in names if name.startswith(".") and name.endswith(".crc") and name[1:-4] not in names]


def actions_of(text: str) -> list[Any]:
    """Read a commit's lines; they are for reading alone. Raises: ValueError where one is no JSON."""
    return _kept(text) if len(text) <= SMALL else _parsed(text)


def _parsed(text: str) -> list[Any]:
    return [json.loads(line) for line in text_lines(text) if line.strip()]


_kept = functools.lru_cache(256)(_parsed)


def commit_fault(text: str, *, transaction: bool, known: Callable[[list[Any]], bool] = lambda _: True) -> str:
    """Return what is wrong with a commit; nothing where it is whole. `transaction`: writes must have an id.

    `known` tells whether a commit is sqlrun's: what others write is no fault of a disk's for being otherwise.
    """
    if not text.strip():
        return "is empty"
    try:
        actions = actions_of(text)
    except ValueError:
        return "is truncated"
    if not all(isinstance(action, dict) for action in actions):
        return "isn't a commit"
    info: Any = next((action["commitInfo"] for action in actions if "commitInfo" in action), None)
    if info is None:
        return "is truncated: it lacks its operation"
    operation, metrics = info.get("operation"), info.get("operationMetrics") or {}
    if not known(actions):
        return ""
    if transaction and operation in WRITES and not any("txn" in action for action in actions):
        return "is truncated: it lacks its transaction id"
    if operation == "CREATE TABLE" and not all(any(kind in a for a in actions) for kind in ("protocol", "metaData")):
        return "is truncated: it creates a table without columns"
    # What is overwritten, merged or deleted is counted otherwise, by each engine in its own way.
    mode = (info.get("operationParameters") or {}).get("mode")
    if operation in COUNTED or (operation == "WRITE" and mode == "Append"):
        return _missing(actions, metrics)
    return ""


def _missing(actions: Sequence[Mapping[str, Any]], metrics: Mapping[str, Any]) -> str:
    """Return what a commit tells of and doesn't name."""
    for kind, keys in (("add", ADDED), ("remove", REMOVED)):
        told = next((int(metrics[key]) for key in keys if key in metrics), None)
        if told is not None and told != sum(kind in action for action in actions):
            return f"is truncated: it announces {told} files to {kind} and lists fewer"
    if "numOutputRows" not in metrics:
        return ""
    # Spark's count of files has those without rows, which its commit leaves out.
    stats = [json.loads(action["add"].get("stats") or "{}") for action in actions if "add" in action]
    rows = [found.get("numRecords") for found in stats]
    told = int(metrics["numOutputRows"])
    if None not in rows and sum(rows) != told:
        return f"is truncated: it announces {told} rows to add and lists fewer"
    return ""


def transactions(text: str) -> dict[str, int]:
    """Read the transaction ids of a commit that is whole."""
    return {a["txn"]["appId"]: int(a["txn"]["version"]) for a in actions_of(text) if "txn" in a}


def files_added(texts: Sequence[str]) -> dict[str, int]:
    """Return the files, with their sizes, that commits have added and not removed again."""
    found: dict[str, int] = {}
    for text in texts:
        actions = actions_of(text)
        for action in actions:
            if "remove" in action:
                found.pop(action["remove"]["path"], None)
        for action in actions:
            if "add" in action:
                found[action["add"]["path"]] = int(action["add"]["size"])
    return found


def parquet_fault(size: int, told: int | None, ends: tuple[bytes, bytes]) -> str:
    """Return what is wrong with a Parquet file, by its size, the log's size, and its first and last bytes."""
    if size == 0:
        return "is empty"
    if told is not None and size != told:
        return f"has {size:,} bytes instead of {told:,}"
    return "" if ends == (MAGIC, MAGIC) else "is incomplete: it doesn't begin and end like a Parquet file"
