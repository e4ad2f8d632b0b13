"""A source that is a folder of JSON lines: its new files, changed files and missing files. Shell: files.

A file is a part of the source, and its name is the origin of its lines.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlrun.decoding import json_lines
from sqlrun.errors import SourceError
from sqlrun.project import BLANK_LINE
from sqlrun.runtime.text_table import counted, escaped
from sqlrun.source_api import (
    Count,
    Extent,
    Frame,
    Loss,
    Origin,
    Pending,
    Position,
    Positions,
    Stream,
    Streamed,
    Streaming,
)
from sqlrun.sources import blank_lines, stream_checkpoint

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".json", ".jsonl", ".ndjson")
# Seconds without a change after which a file is complete, even if its last line doesn't end.
SETTLES = 10.0
SHOWN = 3
CHUNK = 64 * 1024 * 1024  # maximum bytes of text in memory at once
PIECE = 4 * 1024  # number of lines that a thread of DuckDB processes at once
LINE_BYTES = 200  # estimated
# Bytes that aren't UTF-8 are replaced, as in `lines_of`.
COLUMNS = (
    "make_valid_utf8(value) as value",
    "url_decode(replace(element_at(split(_metadata.file_path, '/'), -1), '+', '%2B')) as file",
)


class FileParts:
    """What readers share whose parts are files: a file is a whole, is known by its name, and stays where it is."""

    __slots__ = ()

    def commit(self, parts: Positions) -> None:
        """Do nothing: files stay in place, landed or not."""

    def lost(self, parts: Positions) -> tuple[Loss, ...]:
        """Return nothing: a file is missing as a whole, or not."""
        return ()

    def shown(self, part: str) -> str:
        """Return the file's name."""
        return part

    def span(self, position: Position) -> tuple[int | None, int | None]:
        """Return the file's beginning and its end, in bytes."""
        return 0, position[0]

    def gaps(self, position: Position, lines: int) -> int | None:
        """Return nothing: a file has lines only."""
        return None

    def oldest(self, origin: str) -> str:
        """Return the files of all lines."""
        return f"select distinct {origin} as file from held where {origin} is not null"

    def part(self, origin: str) -> str:
        """Return the origin: it is the file."""
        return origin

    def summary(self, pending: Pending) -> str:
        """Return the number of new files, the first names, and the number of files that are being written."""
        return summary(pending)

    def notes(self, unfinished: Sequence[str], changed: Sequence[str]) -> tuple[str, ...]:
        """Return one sentence about changed files and one about files that are being written."""
        return notes(unfinished, changed)


@dataclass(frozen=True, slots=True)
class Folder(FileParts):
    """The reader of a folder. It identifies files by name alone, so that a folder may move."""

    location: str

    @property
    def streaming(self) -> Streaming:
        """Return Spark's own file source."""
        return Streamer(self.location)

    def frame(self, parts: Positions) -> Frame | None:
        """Return nothing: Structured Streaming reads the folder."""

    def pending(self, landed: Positions) -> Pending:
        """Return the differences: new files, files whose last line is being written, files changed after landing."""
        present = listed(self.location)
        fresh = {name: stat for name, stat in sorted(present.items()) if name not in landed}
        growing = tuple(name for name, stat in fresh.items() if half_written(self.location, name, stat))
        return Pending(
            {name: stat for name, stat in fresh.items() if name not in growing} if growing else fresh,
            growing,
            tuple(changed(landed, present)),
            all(time.time() - (at or 0) / 1e9 >= SETTLES for _, at in fresh.values()),
        )

    def read(self, parts: Positions) -> Reading:
        """Return a reading of files as they were when they were listed."""
        return Reading(self.location, parts)

    def missing(self, parts: Collection[str]) -> list[str]:
        """Return the names of files that are no longer in the folder."""
        return sorted(set(parts) - listed(self.location).keys()) if parts else []

    def describe(self, lines: Sequence[tuple[str, str]]) -> list[Origin]:
        """Return file and line number of each line; None as the number if the file is gone or has changed.

        The number is looked up in the file: Spark's text reader doesn't report it, so no table has it.
        """
        numbers: dict[str, dict[str, int]] = {}
        for name in {origin for origin, _ in lines}:
            try:
                text = (Path(self.location) / name).read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            wanted = {line for origin, line in lines if origin == name}
            found = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            numbers[name] = {line: n for n, line in reversed(list(enumerate(found, 1))) if line in wanted}
        return [Origin(origin, numbers.get(origin, {}).get(line)) for origin, line in lines]

    def count(self, parts: Positions) -> Count:
        """Return an estimate from the files' sizes: a folder doesn't count its lines."""
        return Count(sum(size or 0 for size, _ in parts.values()) // LINE_BYTES, False)


@dataclass(frozen=True, slots=True)
class Streamer:
    """A folder as Spark's file source reads it."""

    location: str

    def stream(self, *, accept_lost: bool) -> Stream:
        """Return Spark's own text source over the folder."""
        return Stream(
            "text",
            self.location,
            {"pathGlobFilter": "*.{json,jsonl,ndjson}", "maxFilesPerTrigger": "100000"},
            COLUMNS,
            {"spark.sql.files.ignoreMissingFiles": str(accept_lost).lower()},
        )

    def streamed(self, checkpoint: str) -> tuple[Streamed, ...]:
        """Return the files in the log of Spark's file source, with their modification time in whole milliseconds."""
        return tuple(stream_checkpoint.source_files(checkpoint))

    def relocate(self, checkpoint: str, qualified: Callable[[str], str]) -> None:
        """Update the paths in Spark's log to the folder's current place."""
        stream_checkpoint.relocate(checkpoint, lambda: qualified(self.location))


@dataclass(slots=True)
class Reading:
    """Files read as lines, a bounded amount of text at a time; a file is never split."""

    folder: str
    files: Positions
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    extents: dict[str, Extent] = field(default_factory=dict)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the lines of whole files, about 64 MB of text per table; the last table may be empty."""
        parts: list[Any] = []
        size = 0
        for name, stat in self.files.items():
            data = self._read(name, stat)
            if data is None:
                continue
            parts.append(lines_of(data, name))
            self.extents[name] = _extent(parts[-1])
            size += len(data)
            if size >= CHUNK:
                yield table_of(parts)
                parts, size = [], 0
        yield table_of(parts)

    def _read(self, name: str, stat: Position) -> bytes | None:
        try:
            data = read_whole(self.folder, name, stat)
        except FileNotFoundError:
            self.missing.append(name)
            return None
        if data is None:
            self.changed.append(name)
        return data


def _extent(lines: Any) -> Extent:
    blank = blank_lines.count(lines.column("value"))
    return Extent(len(lines), {BLANK_LINE: blank} if blank else {})


def is_still_there(path: str) -> bool:
    """Return whether a file still exists at the path in a stream's log."""
    return Path(path).exists()


def is_source_file(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry of a source's folder is one of its files, by name and kind.

    A broken or circular link isn't, nor is a folder, a pipe, or a file whose name isn't UTF-8: no table could store it.
    """
    try:
        entry.name.encode()
        return entry.name.endswith(ENDINGS) and entry.is_file()
    except (OSError, UnicodeEncodeError):
        return False


def listed(folder: str) -> dict[str, Position]:
    """Return a source's files with their positions: *.json, *.jsonl, *.ndjson; hidden ones are being written.

    Raises: SourceError.
    """
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError as error:
        raise SourceError(f"the source folder {folder} doesn't exist") from error
    except OSError as error:
        raise SourceError(f"the source folder {folder} can't be read: {error.strerror}") from error
    found: dict[str, Position] = {}
    for entry in entries:
        if entry.name[0] not in "._" and is_source_file(entry):
            with suppress(OSError):  # the file was deleted while the folder was read
                stat = entry.stat()
                found[entry.name] = stat.st_size, stat.st_mtime_ns
    return found


def read_whole(folder: str, name: str, expected: Position) -> bytes | None:
    """Return a file's content; None if it differs from the listed one, or changes while it is read.

    Raises: FileNotFoundError.
    """
    with (Path(folder) / name).open("rb") as file:
        data = file.read()
        stat = os.fstat(file.fileno())
    same = expected[0] is None or (stat.st_size, stat.st_mtime_ns) == expected
    return data if same and len(data) == stat.st_size else None


def half_written(folder: str, name: str, stat: Position) -> bool:
    """Return whether a file was changed a moment ago and its last line doesn't end."""
    size, changed_at = stat
    if not size or changed_at is None or time.time() - changed_at / 1e9 >= SETTLES:
        return False
    try:
        with (Path(folder) / name).open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) not in (b"\n", b"\r")
    except OSError:  # the file was deleted, or became empty
        return True


def unread(folder: str) -> list[str]:
    """Return the names in a source's folder that aren't its files; a folder's name ends in a slash.

    Raises: OSError.
    """
    return sorted(
        entry.name + ("/" if Path(entry.path).is_dir() else "")
        for entry in os.scandir(folder)
        if not is_source_file(entry)
    )


def some(names: Iterable[str]) -> str:
    r"""Return the first few names as text on one line, with the number of the others.

    >>> some(["a\n", "b", "c", "d"])
    'a\\n, b, c and 1 more'
    """
    known = list(names)
    more = f" and {len(known) - SHOWN:,} more" if len(known) > SHOWN else ""
    return ", ".join(map(escaped, known[:SHOWN])) + more


def summary(pending: Pending) -> str:
    """Return the number of new files, the first names, and the number of files that are being written."""
    names = sorted(pending.ready)
    parts = [f"{counted(len(names), 'new file')} ({some(names)})"] if names else []
    if pending.unfinished:
        parts.append(f"{counted(len(pending.unfinished), 'file')} that a program is still writing")
    return ", ".join(parts)


def notes(unfinished: Sequence[str], changed: Sequence[str]) -> tuple[str, ...]:
    """Return one sentence about changed files and one about files that are being written."""
    return tuple(note for note in (_warning(changed), _waiting(unfinished)) if note)


def changed(landed: Positions, present: Mapping[str, Position]) -> list[str]:
    """Return the landed files that have changed. Spark's log has no sizes, and times in milliseconds."""

    def differs(name: str, then: Position) -> bool:
        (size, changed_at), (size_now, changed_now) = then, present[name]
        if size is None and changed_at is not None and changed_now is not None:
            return changed_at // 1_000_000 != changed_now // 1_000_000
        return (size is not None and size != size_now) or (changed_at is not None and changed_at != changed_now)

    # Most of very many are equal.
    unequal = [name for name, now in present.items() if landed.get(name, now) != now]
    return sorted(name for name in unequal if differs(name, landed[name]))


def _waiting(names: Sequence[str]) -> str:
    """Return the note about files that are being written; "" if there are none."""
    if not names:
        return ""
    them = "file is" if len(names) == 1 else "files are"
    return f"{len(names):,} {them} still being written. The next tick lands: {some(names)}"


def _warning(names: Sequence[str]) -> str:
    """Return the note about files that were changed after landing; "" if there are none."""
    if not names:
        return ""
    them = "file was" if len(names) == 1 else "files were"
    return (
        f"{len(names):,} {them} changed after landing, and sqlrun ignores the changes: {some(names)}. "
        "Send new lines in a new file, or land all files again with --full-refresh"
    )


def lines_of(data: bytes, name: str) -> Any:
    """Return a table of a file's lines as UTF-8; a byte that isn't part of UTF-8 is replaced."""
    import pyarrow as pa

    lines = json_lines.lines(data)
    return pa.Table.from_arrays([lines, pa.repeat(pa.scalar(name, pa.large_string()), len(lines))], ["value", "file"])


def table_of(parts: list[Any]) -> Any:
    """Return tables of lines as one, in pieces that DuckDB's threads share."""
    import pyarrow as pa

    schema = pa.schema([("value", pa.large_string()), ("file", pa.large_string())])
    table = pa.concat_tables(parts) if parts else schema.empty_table()
    return pa.Table.from_batches(table.to_batches(PIECE), schema)
