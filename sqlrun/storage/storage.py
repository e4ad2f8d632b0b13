"""What sqlrun asks of the place where a warehouse lies. Pure."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Stamp:
    """Which file lies at a path: another one, or the same one changed, has another stamp.

    `identity` and `modified` are the place's own: an inode and nanoseconds, or what an object store has instead.
    """

    identity: int | str
    modified: int
    size: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What a folder holds: a file or a folder, by its name in it. A link is no folder.

    `modified`: when it was changed, in seconds since 1970.
    """

    name: str
    is_folder: bool
    size: int
    modified: float


class Storage(Protocol):
    """The verbs. Paths are texts with `/` between their names. What fails is an OSError.

    Where folders are no things of their own, each path that files lie below is one.
    """

    def read(self, path: str) -> bytes:
        """Return a file's bytes. Raises: FileNotFoundError where there is none."""

    def text(self, path: str) -> str:
        """Return a file's text, UTF-8. Raises: FileNotFoundError; UnicodeDecodeError, a ValueError, for other bytes."""

    def ends(self, path: str, length: int) -> tuple[bytes, bytes]:
        """Return a file's first and last bytes, fewer where it is shorter. Raises: FileNotFoundError."""

    def stamp(self, path: str) -> Stamp | None:
        """Return which file lies at a path; None where there is none."""

    def is_there(self, path: str) -> bool:
        """Return whether a file or a folder lies at a path."""

    def is_folder(self, path: str) -> bool:
        """Return whether a folder lies at a path."""

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, in no order; none where there is no folder. The cheapest question of all."""

    def entries(self, folder: str) -> list[Entry]:
        """Return what a folder holds, in no order; nothing where there is no folder."""

    def put(self, path: str, data: bytes, *, synced: bool) -> None:
        """Write a file, in place of one that is there: whole, or not at all and nothing beside it.

        `synced`: it is durable when this returns; otherwise when `sync` has been called.
        """

    def put_if_absent(self, path: str, data: bytes, *, synced: bool) -> bool:
        """Write a file as `put` does where none is; otherwise nothing, and return False.

        Of several who write one path at once, one is told True.
        """

    def make_folder(self, folder: str) -> None:
        """Make a folder and those that it lies in, for others to write to; nothing where it is there."""

    def move(self, path: str, to: str) -> None:
        """Move a file or a folder, and make the folders that it then lies in; nothing where it isn't there."""

    def delete(self, path: str) -> None:
        """Delete a file or a link; nothing where there is none."""

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with all that is in it; nothing where there is none. What a link in it leads to stays."""

    def delete_empty(self, folder: str) -> None:
        """Delete a folder in which nothing is; one that holds something, or can't be deleted, stays."""

    def sync(self, folder: str) -> None:
        """Make durable all that was written to the place in which a folder lies, by engines as well."""

    def hold(self, path: str, text: str, taken: Callable[[str], None]) -> AbstractContextManager[None]:
        """Hold a lock file that says `text`; the lock of a process that died is free by itself.

        Where another one holds it, `taken` is called with what the file says: it raises, or the lock is waited for.
        """

    def require_no_links(self, warehouse: str) -> None:
        """Refuse a warehouse in which a link leads a write or a deletion elsewhere.

        Raises: UsageError naming the link.
        """
