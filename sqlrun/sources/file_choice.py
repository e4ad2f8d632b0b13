"""Which files below a source's folder are the source's: by a glob, or by their endings. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from sqlrun.project import AVRO, CSV, JSON, PARQUET, Source

ENDINGS = {
    JSON: (".json", ".jsonl", ".ndjson"),
    CSV: (".csv", ".tsv", ".txt"),
    PARQUET: (".parquet",),
    AVRO: (".avro",),
}
# Compressed text has one more ending; Parquet and Avro compress inside of the file.
COMPRESSED = ("", ".gz", ".zst")
ANY = "**"


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
