"""Compaction, and deletion of files and log entries that no version of a table needs. Shell: Delta files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta, timezone
from functools import partial
from operator import itemgetter
from typing import Any
from urllib.parse import unquote

from sqlrun.engines.delta import answers, deletion_vectors, file_layout, state, stats
from sqlrun.engines.delta import commit as delta_commit
from sqlrun.engines.delta import table as delta_table
from sqlrun.storage.factory import storage_of
from sqlrun.storage.storage import Entry

# Longer than Delta's checkpoints keep a removal (`deletedFileRetentionDuration`), and longer than any write takes.
FORGOTTEN = timedelta(days=30)


def compact(path: str, head: int | None = None) -> tuple[int, int]:
    """Compact a table's small files; return the number of files before and after.

    With `head`, only if it is the newest version; delta-rs tolerates a commit that comes in the meantime.
    Raises: EngineError if another writer interfered.
    """
    table = delta_table.open_table(path)
    delta_table.require_head(path, head, table)
    chosen = _compacted(table)
    if chosen == []:
        return 0, 0
    mark = delta_table.ours("upkeep")
    write = partial(
        table.optimize.compact,
        partition_filters=None if chosen is None else [(table.metadata().partition_columns[0], "in", chosen)],
        target_size=file_layout.COMPACTED,
        writer_properties=delta_table.layout(),
        commit_properties=mark,
        post_commithook_properties=delta_table.hooks(),
    )
    metrics = answers.received(table, mark, write) or {"numFilesRemoved": 0, "numFilesAdded": 0}
    return int(metrics["numFilesRemoved"]), int(metrics["numFilesAdded"])


def _compacted(table: Any) -> list[str] | None:
    """Return the values of the first partition column whose partitions to compact; None for the whole table.

    Of a table that MERGEs change, `file_layout` chooses the partitions.
    """
    if not delta_commit.marks(table):
        return None
    names = table.metadata().partition_columns
    partitions: dict[tuple[Any, ...], list[int]] = {}
    for file in delta_table.files_at(table):
        if file.get("num_records") is None:
            return None
        rows = partitions.setdefault(tuple(file[f"partition.{name}"] for name in names), [])
        rows += [file["num_records"]] if file["size_bytes"] < file_layout.COMPACTED else []
    # Of days and times, MERGEs add to the newest, but faulty clocks send days of the future. A partition by anything
    # else gets rows all the time.
    until = (datetime.now(timezone.utc) + timedelta(days=1)).date()
    dated = sorted((key for key in partitions if key and _is_day(key[0], until)), key=itemgetter(0), reverse=True)
    growing = {key for key in dated if key[0] == dated[0][0]} or partitions.keys()
    chosen = set(file_layout.compacted({key: partitions[key] for key in [*dated, *partitions]}, growing))
    if all(len(rows) < 2 for key, rows in partitions.items() if key not in chosen):
        return None
    try:
        # A filter finds no NULL.
        texts = {text for value, *_ in chosen if (text := stats.partition_text(value)) is not None}
    except ValueError:
        return None
    return sorted(texts)


def _is_day(value: Any, until: date) -> bool:
    """Return whether a partition's value is a day or a time, at most on the day `until`.

    >>> [_is_day(value, date(2026, 1, 2)) for value in (date(2026, 1, 2), datetime(2026, 1, 3), "2026-01-01")]
    [True, False, False]
    """
    return isinstance(value, date) and (value.date() if isinstance(value, datetime) else value) <= until


def vacuum(path: str, age: timedelta) -> int:
    """Delete files that left the table longer ago than `age`; return their number. Files of the newest version stay.

    `drop_forgotten` deletes files that the log doesn't name. A file whose rows were marked is removed twice in the log;
    its age counts from the final removal.
    """
    table = delta_table.open_table(path)
    hours = int(age.total_seconds() // 3600) + 1
    # delta-rs names a file as long as the log records its removal, even if it is already deleted.
    named = map(unquote, table.vacuum(hours, dry_run=True, enforce_retention_duration=False))
    storage = storage_of(path)
    deletable = [file for file in named if storage.is_there(f"{path}/{file}")]
    if not deletable:
        return 0
    since = datetime.now(timezone.utc) - timedelta(hours=hours)
    needed = _left_since(path, table.version(), since, set(deletable))
    table.vacuum(
        hours,
        dry_run=False,
        enforce_retention_duration=False,
        keep_versions=[table.version(), *needed],
        commit_properties=delta_table.ours("upkeep"),
        post_commithook_properties=delta_table.hooks(),
    )
    return sum(not storage.is_there(f"{path}/{file}") for file in deletable)


def _left_since(path: str, newest: int, since: datetime, files: set[str]) -> list[int]:
    """Return versions that together contain those of some files that have left the table since a time."""
    found = []
    for version in range(newest, 0, -1):
        committed = delta_table.committed_at(path, version)
        if committed is None or committed < since:
            break
        removed = {unquote(a["remove"]["path"]) for a in delta_table.actions(path, version) if "remove" in a}
        if removed & files:
            found.append(version - 1)
            files -= removed
    return found


def drop_change_files(path: str, oldest: int) -> int:
    """Delete change files that no commit after `oldest` names; return their number."""
    table = delta_table.open_table(path)
    named: set[str] = set()
    for version in range(oldest + 1, table.version() + 1):
        named.update(unquote(a["cdc"]["path"]) for a in delta_table.actions(path, version) if "cdc" in a)
    return _deleted(path, (file for file, _ in _parquet_files(path, "_change_data") if file not in named))


def drop_vectors(path: str, oldest: int, before: datetime) -> int:
    """Delete files of deletion vectors that no version from `oldest` on names; return their number.

    A file that left the table after `before`, or was written since, may still have readers, or is about to be
    committed.
    """
    storage = storage_of(path)
    files = storage.entries(f"{path}/{deletion_vectors.FOLDER}")
    there = {f"{deletion_vectors.FOLDER}/{e.name}" for e in files if e.modified < before.timestamp()}
    if not there:
        return 0
    entries = list(state.at(path, oldest).files.values())
    newest = delta_table.open_table(path).version()
    for version in range(oldest + 1, newest + 1):
        entries += [a["add"] for a in delta_table.actions(path, version) if "add" in a]
    entries += _removed_since(path, newest, before)
    return _deleted(path, there - {deletion_vectors.file_of(entry.get("deletionVector")) for entry in entries})


def drop_forgotten(path: str, oldest: int, before: datetime) -> int:
    """Delete old data files that no version from `oldest` on contains; return their number.

    `vacuum` finds files by their removal, which the log eventually drops. Files that it missed by then would stay
    forever, as would files that a build wrote and never committed. Files that left the table after `before` may still
    have readers.
    """
    table = delta_table.open_table(path)
    named = {unquote(file["path"]) for file in delta_table.files_at(delta_table.open_table(path, oldest))}
    for version in range(oldest + 1, table.version() + 1):
        named.update(unquote(a["add"]["path"]) for a in delta_table.actions(path, version) if "add" in a)
    named.update(unquote(entry["path"]) for entry in _removed_since(path, table.version(), before))
    live = {unquote(file["path"]) for file in delta_table.files_at(table)}
    storage = storage_of(path)
    if not all(storage.is_there(f"{path}/{name}") for name in live):
        return 0  # the log spells paths differently: delete nothing
    last = (datetime.now(timezone.utc) - FORGOTTEN).timestamp()
    forgotten = (name for name, entry in _parquet_files(path) if entry.modified < last and name not in named)
    return _deleted(path, forgotten)


def drop_unnamed(path: str, before: datetime) -> int:
    """Delete data files and vectors that neither the newest version names, nor a commit since `before`; count them.

    Only for a folder whose files are second names of others, and which has one writer: a file that a commit is about to
    name is deleted, too.
    """
    newest = delta_table.head(path)
    assert newest is not None
    entries = [*state.at(path, newest).files.values(), *_removed_since(path, newest, before)]
    named = {unquote(entry["path"]) for entry in entries}
    named |= {deletion_vectors.file_of(entry.get("deletionVector")) for entry in entries}
    vectors = (
        f"{deletion_vectors.FOLDER}/{name}" for name in storage_of(path).names(f"{path}/{deletion_vectors.FOLDER}")
    )
    there = [*(name for name, _ in _parquet_files(path)), *vectors]
    return _deleted(path, (name for name in there if name not in named))


def _removed_since(path: str, newest: int, before: datetime) -> Iterator[Mapping[str, Any]]:
    """Yield the removals of the commits up to `newest` that were made since a time; their files may have readers."""
    for version in range(newest, 0, -1):
        committed = delta_table.committed_at(path, version)
        if committed is None or committed < before:
            return
        yield from (action["remove"] for action in delta_table.actions(path, version) if "remove" in action)


def drop_checksums(path: str) -> int:
    """Delete checksums of deleted data files and change files; return their number.

    Spark writes one beside each file on a local disk, and neither vacuum knows of them. A file exists before its
    checksum does.
    """
    count = 0
    for folder, files in (*_folders(path), *_folders(path, "_change_data")):
        names = [entry.name for entry in files]
        present = set(names)
        sums = (name for name in names if name.startswith(".") and name.endswith(".parquet.crc"))
        count += _deleted(path, (f"{folder}{name}" for name in sums if name[1:-4] not in present))
    return count


def _deleted(path: str, names: Iterable[str]) -> int:
    """Delete files of a table; return their number."""
    storage, count = storage_of(path), 0
    for name in names:
        storage.delete(f"{path}/{name}")
        count += 1
    return count


def _parquet_files(path: str, below: str = "") -> Iterator[tuple[str, Entry]]:
    """Return a table's Parquet files, by their paths in it."""
    for folder, files in _folders(path, below):
        yield from ((f"{folder}{entry.name}", entry) for entry in files if entry.name.endswith(".parquet"))


def _folders(path: str, below: str = "") -> Iterator[tuple[str, list[Entry]]]:
    """Return a table's folders, with those of partitions as `a=1/`, and their files.

    Other folders, and tables inside this one, aren't the table's.
    """
    storage, place = storage_of(path), f"{below}/" if below else ""
    found = storage.entries(f"{path}/{below}" if below else path)
    yield place, [entry for entry in found if not entry.is_folder]
    for name in (entry.name for entry in found if entry.is_folder):
        ours = "=" in name or not name.startswith(("_", "."))
        if ours and not storage.is_there(f"{path}/{place}{name}/_delta_log"):
            yield from _folders(path, f"{place}{name}")


def trim_log(path: str, oldest: int, before: datetime) -> int:
    """Delete log entries that no version from `oldest` on needs; return their number.

    A version is read from the newest checkpoint up to it and the later commits (Delta protocol, "Checkpoints"). Readers
    may not have found a checkpoint made after `before` yet, so older ones stay.
    """
    log = storage_of(path).entries(f"{path}/_delta_log")
    whole = re.compile(r"(\d{20})\.checkpoint\.parquet")
    found = [(int(m[1]), entry) for entry in log if (m := whole.fullmatch(entry.name))]
    usable = [n for n, entry in found if n <= oldest and entry.modified < before.timestamp()]
    if not usable:
        return 0
    first = max(usable)
    numbers = ((entry.name.lstrip(".")[:20], entry.name) for entry in log)
    older = (name for number, name in numbers if number.isdigit() and int(number) < first)
    return _deleted(f"{path}/_delta_log", older)
