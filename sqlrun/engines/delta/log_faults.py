"""Damage to Delta logs after a power failure, found by names, sizes and contents. Pure.

Spark and Delta write without syncing, so the newest files may be missing, empty or truncated, even if later files are
complete. Publishing syncs, so only files newer than the published version may be moved aside.
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
# Magic bytes of Hadoop's checksum files.
VERSION = re.compile(r"\.?(\d{20})\.")
COMMIT = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..+")
CHECKSUM = re.compile(r"(\d{20})\.crc")
UNFINISHED = re.compile(r".*\.tmp|\..*\.tmp\.crc|.*\.json#\d+")
# Commits that add rows carry a transaction id; commits that only move rows have none.
WRITES = {"WRITE", "MERGE", "STREAMING UPDATE"}
COUNTED = {"OPTIMIZE", "STREAMING UPDATE"}
ADDED = ("num_added_files", "numFilesAdded", "numRestoredFile")
REMOVED = ("num_removed_files", "numFilesRemoved", "numRemovedFile")
# Maximum length of commits that stay parsed: every tick begins by reading the newest commits of each table.
SMALL = 20_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault. `movable`: no published data needs the file, so it may be moved away."""

    table: str
    file: str
    what: str
    movable: bool
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
        """Return the newest commit's version; -1 if there is none."""
        return self.commits[-1] if self.commits else -1


def listed(names: Collection[str]) -> Log:
    """Return the names in a `_delta_log`, sorted by kind.

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
    """Return the file name of a version's commit."""
    return f"{version:020d}.json"


def gap(log: Log, whole: Collection[int]) -> int | None:
    """Return the first missing version between the newest intact checkpoint (or version 0) and the head."""
    expected = max((v for v in whole if v <= log.head), default=-1) + 1
    for version in (v for v in log.commits if v >= expected):
        if version != expected:
            return expected
        expected += 1
    return None


def since(log: Log, version: int) -> tuple[str, ...]:
    """Return the names of all files of a version and of later ones, the newest first."""
    numbered = [(int(m[1]), name) for name in log.names if (m := VERSION.match(name)) and int(m[1]) >= version]
    return tuple(name for _, name in sorted(numbered, key=lambda item: (-item[0], item[1])))


def orphans(log: Log) -> tuple[str, ...]:
    """Return the names of unfinished files, and of checksums without a file: either makes delta-rs fail."""
    found = [name for name in log.names if UNFINISHED.fullmatch(name)]
    found += [name for name in log.names if (m := CHECKSUM.fullmatch(name)) and int(m[1]) > log.head]
    found += orphan_checksums(log.names)
    return tuple(sorted(set(found)))


def orphan_checksums(names: Collection[str]) -> list[str]:
    """Return the names of Hadoop's checksums without a file."""
    return [name for name in names if name.startswith(".") and name.endswith(".crc") and name[1:-4] not in names]


def actions_of(text: str) -> list[Any]:
    """Return a commit's actions; callers must not change them. Raises: ValueError if a line isn't JSON."""
    return _kept(text) if len(text) <= SMALL else _parsed(text)


def _parsed(text: str) -> list[Any]:
    return [json.loads(line) for line in text_lines(text) if line.strip()]


_kept = functools.lru_cache(256)(_parsed)


def commit_fault(text: str, *, transaction: bool, known: Callable[[list[Any]], bool] = lambda _: True) -> str:
    """Return the fault of a commit; empty if it is intact. `transaction`: writes must have an id.

    `known` returns whether a commit is sqlrun's: another writer's commit isn't damaged because it looks different.
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
    # Each engine counts overwritten, merged and deleted rows in its own way.
    mode = (info.get("operationParameters") or {}).get("mode")
    if operation in COUNTED or (operation == "WRITE" and mode == "Append"):
        return _missing(actions, metrics)
    return ""


def _missing(actions: Sequence[Mapping[str, Any]], metrics: Mapping[str, Any]) -> str:
    """Return the files that a commit's metrics count and its actions lack."""
    for kind, keys in (("add", ADDED), ("remove", REMOVED)):
        expected = next((int(metrics[key]) for key in keys if key in metrics), None)
        if expected is not None and expected != sum(kind in action for action in actions):
            return f"is truncated: it announces {expected} files to {kind} and lists fewer"
    if "numOutputRows" not in metrics:
        return ""
    # Spark's count of files includes empty ones, which its commit leaves out.
    stats = [json.loads(action["add"].get("stats") or "{}") for action in actions if "add" in action]
    rows = [found.get("numRecords") for found in stats]
    expected = int(metrics["numOutputRows"])
    if None not in rows and sum(rows) != expected:
        return f"is truncated: it announces {expected} rows to add and lists fewer"
    return ""


def transactions(text: str) -> dict[str, int]:
    """Return the transaction ids of an intact commit."""
    return {a["txn"]["appId"]: int(a["txn"]["version"]) for a in actions_of(text) if "txn" in a}


def files_added(texts: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the entries of the files that commits added and didn't remove again, by path."""
    found: dict[str, Mapping[str, Any]] = {}
    for text in texts:
        actions = actions_of(text)
        for action in actions:
            if "remove" in action:
                found.pop(action["remove"]["path"], None)
        for action in actions:
            if "add" in action:
                found[action["add"]["path"]] = action["add"]
    return found


def parquet_fault(size: int, expected: int | None, ends: tuple[bytes, bytes]) -> str:
    """Return the fault of a Parquet file, by its size, the size in the log, and its first and last bytes."""
    if size == 0:
        return "is empty"
    if expected is not None and size != expected:
        return f"has {size:,} bytes instead of {expected:,}"
    return "" if ends == (MAGIC, MAGIC) else "is incomplete: it doesn't begin and end like a Parquet file"
