"""The files below a source's folder: which ones are the source's, by a glob or by their endings. Shell: files.

Folders and files whose name begins with `.` or `_` are skipped: other programs write to them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from sqlrun.errors import SourceError
from sqlrun.project import AVRO, CSV, JSON, PARQUET, Source
from sqlrun.source_api import Position

ENDINGS = {
    JSON: (".json", ".jsonl", ".ndjson"),
    CSV: (".csv", ".tsv", ".txt"),
    PARQUET: (".parquet",),
    AVRO: (".avro",),
}
# Compressed text has one more ending; Parquet and Avro compress inside of the file.
COMPRESSED = ("", ".gz", ".zst")
ANY = "**"
HIDDEN = "._"
MOST_UNREAD = 1_000  # number of unread names that are collected
MOST_LOOKED_AT = 100_000  # number of entries that are looked at for them


@dataclass(frozen=True, slots=True)
class Choice:
    """Which files are the source's, by the path relative to the source's folder.

    `segments` are those of the glob; () for any path. The path must also have one of `endings`; ("",) for any.
    """

    segments: tuple[str, ...]
    endings: tuple[str, ...]

    def takes(self, path: str) -> bool:
        """Return whether a file is the source's, if it isn't hidden."""
        if not path.endswith(self.endings):
            return False
        return not self.segments or _pattern(self.segments).fullmatch(path) is not None

    def enters(self, path: str) -> bool:
        """Return whether a folder may contain files of the source."""
        if not self.segments:
            return True
        parts = path.split("/")
        fixed = self.segments[: self.segments.index(ANY)] if ANY in self.segments else self.segments[:-1]
        if len(parts) > len(fixed) and ANY not in self.segments:
            return False
        return all(_pattern((one,)).fullmatch(part) for one, part in zip(fixed, parts, strict=False))


# Files of a plain folder of JSON lines.
TOP_LEVEL = Choice(("*",), ENDINGS[JSON])


def choice_of(source: Source) -> Choice:
    """Return which files are a source's."""
    if source.files is not None and source.files.pattern:
        return Choice(tuple(source.files.pattern.split("/")), ("",))
    compressed = COMPRESSED if source.format in (JSON, CSV) else COMPRESSED[:1]
    return Choice((), tuple(ending + more for ending in ENDINGS[source.format] for more in compressed))


@lru_cache(256)
def _pattern(segments: tuple[str, ...]) -> re.Pattern[str]:
    """Return the expression of a glob: `*` and `?` don't match a slash, a segment `**` matches any number of folders.

    >>> [bool(_pattern(("**", "*.csv")).fullmatch(path)) for path in ("a.csv", "x/y/a.csv", "a.csv/b")]
    [True, True, False]
    >>> bool(_pattern(("day=*", "**")).fullmatch("day=1/a/b"))
    True
    """
    found = []
    for place, segment in enumerate(segments):
        if segment == ANY:
            found.append(".+" if place == len(segments) - 1 else "(?:[^/]+/)*")
        else:
            found.append(_segment(segment) + ("" if place == len(segments) - 1 else "/"))
    return re.compile("".join(found), re.DOTALL)


def _segment(text: str) -> str:
    found, at = [], 0
    while at < len(text):
        letter, at = text[at], at + 1
        end = text.find("]", at + 1) if letter == "[" else -1
        if letter == "*":
            found.append("[^/]*")
        elif letter == "?":
            found.append("[^/]")
        elif end > 0:
            inner = text[at:end].replace("\\", r"\\").replace("[", r"\[")
            negated = inner.startswith("!")
            inner = (inner[1:] if negated else inner.replace("^", r"\^", 1)).replace("&&", r"&\&")
            found.append(f"(?!/)[{'^' if negated else ''}{inner}]")
            at = end + 1
        else:
            found.append(re.escape(letter))
    return "".join(found)


def glob_fault(pattern: str) -> str:
    """Return what is wrong with a glob; "" if nothing is.

    >>> glob_fault("**/*.csv"), glob_fault("/a"), glob_fault("a**/b")
    ('', 'it has an empty segment: it must be relative to `path`', '`**` must be a whole segment, as in `**/*.csv`')
    """
    segments = pattern.split("/")
    if "" in segments:
        return "it has an empty segment: it must be relative to `path`"
    if "." in segments or ".." in segments:
        return "`.` and `..` aren't allowed"
    if any(ANY in segment and segment != ANY for segment in segments):
        return "`**` must be a whole segment, as in `**/*.csv`"
    try:
        _pattern(tuple(segments))
    except re.error as error:
        return f"a list in brackets is wrong: {error}"
    return ""


def listed(folder: str, choice: Choice) -> dict[str, Position]:
    """Return a source's files by their path relative to the folder, with size and modification time.

    Raises: SourceError if the folder, or a folder in it, can't be read.
    """
    found: dict[str, Position] = {}
    takes = choice.takes
    for path, entry in _entries(folder, choice):
        # There may be a million: nothing is asked twice.
        if not takes(path):
            continue
        try:
            if entry.is_file():
                if not path.isascii():
                    path.encode()
                stat = entry.stat()
                found[path] = stat.st_size, stat.st_mtime_ns
        except (OSError, UnicodeEncodeError):  # it was deleted meanwhile, is a circular link, or has no valid name
            continue
    return found


def _entries(folder: str, choice: Choice) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield what isn't hidden and isn't a folder that is entered, with its path, folder by folder."""
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
                yield path, entry
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
    for path, entry in entries:
        with suppress(OSError, UnicodeEncodeError):
            path.encode()
            if entry.is_file() and any(choice.takes(path) for choice in choices):
                continue
        found.append(path)
        if len(found) == MOST_UNREAD:
            break
    return sorted(found)
