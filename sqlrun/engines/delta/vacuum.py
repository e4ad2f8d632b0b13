"""What no version of a Delta table needs any more: files and entries of its log deleted. Shell: Delta files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import unquote

from sqlrun.engines.delta import table as delta_table

# Delta's checkpoints hold a removal for so long (`deletedFileRetentionDuration`), and no write takes so long.
FORGOTTEN = timedelta(days=30)


def vacuum(path: str, age: timedelta) -> int:
    """Delete the files that left the table longer ago than an age, those of the newest version never; count them.

    Files that the log doesn't name are `drop_forgotten`'s. One whose rows were marked
    long ago leaves, by the log, twice: what counts is when it left for good.
    """
    table = delta_table.open_table(path)
    hours = int(age.total_seconds() // 3600) + 1
    # delta-rs names a file for as long as the log tells of its removal, also where it is deleted already.
    named = map(unquote, table.vacuum(hours, dry_run=True, enforce_retention_duration=False))
    gone = [file for file in named if (Path(path) / file).exists()]
    if not gone:
        return 0
    since = datetime.now(timezone.utc) - timedelta(hours=hours)
    needed = _left_since(path, table.version(), since, set(gone))
    table.vacuum(
        hours,
        dry_run=False,
        enforce_retention_duration=False,
        keep_versions=[table.version(), *needed],
        commit_properties=delta_table.ours("upkeep"),
        post_commithook_properties=delta_table.hooks(),
    )
    return sum(not (Path(path) / file).exists() for file in gone)


def _left_since(path: str, newest: int, since: datetime, files: set[str]) -> list[int]:
    """Find versions which, together, have those of some files that have left the table since a time."""
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
    """Delete the files of the change feed that no commit after `oldest` names; count them."""
    table = delta_table.open_table(path)
    named: set[str] = set()
    for version in range(oldest + 1, table.version() + 1):
        named.update(unquote(a["cdc"]["path"]) for a in delta_table.actions(path, version) if "cdc" in a)
    count = 0
    for file in (Path(path) / "_change_data").rglob("*.parquet"):
        if file.relative_to(path).as_posix() not in named:
            file.unlink()
            count += 1
    return count


def drop_forgotten(path: str, oldest: int, before: datetime) -> int:
    """Delete the data files of long ago that no version from `oldest` on has; count them.

    `vacuum` finds files by their removal, which the log forgets: where it came too late they would stay for ever, as
    would those that a build wrote and never committed. What left the table after `before` may still be read.
    """
    table = delta_table.open_table(path)
    named = {unquote(file["path"]) for file in delta_table.files_at(delta_table.open_table(path, oldest))}
    for version in range(oldest + 1, table.version() + 1):
        named.update(unquote(a["add"]["path"]) for a in delta_table.actions(path, version) if "add" in a)
    for version in range(table.version(), 0, -1):
        committed = delta_table.committed_at(path, version)
        if committed is None or committed < before:
            break
        named.update(unquote(a["remove"]["path"]) for a in delta_table.actions(path, version) if "remove" in a)
    live = {unquote(file["path"]) for file in delta_table.files_at(table)}
    if not all((Path(path) / name).is_file() for name in live):
        return 0  # the log writes names otherwise than thought here
    last, count = (datetime.now(timezone.utc) - FORGOTTEN).timestamp(), 0
    for file in _data_files(path):
        if file.stat().st_mtime < last and file.relative_to(path).as_posix() not in named:
            file.unlink()
            count += 1
    return count


def drop_checksums(path: str) -> int:
    """Delete the checksums of data files and change files that are gone; count them.

    Spark keeps one beside each file that it writes to a local disk, and neither vacuum knows of them. A file is there
    before its checksum is.
    """
    count = 0
    for folder, names in (*_folders(path), *_folders(f"{path}/_change_data")):
        present = set(names)
        for name in names:
            if name.startswith(".") and name.endswith(".parquet.crc") and name[1:-4] not in present:
                (Path(folder) / name).unlink(missing_ok=True)
                count += 1
    return count


def _data_files(path: str) -> Iterator[Path]:
    """Find a table's data files."""
    for folder, names in _folders(path):
        yield from (Path(folder) / name for name in names if name.endswith(".parquet"))


def _folders(path: str) -> Iterator[tuple[str, list[str]]]:
    """Give a table's folders, those of partitions included, with the names of their files.

    Folders that aren't of partitions, and tables within this one, are others'.
    """
    for folder, folders, names in os.walk(path):
        folders[:] = [
            name
            for name in folders
            if ("=" in name or not name.startswith(("_", "."))) and not (Path(folder) / name / "_delta_log").exists()
        ]
        yield folder, names


def trim_log(path: str, oldest: int, before: datetime) -> int:
    """Delete the log's entries that no version from `oldest` on needs; give how many.

    A version is put together from the newest checkpoint at or below it and the commits after that (Delta protocol,
    "Checkpoints"). A checkpoint made after `before` may be one that a reader has not found yet: older ones stay.
    """
    log = Path(path) / "_delta_log"
    whole = re.compile(r"(\d{20})\.checkpoint\.parquet")
    found = [(int(m[1]), file) for file in log.iterdir() if (m := whole.fullmatch(file.name))]
    usable = [n for n, f in found if n <= oldest and f.stat().st_mtime < before.timestamp()]
    if not usable:
        return 0
    first, count = max(usable), 0
    for file in log.iterdir():
        number = file.name.lstrip(".")[:20]
        if number.isdigit() and int(number) < first:
            file.unlink()
            count += 1
    return count
