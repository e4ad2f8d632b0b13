"""What `sqlrun clean` does: it deletes target/, and a warehouse that nobody writes. Shell: files, the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from sqlrun.errors import UsageError
from sqlrun.load import load, profile
from sqlrun.publish import warehouse_format
from sqlrun.report.console import Console
from sqlrun.storage import lock

BOOKS = "_sqlrun"


def clean_up(root: Path, warehouse: bool, name: str | None, clock: datetime) -> int:
    """Carry out `sqlrun clean`; where the warehouse is another process's, nothing is deleted."""
    console, deleted = Console(), []
    if warehouse:
        settings = load.read(root).project
        held = profile.load(root, name or settings.profile).warehouse
        if Path(held).exists():
            delete(held, settings.name, clock)
            deleted.append(Path(held))
    target = root / "target"
    if target.is_symlink():
        target.unlink()  # what it leads to is not sqlrun's
        deleted.append(target)
    elif target.exists():
        shutil.rmtree(target)
        deleted.append(target)
    console.lines([f"deleted {folder}" for folder in deleted])
    return 0


def delete(warehouse: str, project: str, clock: datetime) -> None:
    """Delete a warehouse: what readers ask first, then the tables, and the lock's file last.

    Who comes meanwhile is refused, and what a crash has left is still known as a warehouse, to be deleted again.
    Raises: UsageError if the folder is no warehouse of this project; LockedError if another process holds it.
    """
    folder = Path(warehouse)
    if not (folder / BOOKS).is_dir():
        raise UsageError(f"{folder} is not a warehouse of sqlrun (it has no {BOOKS} folder); it is left alone")
    warehouse_format.require(warehouse, project)
    with lock.hold(warehouse, clock) as holder:
        warehouse_format.require(warehouse, project)
        for path in _in_order(folder):
            lock.require(warehouse, holder)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        shutil.rmtree(folder / BOOKS)
        with suppress(OSError):  # a disk's own folder stays, empty
            folder.rmdir()


def _in_order(folder: Path) -> Iterator[Path]:
    """List the ledgers, the tables, and what else there is but the lock and the mark."""
    books = folder / BOOKS
    for name in ("ledger", "environments"):
        if (books / name).exists():
            yield books / name
    for path in sorted(folder.iterdir()):
        if path != books:
            yield path
    yield from (
        path for path in sorted(books.iterdir()) if path.name not in ("lock", warehouse_format.file_of("").name)
    )
