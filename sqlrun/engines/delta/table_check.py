"""Check of a table's log and data files: which are damaged, and which may be moved aside. Shell: files.

Versions up to `kept` were published, so they were synced; any newer file may be damaged, in any order. A build checks
the newer versions and the latest published one; `deep` checks all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from sqlrun.engines.delta import deletion_vectors, log_faults
from sqlrun.engines.delta import foreign_commits as foreign
from sqlrun.engines.delta import state as delta_state
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.foreign_commits import Foreign, Whose
from sqlrun.engines.delta.log_faults import Finding, Log, commit_name
from sqlrun.errors import EngineError
from sqlrun.runtime import hadoop_checksums
from sqlrun.runtime.lru import Recent
from sqlrun.runtime.text_lines import text_lines
from sqlrun.storage.factory import storage_of
from sqlrun.storage.storage import Stamp

NEWEST = 20
POINTER = "_last_checkpoint"
# First and last bytes of the files checked most recently.
_ends: Recent[tuple[str, Stamp], tuple[bytes, bytes]] = Recent(1024)


@dataclass(frozen=True, slots=True)
class Subject:
    """A table to examine. `path` is relative to the warehouse.

    `shown`: the version that readers see; `kept`: the newest version that was ever published; -1: none.
    `stays`: newer rows stay, so their files are checked too. `transaction`: its writes carry an id. `project`: the
    owner of the table.
    """

    name: str
    path: str
    shown: int = -1
    kept: int = -1
    stays: bool = False
    transaction: bool = True
    advice: str = ""
    project: str = ""

    @property
    def seen(self) -> int:
        """Return the newest version that readers see or ever saw."""
        return max(self.shown, self.kept)


@dataclass(slots=True)
class Found:
    """Results of a check. `first`: the first damaged version; it and all later ones may go (None: all are intact).

    `moves`: files to move aside, relative to the warehouse, in this order. `foreign`: commits of another writer that
    change the table's contents and weren't rolled back; only `deep` reports the published ones. `stale`: Hadoop
    checksums of files that delta-rs, which doesn't write checksums, has rewritten since; not a fault.
    """

    log: Log
    subject: Subject
    first: int | None = None
    findings: list[Finding] = field(default_factory=list)
    moves: list[str] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)
    foreign: list[Foreign] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)

    @property
    def refused(self) -> list[Finding]:
        """Return the faults that can't be repaired by moving files aside."""
        return [finding for finding in self.findings if not finding.movable]


class Table:
    """One table under examination."""

    def __init__(self, warehouse: str, subject: Subject, *, deep: bool) -> None:
        self.warehouse, self.subject, self.deep = warehouse, subject, deep
        self.storage, self.path = storage_of(warehouse), f"{warehouse}/{subject.path}"
        self.log = f"{self.path}/_delta_log"
        self.found = Found(log_faults.listed(self.storage.names(self.log)), subject)

    def examine(self) -> Found:
        """Check commits, checkpoints, checksums and data files."""
        found, log, published = self.found, self.found.log, self.subject.kept
        corrupt = self._damaged_checkpoints()
        missing = log_faults.gap(log, [version for version in log.checkpoints if version not in corrupt])
        if log.head < published:
            self._damaged(log.head + 1, commit_name(log.head + 1), "is missing")
        elif missing is not None:
            self._damaged(missing, commit_name(missing), "is missing")
        versions, pointer = self._versions(), [POINTER] if POINTER in log.names else []
        names = [*map(commit_name, versions), *pointer]
        texts = self.storage.at_once(lambda name: self.storage.read(f"{self.log}/{name}"), names)
        for version, data in zip(versions, texts, strict=False):
            self._commit(version, data)
        self._find_foreign_commits()
        self._data()
        if found.first is not None:
            self._move_since(found.first)
        loose = [*log_faults.orphans(log), *(name for names in corrupt.values() for name in names)]
        loose += [name for name in log.names if self._bad_checksum(name)]
        loose += self._last_checkpoint(texts[-1], set(corrupt)) if pointer else []
        for name in loose:
            self._schedule_move(name, "is a leftover, or incomplete")
        return found

    def _versions(self) -> list[int]:
        """Return the commits to read: all unpublished ones, and the latest published one."""
        commits, shown = self.found.log.commits, self.subject.shown
        if self.deep:
            return list(commits)
        newest = commits[-NEWEST:] if self.subject.stays and shown < 0 else commits
        return [version for version in newest if version >= shown]

    def _commit(self, version: int, data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        fault = log_faults.commit_fault(text, transaction=self.subject.transaction, known=self._owners.wrote)
        if not fault and version > self.subject.kept and not self._matches_checksum(commit_name(version), data):
            fault = "doesn't match its checksum"
        if fault:
            self._damaged(version, commit_name(version), fault)
        else:
            self.found.texts[version] = text

    @cached_property
    def _owners(self) -> Whose:
        """Return the owners of the table's commits."""
        return Whose(self.subject.project, lambda: self._streams)

    @cached_property
    def _streams(self) -> frozenset[str] | None:
        """Return the table's stream, by its record in the table and in its checkpoint; None if there is none."""
        place = f"{self.warehouse}/_sqlrun/checkpoints/{self.subject.path}/metadata"
        found = set[str]()
        with suppress(OSError, ValueError, KeyError, TypeError):
            found.add(str(json.loads(self.storage.text(place))["id"]))
        with suppress(OSError):
            found.add(self.storage.text(f"{self.path}/_sqlrun_checkpoint").strip())
        return frozenset(found) or None

    def _find_foreign_commits(self) -> None:
        """Find the commits of other writers among the intact ones."""
        texts, since, first = self.found.texts, -1 if self.deep else self.subject.shown, self.found.first
        commits = {v: log_faults.actions_of(text) for v, text in texts.items() if first is None or v < first}
        if self.subject.stays and self.subject.path.startswith("_sqlrun/"):
            # Older system tables have no marks; from the first marked commit on, all of sqlrun's commits have one.
            marked = [version for version, actions in commits.items() if foreign.is_marked(actions)]
            since = min(marked, default=self.found.log.head)
        restores = -1 if self.subject.stays else self.subject.seen
        self.found.foreign = foreign.among(commits, max(commits, default=-1), since, self._owners, restores)

    def _data(self) -> None:
        """Check the files that intact commits added: of published versions, and of newer rows that stay."""
        later, files = set[str](), list[tuple[int, str, int]]()
        vectors = list[tuple[int, Mapping[str, Any]]]()
        for version in sorted(self.found.texts, reverse=True):
            text = self.found.texts[version]
            if version == self.subject.shown or (self.subject.stays and version > self.subject.kept):
                added = [entry for path, entry in log_faults.files_added([text]).items() if path not in later]
                files += [(version, entry["path"], int(entry["size"])) for entry in added]
                vectors += [(version, entry["deletionVector"]) for entry in added if entry.get("deletionVector")]
            later |= {a["remove"]["path"] for a in log_faults.actions_of(text) if "remove" in a}
        self._examine_data(files)
        self._examine_vectors(vectors)
        if self.deep and self.subject.shown >= 0 and not self.found.refused:
            self._all_data()

    def _all_data(self) -> None:
        shown = self.subject.shown
        try:
            files = delta_table.files_at(delta_table.open_table(self.path, shown))
        except EngineError as error:
            self._damaged(shown, commit_name(shown), f"can't be read: {text_lines(str(error))[0][:200]}")
            return
        self._examine_data([(shown, file["path"], file["size_bytes"]) for file in files])
        entries = delta_state.at(self.path, shown).files.values()
        self._examine_vectors([(shown, entry["deletionVector"]) for entry in entries if entry.get("deletionVector")])

    def _examine_data(self, files: list[tuple[int, str, int]]) -> None:
        """Check data files, each with the version that names it and its size in the log."""
        faults = self.storage.at_once(self._data_fault, files)
        for (version, path, _), fault in zip(files, faults, strict=True):
            if fault:
                self._damaged(version, path, fault)

    def _data_fault(self, file: tuple[int, str, int]) -> str:
        _, path, size = file
        return "" if "://" in path else parquet_fault(f"{self.path}/{unquote(path)}", size)

    def _examine_vectors(self, vectors: list[tuple[int, Mapping[str, Any]]]) -> None:
        """Check deletion vectors in files, each with the version that names it."""
        in_files = [(version, each) for version, each in vectors if deletion_vectors.file_of(each)]
        faults = self.storage.at_once(lambda each: deletion_vectors.fault(self.path, each[1]), in_files)
        for (version, vector), fault in zip(in_files, faults, strict=True):
            if fault:
                self._damaged(version, deletion_vectors.file_of(vector), fault)

    def _damaged_checkpoints(self) -> dict[int, tuple[str, ...]]:
        """Return damaged checkpoints with their files; only `deep` checks old ones."""
        log = self.found.log
        newest = max(log.checkpoints, default=-1)
        corrupt = {}
        for version, names in log.checkpoints.items():
            if version > self.subject.kept or version == newest or self.deep:
                files = [f"{self.log}/{name}" for name in names if name.endswith(".parquet")]
                if version > log.head or (not self.storage.writes_whole and any(parquet_fault(f, None) for f in files)):
                    corrupt[version] = names
        return corrupt

    def _bad_checksum(self, name: str) -> bool:
        """Return whether the checksum of an unpublished version is unreadable."""
        match = log_faults.CHECKSUM.fullmatch(name)
        if not match or int(match[1]) <= self.subject.kept:
            return False
        try:
            return not isinstance(json.loads(self.storage.read(f"{self.log}/{name}").decode("utf-8", "replace")), dict)
        except ValueError:
            return True

    def _last_checkpoint(self, data: bytes, corrupt: set[int]) -> list[str]:
        """Return the pointer to the newest checkpoint if its target is missing; without it readers list the folder."""
        try:
            version = int(json.loads(data)["version"])
        except (ValueError, KeyError, TypeError):
            version = -1
        known = version in self.found.log.checkpoints and version not in corrupt
        removed = self.found.first is not None and version >= self.found.first
        if not known or removed:
            return [name for name in (POINTER, f".{POINTER}.crc") if name in self.found.log.names]
        if not self._matches_checksum(POINTER, data):
            self.found.stale.append(f"{self.subject.path}/_delta_log/.{POINTER}.crc")
        return []

    def _matches_checksum(self, name: str, data: bytes) -> bool:
        """Return whether a file matches its Hadoop checksum, if it has one."""
        checksum = f".{name}.crc"
        if checksum not in self.found.log.names:
            return True
        return hadoop_checksums.fits(data, self.storage.read(f"{self.log}/{checksum}"))

    def _damaged(self, version: int, name: str, what: str) -> None:
        removable = version > self.subject.kept
        file = name if name.endswith((".parquet", ".bin")) else f"_delta_log/{name}"
        advice = "" if removable else self.subject.advice
        data_file = f"{self.subject.path}/{unquote(file)}"
        self.found.findings.append(Finding(self.subject.name, data_file, what, removable, advice))
        if removable:
            self.found.first = version if self.found.first is None else min(version, self.found.first)

    def _move_since(self, version: int) -> None:
        if version == 0:
            self.found.moves.append(self.subject.path)
            return
        for name in log_faults.since(self.found.log, version):
            self.found.moves.append(f"{self.subject.path}/_delta_log/{name}")

    def _schedule_move(self, name: str, what: str) -> None:
        path = f"{self.subject.path}/_delta_log/{name}"
        if path not in self.found.moves and self.subject.path not in self.found.moves:
            self.found.findings.append(Finding(self.subject.name, path, what, True))
            self.found.moves.append(path)


def parquet_fault(file: str, size: int | None) -> str:
    """Return the fault of a Parquet file, by its size and its ends; it is read once until its stamp changes.

    Where an existing file is complete, its ends aren't read.
    """
    storage = storage_of(file)
    stamp = storage.stamp(file)
    if stamp is None:
        return "is missing"
    if storage.writes_whole:
        return log_faults.parquet_fault(stamp.size, size, (log_faults.MAGIC, log_faults.MAGIC))
    try:
        ends = _ends.get((file, stamp), lambda: _ends_of(file))
    except FileNotFoundError:
        return "is missing"
    return log_faults.parquet_fault(stamp.size, size, ends)


def _ends_of(file: str) -> tuple[bytes, bytes]:
    return storage_of(file).ends(file, 4)
