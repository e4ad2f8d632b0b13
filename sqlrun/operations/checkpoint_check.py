"""Check of a landing's checkpoint: find its damaged files and decide whether they can be moved aside. Shell: files.

DuckDB's plans are synced one by one; a corrupt one was never executed. Spark's checkpoint isn't synced before a tick
is published: if any newer file of it is damaged, table and checkpoint both return to the published state, and the
following files are landed again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlrun.engines.delta import log_faults
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.log_faults import Finding
from sqlrun.engines.delta.table_check import Found, Subject
from sqlrun.runtime import hadoop_checksums
from sqlrun.sources import batches, stream_checkpoint
from sqlrun.sources.checkpoint import path_of
from sqlrun.sources.folder import is_still_there
from sqlrun.sources.stream_checkpoint import COMMITS, FOLDERS, IDENTITY, LOG, METADATA, OFFSETS
from sqlrun.storage.factory import storage_of
from sqlrun.storage.storage import Storage


@dataclass(frozen=True, slots=True)
class Seen:
    """A landing's checkpoint as it is: the names in it, the id of DuckDB's batches, and their plans."""

    names: Sequence[str]
    identity: str
    plans: Mapping[int, batches.Batch | None]


def look(warehouse: str, subject: Subject) -> Seen:
    """Read a landing's checkpoint."""
    storage, checkpoint = storage_of(warehouse), f"{warehouse}/{path_of(subject.path)}"
    asks: list[Callable[[], Any]] = [
        partial(storage.names, checkpoint),
        partial(batches.identity, checkpoint),
        partial(batches.read, checkpoint),
    ]
    return Seen(*storage.at_once(lambda ask: ask(), asks))


def examine(warehouse: str, subject: Subject, found: Found, seen: Seen, project: str) -> Found:
    """Examine a landing's checkpoint; return `found` with the files of checkpoint and table that have to go."""
    storage, checkpoint = storage_of(warehouse), f"{warehouse}/{path_of(subject.path)}"
    if found.refused:
        return found
    if not {METADATA, *(folder.partition("/")[0] for folder in FOLDERS)}.isdisjoint(seen.names):
        _Stream(storage, warehouse, subject, found, checkpoint).examine()
    elif seen.names:
        _plans(warehouse, subject, found, seen, project)
    return found


def _plans(warehouse: str, subject: Subject, found: Found, seen: Seen, project: str) -> None:
    """Move aside DuckDB's plans from the first corrupt or missing one on, if the table contains no batch of them."""
    head = found.log.head if found.first is None else found.first - 1
    place, name = path_of(subject.path), seen.identity
    if not name:
        if batches.began(f"{warehouse}/{place}") and head <= 0:
            file = f"{place}/{batches.IDENTITY}"
            found.findings.append(Finding(subject.name, file, "is empty", True))
            found.moves.append(file)
        return
    known = seen.plans
    bad = batches.first_fault(known)
    if bad is None:
        return
    committed = 0
    if head > 0:
        table = delta_table.open_table(f"{warehouse}/{subject.path}", head)
        committed = table.transaction_version(f"{project}.{subject.name}:{name}") or 0
    what = "is corrupt" if bad in known else "is missing"
    removable = bad > committed
    found.findings.append(
        Finding(subject.name, f"{place}/{batches.name_of(bad)}", what, removable, "" if removable else subject.advice)
    )
    if removable:
        found.moves += [f"{place}/{batches.name_of(n)}" for n in sorted(known, reverse=True) if n >= bad]


@dataclass(slots=True)
class _Stream:
    """Spark's checkpoint of one landing."""

    storage: Storage
    warehouse: str
    subject: Subject
    found: Found
    checkpoint: str
    names: dict[str, list[str]] = field(default_factory=dict)

    def examine(self) -> None:
        """Compare the checkpoint with the table's contents, and both with the published state."""
        self.names = {folder: self.storage.names(f"{self.checkpoint}/{folder}") for folder in FOLDERS}
        query, known = self._query(), self._known()
        if query is None:
            if self.subject.kept < 1:
                self._restore(-1, "metadata", "can't be read")
            return
        if known is not None and not query.startswith(known):
            return  # another table's checkpoint: landing rejects it
        if known is not None and known != query:
            self._schedule_move(f"{self.subject.path}/{IDENTITY}", "is truncated")
        published = self._newest_batch(query, self.subject.kept)
        if published is None:
            return  # rows that this checkpoint doesn't know: landing rejects them
        fault = self._fault(query, published)
        if fault is not None:
            self._restore(published, *fault)
        else:
            self._orphans()

    def _query(self) -> str | None:
        try:
            return stream_checkpoint.query_id(self.checkpoint)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _known(self) -> str | None:
        file = f"{self.warehouse}/{self.subject.path}/{IDENTITY}"
        return self.storage.text(file).strip() if self.storage.is_there(file) else None

    def _newest_batch(self, query: str, version: int) -> int | None:
        """Return the newest batch in the table at a version, -1 before its first; None: another query wrote rows."""
        if version < 1:
            return -1
        batch = delta_table.open_table(f"{self.warehouse}/{self.subject.path}", version).transaction_version(query)
        return None if batch is None else int(batch)

    def _numbers(self, folder: str) -> list[int]:
        return sorted(int(name) for name in self.names.get(folder, ()) if name.isdigit())

    def _fault(self, query: str, published: int) -> tuple[str, str] | None:
        """Find a file newer than the published state that is damaged or contradicts the table."""
        if self.found.first is not None:
            return "offsets", "names batches that the table has lost"
        offsets, commits = self._numbers(OFFSETS), self._numbers(COMMITS)
        for folder, numbers, least in ((OFFSETS, offsets, 2), (COMMITS, commits, 1)):
            for number in (n for n in numbers if n > published):
                if what := self._file_fault(folder, str(number), least):
                    return f"{folder}/{number}", what
        if (
            fault := self._source_fault(self._reached(published), self._reached(offsets[-1]) if offsets else -1)
        ) is not None:
            return fault
        committed = self._newest_batch(query, self.found.log.head)
        if committed is None:
            return None
        newest = offsets[-1] if offsets else -1
        if committed > newest:
            return "offsets", f"ends with batch {newest}, the table ends with batch {committed}"
        if commits and commits[-1] > committed:
            return "commits", f"ends with batch {commits[-1]}, the table ends with {committed}"
        return (
            None
            if newest <= committed + 1
            else ("offsets", f"continues to batch {newest}, the table ends with {committed}")
        )

    def _source_fault(self, published: int, planned: int) -> tuple[str, str] | None:
        """Find a list of files, newer than the published state, that is corrupt, or that a planned batch lacks."""
        logs = stream_checkpoint.source_logs(self.names.get(LOG, ()))
        for number, name in logs.items():
            if number > published and (what := self._file_fault(LOG, name, 0)):
                return f"{LOG}/{name}", what
        missing = [number for number in range(published + 1, planned + 1) if number not in logs]
        return (f"{LOG}/{missing[0]}", "is missing") if missing else None

    def _file_fault(self, folder: str, name: str, least: int) -> str:
        data = self.storage.read(f"{self.checkpoint}/{folder}/{name}")
        fault = stream_checkpoint.fault(data.decode("utf-8", "replace"), least)
        checksum = f"{self.checkpoint}/{folder}/.{name}.crc"
        is_summed = self.storage.is_there(checksum)
        if not fault and is_summed and not hadoop_checksums.fits(data, self.storage.read(checksum)):
            return "doesn't match its checksum"
        # A truncated list of files is still a valid list: a missing checksum, where others have one, reveals it.
        if not fault and not is_summed and any(n.endswith(".crc") for n in self.names[folder]):
            return "lacks its checksum"
        return fault

    def _reached(self, batch: int) -> int:
        """Return the highest number in the source's log that a batch has read."""
        try:
            text = self.storage.text(f"{self.checkpoint}/{OFFSETS}/{batch}")
            return int(json.loads(text.strip().split("\n")[-1])["logOffset"])
        except (OSError, ValueError, KeyError, TypeError):
            return batch

    def _restore(self, batch: int, file: str, what: str) -> None:
        """Restore table and checkpoint to a batch; following rows are landed again."""
        place, path = path_of(self.subject.path), self.subject.path
        reached = self._reached(batch)
        lost = self._lost(reached)
        removable = not lost
        if lost:
            what += f", and {lost}"
        self.found.findings.append(
            Finding(self.subject.name, f"{place}/{file}", what, removable, "" if removable else self.subject.advice)
        )
        if lost:
            return
        if path not in self.found.moves:
            first = max(self.subject.kept + 1, 1)
            rest = [f"{path}/_delta_log/{name}" for name in log_faults.since(self.found.log, first)]
            # delta-rs fails on a pointer to a deleted checkpoint; without a pointer it lists the folder.
            if rest and "_last_checkpoint" in self.found.log.names:
                rest.append(f"{path}/_delta_log/_last_checkpoint")
            self.found.moves = list(dict.fromkeys([*rest, *self.found.moves]))
            if batch < 0 and self._known() is not None and f"{path}/{IDENTITY}" not in self.found.moves:
                self.found.moves.append(f"{path}/{IDENTITY}")
        if batch < 0:
            self.found.moves.append(place)
            return
        for folder, limit in ((COMMITS, batch), (OFFSETS, batch), (LOG, reached)):
            for name in sorted(self.names.get(folder, ()), key=_number, reverse=True):
                if _number(name) > limit:
                    self.found.moves.append(f"{place}/{folder}/{name}")

    def _lost(self, reached: int) -> str:
        """Return why restoring would lose data: a missing log of published batches, or files landed twice; else ""."""
        logs = stream_checkpoint.source_logs(self.names.get(LOG, ()))
        first = max((n for n, name in logs.items() if n <= reached and name.endswith(".compact")), default=0)
        for number in range(first, reached + 1):
            if number not in logs:
                return f"its log of files lacks entry {number}"
        landed = self._paths(name for number, name in logs.items() if number <= reached)
        for path in self._paths(name for number, name in logs.items() if number > reached):
            if path not in landed and not is_still_there(path):
                return f"{path} is missing, and sqlrun would have to land it again"
        return ""

    def _paths(self, logs: Iterable[str]) -> dict[str, None]:
        return {path: None for name in logs for path in stream_checkpoint.paths(self.checkpoint, name)}

    def _orphans(self) -> None:
        """Move aside checksums without a file: Spark takes them for another query's."""
        place = path_of(self.subject.path)
        for folder, names in self.names.items():
            loose = [name for name in names if log_faults.UNFINISHED.fullmatch(name)]
            for name in sorted({*log_faults.orphan_checksums(names), *loose}):
                self._schedule_move(f"{place}/{folder}/{name}", "is a leftover")
        metadata, checksum = f"{self.checkpoint}/{METADATA}", f"{self.checkpoint}/.{METADATA}.crc"
        read, is_summed = self.storage.read, self.storage.is_there(checksum)
        if is_summed and not hadoop_checksums.fits(read(metadata), read(checksum)):
            self._schedule_move(f"{place}/.{METADATA}.crc", "is corrupt")

    def _schedule_move(self, path: str, what: str) -> None:
        """Move aside a file that isn't needed."""
        self.found.findings.append(Finding(self.subject.name, path, what, True))
        self.found.moves.append(path)


def _number(name: str) -> int:
    """Return the number in the name of a checkpoint file, its checksum or its temporary file; -1: none."""
    digits = name.lstrip(".").partition(".")[0]
    return int(digits) if digits.isdigit() else -1
