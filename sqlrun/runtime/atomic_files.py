"""Atomic writes of files, synced where they must survive a power failure. Shell: files, the C library.

`sqlrun.storage` calls this for the files of a warehouse; other files are written by it directly.
"""

from __future__ import annotations

import ctypes
import filecmp
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def write(file: Path, text: str | bytes) -> None:
    """Write a file atomically and durably: temporary name, sync, rename, sync the folder."""
    put(file, text, synced=True)


def put(file: Path, text: str | bytes, *, synced: bool = False) -> None:
    """Write a file atomically: readers never see half of it, and a failure leaves none of it behind."""
    with _written(file, text, synced=synced) as temporary:
        temporary.replace(file)
    if synced:
        sync_one(file.parent)


def write_new(file: Path, text: str | bytes, *, synced: bool = True) -> bool:
    """Write a new file atomically and durably; return False, without a write, if it exists.

    Without `synced` it becomes durable with the next sync of its file system.

    It uses a link, which unlike a rename never replaces a file: of two concurrent builds, one has to notice the other.
    """
    with _written(file, text, synced=synced) as temporary:
        try:
            file.hardlink_to(temporary)
        except FileExistsError:
            return False
    if synced:
        sync_one(file.parent)
    return True


def write_new_parts(file: Path, parts: Iterable[bytes]) -> bool:
    """Write a new file atomically and durably, part by part; return False if the path has a file with other content.

    A file with the same content is the one that an interrupted write has completed.
    """
    with _written(file, parts, synced=True) as temporary:
        try:
            file.hardlink_to(temporary)
        except FileExistsError:
            if not filecmp.cmp(file, temporary, shallow=False):
                return False
    sync_one(file.parent)
    return True


@contextmanager
def _written(file: Path, text: str | bytes | Iterable[bytes], *, synced: bool) -> Iterator[Path]:
    """Write a text to a temporary file of this process and yield it; the temporary file is deleted afterwards."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as out:
            out.writelines([text] if isinstance(text, bytes) else [text.encode()] if isinstance(text, str) else text)
        if synced:
            sync_one(temporary)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def sync_one(path: str | Path) -> None:
    """Make a file's content or a folder's entries durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync(folder: str) -> None:
    """Make all writes to the folder's file system durable, because Spark and Delta call no fsync themselves."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
        if syncfs is not None:
            syncfs(descriptor)
        else:
            os.sync()
    finally:
        os.close(descriptor)
