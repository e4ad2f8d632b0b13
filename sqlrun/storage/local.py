"""A warehouse on a local disk, or on one that is mounted. Shell: files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from sqlrun.runtime import atomic_files, own_folders
from sqlrun.storage import local_lock
from sqlrun.storage.storage import Entry, Stamp


class LocalStorage:
    """Files and folders of the operating system; what each verb promises says `Storage`."""

    def read(self, path: str) -> bytes:
        """Return a file's bytes."""
        with open(path, "rb") as file:
            return file.read()

    def text(self, path: str) -> str:
        """Return a file's text."""
        return self.read(path).decode()

    def ends(self, path: str, length: int) -> tuple[bytes, bytes]:
        """Return a file's first and last bytes."""
        with open(path, "rb") as file:
            first = file.read(length)
            file.seek(max(0, file.seek(0, os.SEEK_END) - length))
            return first, file.read(length)

    def stamp(self, path: str) -> Stamp | None:
        """Return which file lies at a path."""
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Stamp(found.st_ino, found.st_mtime_ns, found.st_size)

    def is_there(self, path: str) -> bool:
        """Return whether a file or a folder lies at a path."""
        return os.path.exists(path)

    def is_folder(self, path: str) -> bool:
        """Return whether a folder lies at a path."""
        return os.path.isdir(path)

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder."""
        try:
            return os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def entries(self, folder: str) -> list[Entry]:
        """Return what a folder holds; what goes while it is listed is left out."""
        found = []
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as listed:
            for each in listed:
                with suppress(FileNotFoundError):
                    state = each.stat(follow_symlinks=False)
                    is_folder = each.is_dir(follow_symlinks=False)
                    found.append(Entry(each.name, is_folder, state.st_size, state.st_mtime))
        return found

    def put(self, path: str, data: bytes, *, synced: bool) -> None:
        """Write a file under a temporary name, and rename it."""
        atomic_files.put(Path(path), data, synced=synced)

    def put_if_absent(self, path: str, data: bytes, *, synced: bool) -> bool:
        """Write a file under a temporary name, and link it."""
        return atomic_files.write_new(Path(path), data, synced=synced)

    def make_folder(self, folder: str) -> None:
        """Make a folder and those that it lies in."""
        Path(folder).mkdir(parents=True, exist_ok=True)  # unlike makedirs it asks nothing before it tries

    def move(self, path: str, to: str) -> None:
        """Rename a file or a folder."""
        if os.path.exists(path):
            self.make_folder(os.path.dirname(to))
            os.rename(path, to)

    def delete(self, path: str) -> None:
        """Delete a file or a link."""
        with suppress(FileNotFoundError):
            os.unlink(path)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with all that is in it."""
        if os.path.lexists(folder):
            shutil.rmtree(folder)

    def delete_empty(self, folder: str) -> None:
        """Delete a folder in which nothing is."""
        with suppress(OSError):
            os.rmdir(folder)

    def sync(self, folder: str) -> None:
        """Sync the folder's file system."""
        atomic_files.sync(folder)

    def hold(self, path: str, text: str, taken: Callable[[str], None]) -> AbstractContextManager[None]:
        """Hold a lock file by the operating system's lock."""
        return local_lock.hold(path, text, taken)

    def require_no_links(self, warehouse: str) -> None:
        """Refuse a warehouse with a link among its tables and books."""
        own_folders.require_warehouse(warehouse)
