"""The interface of a warehouse's storage. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Stamp:
    """Identity of the file at a path: a changed or replaced file has another stamp.

    `identity` and `modified` depend on the storage: an inode and nanoseconds, or an object store's equivalents.
    """

    identity: int | str
    modified: int
    size: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a folder, by its name in its parent folder. A link isn't a folder.

    `modified`: time of the last change, in seconds since 1970.
    """

    name: str
    is_folder: bool
    size: int
    modified: float


class Storage(Protocol):
    """A warehouse's files. The names in a path are separated by `/`. Methods raise OSError on failure.

    Where the storage has no folders, each prefix of a file's path counts as one.
    """

    @property
    def writes_whole(self) -> bool:
        """Return whether a file that exists is complete, whatever crashed while it was written."""

    @property
    def requests(self) -> Counter[str]:
        """Return the number of this process's requests so far, by kind; empty for a disk."""

    def at_once(self, do: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return `do` of each item, in order; several at once in threads, where each waits for answers.

        Raises the first item's error when none is running any more.
        """

    def read(self, path: str) -> bytes:
        """Return a file's bytes. Raises: FileNotFoundError where there is none."""

    def text(self, path: str) -> str:
        """Return a file's text, UTF-8. Raises: FileNotFoundError; UnicodeDecodeError, a ValueError, for other bytes."""

    def ends(self, path: str, length: int) -> tuple[bytes, bytes]:
        """Return a file's first and last bytes, fewer where it is shorter. Raises: FileNotFoundError."""

    def stamp(self, path: str) -> Stamp | None:
        """Return the stamp of the file at a path; None if there is no file."""

    def is_there(self, path: str) -> bool:
        """Return whether a path is a file or a folder."""

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder."""

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, in no order; empty if there is no folder. The cheapest query of a storage."""

    def entries(self, folder: str) -> list[Entry]:
        """Return a folder's entries, in no order; empty if there is no folder."""

    def put(self, path: str, data: bytes, *, synced: bool) -> None:
        """Write a file atomically, replacing an existing one; on failure nothing is left behind.

        `synced`: the file is durable on return; otherwise after the next `sync`.
        """

    def put_if_absent(self, path: str, data: bytes, *, synced: bool) -> bool:
        """Write a file as `put` does and return True; if the path exists, write nothing and return False.

        Of several concurrent writers of one path, one gets True.
        """

    def make_folder(self, folder: str) -> None:
        """Create a folder and its parents, writable for others; do nothing if it exists."""

    def move(self, path: str, to: str) -> None:
        """Move a file or a folder and create the target's parents; do nothing if it doesn't exist."""

    def link(self, path: str, to: str) -> None:
        """Give a file a second name, and create its parents; do nothing if that name exists.

        Where the storage has no second names, it is a copy.
        """

    def delete(self, path: str) -> None:
        """Delete a file or a link; do nothing if there is none."""

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with its contents; do nothing if there is none. Targets of links in it stay."""

    def delete_empty(self, folder: str) -> None:
        """Delete an empty folder; leave one that isn't empty or can't be deleted."""

    def sync(self, folder: str) -> None:
        """Make all writes to the folder's file system durable, those of engines as well."""

    def hold(self, path: str, text: str, taken: Callable[[str], None]) -> AbstractContextManager[None]:
        """Lock a file and write `text` into it. The lock is freed when its process dies, or a while later.

        If another process holds the lock, call `taken` with the file's text: it raises, or this process waits.
        """

    def holder(self, path: str) -> str:
        """Return the text of a lock's holder; "" if the lock's file is missing."""

    def require_usable(self, warehouse: str) -> None:
        """Reject a warehouse whose storage could write or delete elsewhere, or could lose a commit.

        Raises: UsageError naming the link, or what the store lacks.
        """
