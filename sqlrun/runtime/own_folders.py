"""Guard of the folders that sqlrun writes to and deletes from: no link in them may lead elsewhere. Shell: files.

A warehouse itself may be a link, because its place is the user's choice. Its content and `target/` are created by
sqlrun, which creates no links.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from sqlrun.errors import UsageError

TARGET = "target"
BOOKS = "_sqlrun"
# Levels searched for links: a table's files and partitions, and a landing's batches by their folder.
DEPTH, BOOKS_DEPTH = 3, 4


def require_target(root: Path) -> None:
    """Reject a `target/` that is a link or contains one: a build would write and delete at its destination.

    Raises: UsageError with the link's name.
    """
    folder = root / TARGET
    link = str(folder) if folder.is_symlink() else next(_links(str(folder), 99), None)
    if link is not None:
        _refuse(Path(link), "sqlrun writes to target/ and deletes its own files there", "target/")


def delete_target(root: Path) -> bool:
    """Delete a project's `target/`; of a link only itself, because its destination doesn't belong to sqlrun."""
    folder = root / TARGET
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
    else:
        return False
    return True


def require_warehouse(warehouse: str) -> None:
    """Reject a warehouse with a link among its tables and system tables: maintenance would delete its destination.

    Raises: UsageError with the link's name.
    """
    books = f"{warehouse}/{BOOKS}"
    link = next(_links(warehouse, DEPTH), None) or next(_links(books, BOOKS_DEPTH), None)
    if link is not None:
        way = "To use another disk, link the warehouse folder itself, or name another folder in the profile"
        _refuse(
            Path(link),
            "sqlrun writes to the tables of a warehouse and deletes files that no tick needs",
            "a warehouse",
            way,
        )


def _refuse(link: Path, why: str, where: str, way: str = "") -> None:
    to = link.readlink()
    advice = f" {way}." if way else ""
    raise UsageError(
        f"SR743 {link} is a link to {to}. {why}, so links aren't allowed in {where}. Nothing was written. Replace "
        f"the link by a folder or a file.{advice}"
    )


def _links(folder: str, depth: int) -> Iterator[str]:
    """Yield the links below a folder, `depth` levels down; none is followed."""
    try:
        with os.scandir(folder) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink():
            yield entry.path
        elif depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from _links(entry.path, depth - 1)
