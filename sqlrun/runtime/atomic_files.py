"""Files written whole, and what must outlive a loss of power synced. Shell: files, the C library.

For the files of a warehouse `sqlrun.storage` calls this; others are written by it directly.
"""

from __future__ import annotations

import ctypes
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write(file: Path, text: str | bytes) -> None:
    """Write whole or not at all, and durably: temporary name, sync, rename, sync the folder."""
    put(file, text, synced=True)


def put(file: Path, text: str | bytes, *, synced: bool = False) -> None:
    """Write whole or not at all: a reader never sees half of a file, nor does one stay where this fails."""
    with _written(file, text, synced=synced) as temporary:
        temporary.replace(file)
    if synced:
        _sync(file.parent)


def write_new(file: Path, text: str | bytes, *, synced: bool = True) -> bool:
    """Write a file that isn't there yet, whole and durably; False, and nothing is written, where it is.

    Without `synced` it is durable when its file system is synced.

    A link, unlike a rename, takes no other file's place: of two builds that meet here one has to notice.
    """
    with _written(file, text, synced=synced) as temporary:
        try:
            file.hardlink_to(temporary)
        except FileExistsError:
            return False
    if synced:
        _sync(file.parent)
    return True


@contextmanager
def _written(file: Path, text: str | bytes, *, synced: bool) -> Iterator[Path]:
    """Write what a file holds under a temporary name of this process's own, which is gone afterwards."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.write_bytes(text if isinstance(text, bytes) else text.encode())
        if synced:
            _sync(temporary)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Make durable what a file holds, or which files a folder has."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync(folder: str) -> None:
    """Make everything written to the folder's file system durable; Spark and Delta call no fsync themselves."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
        if syncfs is not None:
            syncfs(descriptor)
        else:
            os.sync()
    finally:
        os.close(descriptor)
