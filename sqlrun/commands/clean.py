"""`sqlrun clean`: delete target/, and a warehouse that no process writes. Shell: files, the terminal."""

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
    """Run `sqlrun clean`; delete nothing if another process holds the warehouse's lock."""
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
    """Delete a warehouse: the ledgers, which readers open first, then the tables, and the lock's file last.

    The lock rejects other processes meanwhile. After a crash sqlrun still recognizes the rest as a warehouse, so the
    command can delete it.

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
        storage.delete_empty(warehouse)  # an empty mount point stays


def _in_order(storage: Storage, warehouse: str) -> Iterator[tuple[str, Entry]]:
    """Yield the ledgers, the tables, and everything else except the lock and the mark, each with its folder."""
    books = f"{warehouse}/{BOOKS}"
    held = {entry.name: entry for entry in storage.entries(books)}
    yield from ((books, held.pop(name)) for name in ("ledger", "environments") if name in held)
    tables = sorted(storage.entries(warehouse), key=attrgetter("name"))
    yield from ((warehouse, entry) for entry in tables if entry.name != BOOKS)
    yield from ((books, held[name]) for name in sorted(held) if name not in (LOCK, MARK))
