"""The files below a source's folder, and the files that no source reads. Shell: files.

Folders and files whose name begins with `.` or `_` are skipped: other programs write to them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from sqlrun.errors import SourceError
from sqlrun.source_api import Position
from sqlrun.sources.file_choice import Choice

HIDDEN = "._"
MOST_UNREAD = 1_000  # number of unread names that are collected
MOST_LOOKED_AT = 100_000  # number of entries that are looked at for them


def listed(folder: str, choice: Choice) -> dict[str, Position]:
    """Return a source's files by their path relative to the folder, with size and modification time.

    Raises: SourceError if the folder, or a folder in it, can't be read.
    """
    found: dict[str, Position] = {}
    takes = choice.takes
    real = f"{os.path.realpath(folder)}/"
    for path, entry, is_linked in _entries(folder, choice):
        # There may be a million: nothing is asked twice.
        if not takes(path):
            continue
        try:
            if entry.is_file():
                if not path.isascii():
                    path.encode()
                if (is_linked or entry.is_symlink()) and _is_listed(entry, real, choice):
                    continue
                stat = entry.stat()
                found[path] = stat.st_size, stat.st_mtime_ns
        except (OSError, UnicodeEncodeError):  # it was deleted meanwhile, is a circular link, or has no valid name
            continue
    return found


def _is_listed(entry: os.DirEntry[str], real: str, choice: Choice) -> bool:
    """Return whether a linked file is the source's by its own path too, as by a link `latest` to the newest folder."""
    own = os.path.realpath(entry.path)
    if not own.startswith(real):
        return False
    path = own[len(real) :]
    is_hidden = any(segment[0] in HIDDEN for segment in path.split("/"))
    return not is_hidden and choice.takes(path)


def _entries(folder: str, choice: Choice) -> Iterator[tuple[str, os.DirEntry[str], bool]]:
    """Yield what isn't hidden and isn't a folder that is entered, folder by folder: its path, and whether a link leads
    to its folder.
    """
    # A folder's path relative to the source's, and the identities of the folders that it is in.
    rest: list[tuple[str, tuple[tuple[int, int], ...]]] = [("", ())]
    while rest:
        below, above = rest.pop()
        start = f"{below}/" if below else ""
        for entry in _scanned(folder, below):
            name = entry.name
            if name[0] in HIDDEN:
                continue
            path = start + name
            try:
                is_folder = entry.is_dir()
            except OSError:  # a circular link
                is_folder = False
            if not is_folder:
                yield path, entry, bool(above)
            elif choice.enters(path):
                inside = above
                if entry.is_symlink():
                    # Only a link can lead back to a folder that contains it.
                    inside = (*above, _identity(entry.path))
                    if inside[-1] in above or _contains(entry.path, f"{folder}/{below}"):
                        continue
                rest.append((path, inside))


def _scanned(folder: str, below: str) -> list[os.DirEntry[str]]:
    place = f"{folder}/{below}" if below else folder
    try:
        with os.scandir(place) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError) as error:
        if below:
            return []  # it was deleted while the folder was read
        raise SourceError(f"the source folder {folder} doesn't exist") from error
    except OSError as error:
        raise SourceError(f"the source folder {place} can't be read: {error.strerror}") from error


def _identity(path: str) -> tuple[int, int]:
    try:
        stat = os.stat(path)  # noqa: PTH116
    except OSError:
        return 0, 0
    return stat.st_dev, stat.st_ino


def _contains(outer: str, inner: str) -> bool:
    """Return whether a folder is the other one, or one that contains it."""
    there, here = os.path.realpath(outer), os.path.realpath(inner)
    return here == there or here.startswith(f"{there.rstrip('/')}/")


def unread(folder: str, choices: list[Choice]) -> list[str]:
    """Return names below a folder that none of its sources reads, in order; only the first of very many are looked at.

    Raises: OSError, SourceError.
    """
    found = []
    every = Choice((), ("",))
    entries = list(islice(_entries(folder, every), MOST_LOOKED_AT))
    for path, entry, _ in entries:
        with suppress(OSError, UnicodeEncodeError):
            path.encode()
            if entry.is_file() and any(choice.takes(path) for choice in choices):
                continue
        found.append(path)
        if len(found) == MOST_UNREAD:
            break
    return sorted(found)
