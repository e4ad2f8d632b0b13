"""Storage of a warehouse on a local or mounted disk. Shell: files."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from sqlrun.runtime import atomic_files, own_folders
from sqlrun.storage import local_lock
from sqlrun.storage.storage import Entry, Item, Result, Stamp


class LocalStorage:
    """Files and folders of the operating system. `Storage` documents each method."""

    writes_whole = False

    @property
    def requests(self) -> Counter[str]:
        """Return nothing: a disk isn't asked over a network."""
        return Counter()

    def at_once(self, do: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return `do` of each item, one after the other: threads would take longer than a disk."""
        return [do(item) for item in items]

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
        """Return the stamp of the file at a path."""
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Stamp(found.st_ino, found.st_mtime_ns, found.st_size)

    def is_there(self, path: str) -> bool:
        """Return whether a path is a file or a folder."""
        return os.path.exists(path)

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder."""
        return os.path.isdir(path)

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder."""
        try:
            return os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def entries(self, folder: str) -> list[Entry]:
        """Return a folder's entries, without files deleted during the listing."""
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
        """Create a folder and its parents."""
        Path(folder).mkdir(parents=True, exist_ok=True)  # unlike makedirs, it tries before it checks

    def move(self, path: str, to: str) -> None:
        """Rename a file or a folder."""
        if os.path.exists(path):
            self.make_folder(os.path.dirname(to))
            os.rename(path, to)

    def link(self, path: str, to: str) -> None:
        """Link a file under a second name."""
        self.make_folder(os.path.dirname(to))
        with suppress(FileExistsError):
            os.link(path, to)

    def delete(self, path: str) -> None:
        """Delete a file or a link."""
        with suppress(FileNotFoundError):
            os.unlink(path)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with its contents."""
        if os.path.lexists(folder):
            shutil.rmtree(folder)

    def delete_empty(self, folder: str) -> None:
        """Delete an empty folder."""
        with suppress(OSError):
            os.rmdir(folder)

    def sync(self, folder: str) -> None:
        """Sync the folder's file system."""
        atomic_files.sync(folder)

    def hold(self, path: str, text: str, taken: Callable[[str], None]) -> AbstractContextManager[None]:
        """Lock a file by the operating system's lock."""
        return local_lock.hold(path, text, taken)

    def holder(self, path: str) -> str:
        """Return the text of a lock's file."""
        try:
            return self.read(path).decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def require_usable(self, warehouse: str) -> None:
        """Reject a warehouse that has a link among its tables and system tables."""
        own_folders.require_warehouse(warehouse)
