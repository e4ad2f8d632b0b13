"""What `sqlrun clean` does: it deletes target/, and a warehouse that nobody writes. Shell: files, the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from operator import attrgetter
from pathlib import Path

from sqlrun.errors import UsageError
from sqlrun.load import load, profile
from sqlrun.publish import warehouse_format
from sqlrun.report.console import Console
from sqlrun.runtime import own_folders
from sqlrun.storage import lock
from sqlrun.storage.factory import storage_of
from sqlrun.storage.storage import Entry, Storage

BOOKS, LOCK, MARK = "_sqlrun", "lock", "format"


def clean_up(root: Path, warehouse: bool, name: str | None, clock: datetime) -> int:
    """Carry out `sqlrun clean`; where the warehouse is another process's, nothing is deleted."""
    console, deleted = Console(), list[str]()
    if warehouse:
        settings = load.read(root).project
        held = profile.load(root, name or settings.profile).warehouse
        if storage_of(held).is_there(held):
            delete(held, settings.name, clock)
            deleted.append(held)
    if own_folders.delete_target(root):
        deleted.append(str(root / own_folders.TARGET))
    console.lines([f"deleted {folder}" for folder in deleted])
    return 0


def delete(warehouse: str, project: str, clock: datetime) -> None:
    """Delete a warehouse: what readers ask first, then the tables, and the lock's file last.

    Who comes meanwhile is refused, and what a crash has left is still known as a warehouse, to be deleted again.
    Raises: UsageError if the folder is no warehouse of this project; LockedError if another process holds it.
    """
    storage, books = storage_of(warehouse), f"{warehouse}/{BOOKS}"
    if not storage.is_folder(books):
        raise UsageError(f"{warehouse} is not a warehouse of sqlrun (it has no {BOOKS} folder); nothing was deleted")
    warehouse_format.require(warehouse, project)
    with lock.hold(warehouse, clock) as holder:
        warehouse_format.require(warehouse, project)
        for folder, entry in _in_order(storage, warehouse):
            lock.require(warehouse, holder)
            delete_it = storage.delete_folder if entry.is_folder else storage.delete
            delete_it(f"{folder}/{entry.name}")
        storage.delete_folder(books)
        storage.delete_empty(warehouse)  # a disk's own folder stays, empty


def _in_order(storage: Storage, warehouse: str) -> Iterator[tuple[str, Entry]]:
    """Return the ledgers, the tables, and what else there is but the lock and the mark, each with its folder."""
    books = f"{warehouse}/{BOOKS}"
    held = {entry.name: entry for entry in storage.entries(books)}
    yield from ((books, held.pop(name)) for name in ("ledger", "environments") if name in held)
    tables = sorted(storage.entries(warehouse), key=attrgetter("name"))
    yield from ((warehouse, entry) for entry in tables if entry.name != BOOKS)
    yield from ((books, held[name]) for name in sorted(held) if name not in (LOCK, MARK))
