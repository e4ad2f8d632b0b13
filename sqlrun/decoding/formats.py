"""The formats of a source's files and their options. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sqlrun.project import Changes, Column

MEGABYTE = 1024 * 1024
Encoding: TypeAlias = Literal["utf-8", "latin-1", "windows-1252"]
# Returns the whole name of the table whose events a source lands, by that of an event.
FirstTable: TypeAlias = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class JsonLines:
    """One JSON object per line."""


@dataclass(frozen=True, slots=True)
class ChangeLines:
    """One change event of a database per line, in JSON."""

    changes: Changes
    columns: tuple[Column, ...]  # all of the source
    first_table: FirstTable | None = None


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """A file that is one JSON document: an array of objects, or one object over several lines.

    `document`: `array` for a file that always is a document; `auto` for one that may have JSON lines instead.
    `max_document`: maximum number of bytes of a document, which is read as a whole.
    """

    document: Literal["array", "auto"] = "auto"
    max_document: int = 64 * MEGABYTE


@dataclass(frozen=True, slots=True)
class Csv:
    """Text with a delimiter. `quote`: None if no field is quoted.

    `escape` precedes a quote inside of a quoted field; the quote itself if quotes are doubled. `header`: the first
    record has the names of the columns; otherwise fields are the declared columns, in their order. `null`: the text,
    not quoted, that means NULL like the empty text. `comment`: a line that begins with it is no record.
    """

    delimiter: str = ","
    quote: str | None = '"'
    escape: str = '"'
    header: bool = True
    null: str = ""
    comment: str | None = None
    encoding: Encoding = "utf-8"

    def __post_init__(self) -> None:
        """Raise ValueError for marks that can't be distinguished."""
        marks = {"delimiter": self.delimiter, "quote": self.quote, "escape": self.escape, "comment": self.comment}
        for name, mark in marks.items():
            if mark is not None and (len(mark) != 1 or mark in "\r\n"):
                raise ValueError(f"`{name}` has to be one character other than a line break, not {mark!r}")
        used = [mark for mark in (self.delimiter, self.quote, self.comment) if mark is not None]
        if len(used) != len(set(used)) or self.escape in (self.delimiter, self.comment):
            raise ValueError("the delimiter, the quote, the escape and the comment have to differ")


@dataclass(frozen=True, slots=True)
class Parquet:
    """A Parquet file."""


@dataclass(frozen=True, slots=True)
class AvroFile:
    """An Avro object container file. `max_block`: maximum number of bytes of a block that is decompressed."""

    max_block: int = 256 * MEGABYTE


FileFormat: TypeAlias = JsonLines | ChangeLines | JsonDocument | Csv | Parquet | AvroFile
