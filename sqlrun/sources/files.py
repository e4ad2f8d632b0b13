"""A source of files of any format, at any depth below a folder, in planned batches on both engines. Shell: files.

A file is a part of the source; the part, and the origin of a record, is its path relative to the folder. Files are
decoded by `decoding/` on both engines, on Spark by its executors.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from sqlrun.decoding import compression
from sqlrun.decoding.change_events import OTHER_TABLE
from sqlrun.decoding.decode import decode
from sqlrun.decoding.formats import AvroFile, ChangeLines, Csv, Encoding, FileFormat, JsonDocument, JsonLines, Parquet
from sqlrun.decoding.undecodable import Undecodable
from sqlrun.project import BLANK_LINE, CSV, JSON, PARQUET, Column, Source
from sqlrun.source_api import Count, Extent, Frame, Origin, Pending, Position, Positions, Streaming
from sqlrun.sources import blank_lines, file_choice, file_tree, other_tables, path_values
from sqlrun.sources import folder as source_folder
from sqlrun.sources.file_choice import Choice

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 64 * 1024 * 1024  # bytes of text in a table
# Maximum number of bytes of a decompressed file, which is decoded as a whole.
LARGEST = 1024 * 1024 * 1024
# Estimated bytes of a record in a file, compressed or not.
RECORD_BYTES = 100
COLUMNS = ("value", "file", "fault")


def format_of(source: Source) -> FileFormat:
    """Return the format of a source's files."""
    files = source.files
    assert files is not None
    match source.format:
        case _ if source.changes is not None:
            return ChangeLines(source.changes, source.columns)
        case _ if source.format == JSON and not files.document:
            return JsonLines()
        case _ if source.format == JSON:
            return JsonDocument("array" if files.document == "array" else "auto", files.max_document)
        case _ if source.format == CSV:
            return csv_of(source)
        case _ if source.format == PARQUET:
            return Parquet()
        case _:
            return AvroFile()


def csv_of(source: Source) -> Csv:
    """Return the form of a source's CSV files.

    Raises: ValueError if its marks can't be distinguished.
    """
    assert source.files is not None
    one = source.files.csv
    return Csv(
        delimiter=one.delimiter,
        quote=one.quote or None,
        escape=one.escape,
        header=one.header,
        null=one.null,
        comment=one.comment or None,
        encoding=cast(Encoding, one.encoding),  # one of `load.source_files.ENCODINGS`
    )


@dataclass(frozen=True, slots=True)
class Files(source_folder.FileParts):
    """The reader of files. It identifies them by their relative paths alone, so that the folder may move."""

    location: str
    choice: Choice
    form: FileFormat
    columns: tuple[Column, ...]  # of the records
    attached: tuple[Column, ...]  # of the paths

    @classmethod
    def of(cls, location: str, source: Source) -> Files:
        """Return the reader of a declared source."""
        own = tuple(column for column in source.columns if not column.comes_from)
        return cls(location, file_choice.choice_of(source), format_of(source), own, source.attached)

    @property
    def streaming(self) -> Streaming | None:
        """Return nothing: both engines land planned batches."""
        return None

    def frame(self, parts: Positions) -> Frame | None:
        """Return nothing: the executors decode the files as DuckDB's process does."""
        return None

    def pending(self, landed: Positions) -> Pending:
        """Return new files, text files whose last line is being written, and files changed after landing."""
        present = file_tree.listed(self.location, self.choice)
        fresh = {name: present[name] for name in sorted(name for name in present if name not in landed)}
        # Of a million files only the recent ones are looked at again.
        since = (time.time() - source_folder.SETTLES) * 1e9
        recent = [name for name, (_, changed_at) in fresh.items() if (changed_at or 0) > since]
        growing = tuple(name for name in recent if self._is_growing(name, fresh[name]))
        for name in growing:
            del fresh[name]
        return Pending(fresh, growing, tuple(source_folder.changed(landed, present)), not recent)

    def read(self, parts: Positions) -> Reading:
        """Return a reading of files as they were when they were listed."""
        return Reading(self, parts)

    def records(self, name: str, data: bytes) -> pa.Table:
        """Return the records of a file's content: `value`, `file` and `fault`.

        Raises: Undecodable.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        found = decode(self.form, compression.decompress(data, name, LARGEST), self.columns)
        values, faults = found.column("value"), found.column("fault")
        if faults.null_count < len(faults):
            # A blank line never lands, whatever else is wrong with it.
            is_blank = pc.equal(pc.utf8_trim(values, characters=blank_lines.BLANKS), "")
            faults = pc.if_else(is_blank, pa.scalar(None, faults.type), faults)
        values = path_values.joined(values, faults, path_values.members(self.attached, name))
        origin = pa.repeat(pa.scalar(name, pa.large_string()), len(found))
        return pa.Table.from_arrays([values, origin, faults], list(COLUMNS))

    def missing(self, parts: Collection[str]) -> list[str]:
        """Return the paths of files that are no longer below the folder."""
        return sorted(set(parts) - file_tree.listed(self.location, self.choice).keys()) if parts else []

    def describe(self, lines: Sequence[tuple[str, str]]) -> list[Origin]:
        """Return file and record number of each record; None as the number if the file doesn't have it any more."""
        numbers: dict[str, dict[str, int]] = {}
        for name in {origin for origin, _ in lines}:
            wanted = {line for origin, line in lines if origin == name}
            numbers[name] = self._numbers(name, wanted)
        return [Origin(origin, numbers[origin].get(line)) for origin, line in lines]

    def count(self, parts: Positions) -> Count:
        """Return an estimate from the files' sizes."""
        return Count(sum(size or 0 for size, _ in parts.values()) // RECORD_BYTES, False)

    def _is_growing(self, name: str, stat: Position) -> bool:
        """Return whether a text file was changed a moment ago and its last line doesn't end."""
        is_text = isinstance(self.form, JsonLines | ChangeLines | Csv) and not name.lower().endswith(
            tuple(compression.CODECS)
        )
        return is_text and source_folder.half_written(self.location, name, stat)

    def _numbers(self, name: str, wanted: set[str]) -> dict[str, int]:
        """Return the numbers of some records of a file, by their texts; of equal ones the first."""
        try:
            data = source_folder.read_whole(self.location, name, (None, None))
            found = self.records(name, data).column("value") if data is not None else ()
        except (OSError, Undecodable):
            return {}
        numbers: dict[str, int] = {}
        for number, value in enumerate(found, 1):
            text = value.as_py()
            if text in wanted:
                numbers.setdefault(text, number)
        return numbers


@dataclass(slots=True)
class Reading:
    """Files that are read and decoded one after the other."""

    source: Files
    files: Positions
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    extents: dict[str, Extent] = field(default_factory=dict)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the records of files, about 64 MB of text per table; the last table may be empty.

        A file is decoded as a whole, so that a broken one has no records in any table. So the memory has one file's
        content, at most `LARGEST` if it is compressed, and its records.
        """
        parts: list[pa.Table] = []
        size = 0
        for name, stat in self.files.items():
            found = self._records(name, stat)
            if found is None:
                continue
            for piece in _pieces(found):
                parts.append(piece)
                size += piece.nbytes
                if size >= CHUNK:
                    yield table_of(parts)
                    parts, size = [], 0
        yield table_of(parts)

    def _records(self, name: str, stat: Position) -> pa.Table | None:
        """Return a file's records; None, after a note of it, for one that can't be read as it was listed."""
        try:
            data = source_folder.read_whole(self.source.location, name, stat)
            if data is None:
                self.changed.append(name)
                return None
            found = self.source.records(name, data)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            self.missing.append(name)
            return None
        except OSError as error:
            self.unreadable[name] = str(error.strerror or error)
            return None
        except Undecodable as error:
            if _has_settled(stat):
                self.unreadable[name] = error.reason
            else:
                self.changed.append(name)  # its writer may not have finished
            return None
        own = other_tables.without(found) if isinstance(self.source.form, ChangeLines) else found
        left = {BLANK_LINE: blank_lines.count(own.column("value")), OTHER_TABLE: len(found) - len(own)}
        self.extents[name] = Extent(len(found), {reason: count for reason, count in left.items() if count})
        return own


def _has_settled(stat: Position) -> bool:
    return time.time() - (stat[1] or 0) / 1e9 >= source_folder.SETTLES


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    """Yield a table in parts of about `CHUNK` bytes, which share its memory."""
    count = -(-table.nbytes // CHUNK)
    rows = -(-len(table) // max(count, 1))
    for start in range(0, len(table), max(rows, 1)):
        yield table.slice(start, rows)


def table_of(parts: list[pa.Table]) -> pa.Table:
    """Return tables of records as one, in pieces that DuckDB's threads share."""
    import pyarrow as pa

    schema = pa.schema([(name, pa.large_string()) for name in COLUMNS])
    table: Any = pa.concat_tables(parts) if parts else schema.empty_table()
    return pa.Table.from_batches(table.to_batches(source_folder.PIECE), schema)
