"""The difference of two versions of a Delta table that other programs write, as parts of files. Shell: Delta files.

A difference is the sum of the commits between two versions. A commit with change files is these files; another one is
its added files minus its removed files, if they are marked as changes of data: compaction isn't. A file that one commit
adds and a later one removes cancels out, and so do the rows that two deletion vectors of a file have in common. If a
file of a commit is gone, the difference is that of the two versions' files.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

from sqlrun.engines.delta import deletion_vectors, log_entries, outside_paths
from sqlrun.engines.delta import state as delta_state
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.state import Entry, vector_of
from sqlrun.errors import EngineError
from sqlrun.runtime.lru import Recent
from sqlrun.runtime.text_table import counted
from sqlrun.storage.factory import storage_of

if TYPE_CHECKING:
    from pyroaring import BitMap64

# The weight of a part's rows: +1, -1, or by the change type that a change file names.
Sign = Literal["added", "removed", "feed"]
KEPT = 64


@dataclass(frozen=True, slots=True)
class All:
    """All rows of a file."""


@dataclass(frozen=True, slots=True)
class Without:
    """A file's rows except those with these numbers."""

    rows: BitMap64


@dataclass(frozen=True, slots=True)
class Only:
    """A file's rows with these numbers."""

    rows: BitMap64


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of a file, with one weight. `file` is the path below the table's folder; `values` are partition values."""

    file: str
    sign: Sign
    rows: All | Without | Only
    values: Mapping[str, str | None]
    count: int
    size: int


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two versions as parts, and the files of the older version that the newer one lacks."""

    parts: tuple[Part, ...]
    gone: tuple[str, ...]

    @property
    def count(self) -> int:
        """Return the number of rows of all parts, by the files' statistics."""
        return sum(part.count for part in self.parts)


_found: Recent[tuple[Any, ...], Difference] = Recent(KEPT)


def between(path: str, since: int, until: int) -> Difference:
    """Return the difference of two versions of a table.

    Raises: EngineError if neither the commits between them nor both versions can be read.
    """
    if since == until:
        return Difference((), ())
    first, last = delta_table.entry_of(path, since), delta_table.entry_of(path, until)
    if first is None or last is None:
        return _between(path, since, until)
    return _found.get((first, last), lambda: _between(path, since, until))


def _between(path: str, since: int, until: int) -> Difference:
    try:
        found = _of_commits(path, since, until)
    except outside_paths.OutsideError:
        raise
    except EngineError:  # a commit is gone
        return _of_versions(path, since, until)
    return _of_versions(path, since, until) if missing(path, (part.file for part in found.parts)) else found


def missing(path: str, files: Iterable[str]) -> list[str]:
    """Return the files below a table's folder that don't exist."""
    storage = storage_of(path)
    return [file for file in files if not storage.is_there(f"{path}/{file}")]


def lacks(files: list[str]) -> str:
    """Return the reason that files of a version don't exist.

    >>> lacks(["a.parquet"])
    'it lacks 1 file, for example a.parquet'
    """
    return f"it lacks {counted(len(files), 'file')}, for example {files[0]}"


@dataclass(slots=True)
class _Sum:
    """Sums of weights of a file's rows, by deletion vector, with the entry that described them."""

    weights: dict[str, int] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)

    def add(self, entry: Entry, weight: int) -> None:
        vector = vector_of(entry)
        self.weights[vector] = self.weights.get(vector, 0) + weight
        # Some writers leave statistics and partition values out of a removal.
        self.entries[vector] = {**self.entries.get(vector, {}), **{k: v for k, v in entry.items() if v is not None}}

    def left(self, sign: int) -> list[Entry]:
        """Return the entries whose weights have a sign, each as often as it weighs."""
        return [self.entries[v] for v, weight in self.weights.items() for _ in range(max(sign * weight, 0))]


def _of_commits(path: str, since: int, until: int) -> Difference:
    sums: defaultdict[str, _Sum] = defaultdict(_Sum)
    present: defaultdict[str, int] = defaultdict(int)
    feed: list[Entry] = []
    layout, differs = _layout(path, until), EngineError("its partition columns changed")
    if _layout(path, since) != layout:
        raise differs
    for version in range(since + 1, until + 1):
        actions = delta_table.actions(path, version)
        if any(tuple(a["metaData"].get("partitionColumns") or ()) != layout for a in actions if "metaData" in a):
            raise differs
        outside_paths.require_none(path, actions)
        changes = [action["cdc"] for action in actions if "cdc" in action]
        feed += changes
        for action in actions:
            for kind, weight in (("add", 1), ("remove", -1)):
                if kind in action:
                    entry = action[kind]
                    present[entry["path"]] += weight
                    if not changes and entry.get("dataChange", True):
                        sums[entry["path"]].add(entry, weight)
    return _difference(path, since, sums, present, feed, {"added": layout, "removed": layout, "feed": layout})


def _layout(path: str, version: int) -> tuple[str, ...]:
    """Return the partition columns of a version."""
    return tuple(delta_table.open_table(path, version).metadata().partition_columns)


def _of_versions(path: str, since: int, until: int) -> Difference:
    sums: defaultdict[str, _Sum] = defaultdict(_Sum)
    present: defaultdict[str, int] = defaultdict(int)
    for version, weight in ((since, -1), (until, 1)):
        found = delta_state.at(path, version)
        outside_paths.require_none(path, ({"add": entry} for entry in found.files.values()))
        for name, entry in found.files.items():
            present[name] += weight
            sums[name].add(entry, weight)
    layouts: dict[Sign, tuple[str, ...]] = {"removed": _layout(path, since), "added": _layout(path, until)}
    found_parts = _difference(path, since, sums, present, [], layouts)
    if lost := missing(path, (part.file for part in found_parts.parts)):
        raise EngineError(lacks(lost))
    return found_parts


def _difference(
    path: str,
    since: int,
    sums: Mapping[str, _Sum],
    present: Mapping[str, int],
    feed: Iterable[Entry],
    layouts: Mapping[Sign, tuple[str, ...]],
) -> Difference:
    """Return the parts of sums of entries; `layouts` has the partition columns of files by sign."""
    incomplete = {
        name
        for name, each in sums.items()
        for entry in (*each.left(1), *each.left(-1))
        if entry.get("partitionValues") is None
    }
    known = log_entries.of_files(path, since, incomplete) if incomplete else {}
    found: list[tuple[Entry, Sign, All | Without | Only]] = [(entry, "feed", All()) for entry in feed]
    for name in sorted(sums):
        found += _of_file(path, sums[name])
    parts = [_part(entry, sign, rows, known, layouts[sign]) for entry, sign, rows in found]
    gone = tuple(unquote(name) for name, count in sorted(present.items()) if count < 0)
    return Difference(tuple(parts), gone)


def _of_file(path: str, one: _Sum) -> list[tuple[Entry, Sign, All | Without | Only]]:
    """Return the rows of a file that came and left. If only its deletion vector differs, these are what one has."""
    came, left = one.left(1), one.left(-1)
    if len(came) == len(left) == 1:
        after, before = deletion_vectors.rows_of(path, came[0]), deletion_vectors.rows_of(path, left[0])
        pairs: tuple[tuple[Sign, BitMap64], ...] = (("removed", after - before), ("added", before - after))
        return [(came[0], sign, Only(rows)) for sign, rows in pairs if rows]
    signed: list[tuple[Entry, Sign]] = [(entry, "added") for entry in came]
    signed += [(entry, "removed") for entry in left]
    return [
        (entry, sign, Without(rows) if (rows := deletion_vectors.rows_of(path, entry)) else All())
        for entry, sign in signed
    ]


def _part(
    entry: Entry, sign: Sign, rows: All | Without | Only, known: Mapping[str, Entry], layout: tuple[str, ...]
) -> Part:
    """Return the part of a log entry.

    An empty partition value is NULL (Delta protocol), and so is a missing one: Spark leaves it out of a removal.
    """
    values = entry.get("partitionValues")
    if values is None:
        values = known.get(entry["path"], {}).get("partitionValues") or {}
    count = int(json.loads(entry.get("stats") or "{}").get("numRecords") or 0)
    match rows:
        case Only():
            count = len(rows.rows)
        case Without():
            count = max(count - len(rows.rows), 0)
        case All():
            pass
    named = {name: values.get(name) or None for name in layout}
    return Part(unquote(entry["path"]), sign, rows, named, count, int(entry.get("size") or 0))
