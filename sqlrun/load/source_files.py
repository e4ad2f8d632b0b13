"""YAML values to the files of a source: which files, how they are written, and what their paths say. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlrun.decoding.formats import Csv
from sqlrun.load.yaml_reader import Reader
from sqlrun.project import CSV, JSON, Column, CsvText, Files
from sqlrun.sources.file_choice import glob_fault

CSV_KEYS = ("delimiter", "quote", "escape", "header", "null", "comment", "encoding")
# Keys of CSV's marks, all of one character; "" for none.
MARKS = ("delimiter", "quote", "escape", "comment")
ENCODINGS = ("utf-8", "latin-1", "windows-1252")
DOCUMENTS = ("auto", "array")
# Keys that make `format: json` a source of files that land in planned batches.
OF_JSON = ("files", "document", "max_document")
# What a column may be taken from, with its types; () for any that isn't nested, since it is a part of a path.
ATTACHED: Mapping[str, tuple[str, ...]] = {"path": (), "file": ("string",)}
SIZE = re.compile(r"([1-9][0-9]{0,8}) *(KB|MB|GB)")
UNITS = {"KB": 1024, "MB": 1024**2, "GB": 1024**3}
LARGEST_DOCUMENT = 1024**3


def files(reader: Reader, table: Any, kind: str, columns: tuple[Column, ...]) -> Files | None:
    """Return what a source of files reads; None for a folder of JSON lines, which none of this is declared of."""
    planned = any(key in table for key in (*OF_JSON, "cdc")) or any(column.comes_from for column in columns)
    if kind == JSON and not planned:
        return None
    default = Files()
    is_document = kind == JSON and ("document" in table or "max_document" in table)
    return Files(
        pattern=_pattern(reader, table),
        document=reader.choice(table, "document", DOCUMENTS, DOCUMENTS[0]) if is_document else default.document,
        max_document=_size(reader, table, "max_document", default.max_document),
        csv=_csv(reader, table) if kind == CSV else default.csv,
    )


def _pattern(reader: Reader, table: Any) -> str:
    if "files" not in table:
        return ""
    pattern = reader.text(table, "files")
    fault = glob_fault(pattern)
    if fault:
        hint = "Write paths relative to `path`, for example `**/*.csv.gz`."
        reader.problem("SR110", reader.value_place(table, "files"), f"invalid `files`: {fault}", hint)
        return ""
    return pattern


def _size(reader: Reader, table: Any, key: str, default: int) -> int:
    """Return a number of bytes, written as `64MB`."""
    if key not in table:
        return default
    written = reader.text(table, key)
    found = SIZE.fullmatch(written)
    size = int(found[1]) * UNITS[found[2]] if found else 0
    if not 0 < size <= LARGEST_DOCUMENT:
        hint = "Write a size of at most 1GB with its unit, KB, MB or GB: 64MB."
        reader.problem("SR110", reader.value_place(table, key), f"invalid `{key}`: `{written}`", hint)
        return default
    return size


def _csv(reader: Reader, table: Any) -> CsvText:
    default = CsvText()
    if table.get("csv") is None:
        return default
    place = reader.value_place(table, "csv")
    node = reader.mapping(table["csv"], place, "`csv`", CSV_KEYS)
    before = len(reader.problems)
    marks = {key: _raw(reader, node, key, getattr(default, key)) for key in (*MARKS, "null")}
    if "escape" not in node:
        marks["escape"] = marks["quote"] or default.escape
    found = CsvText(
        **marks,
        header=reader.flag(node, "header", default.header),
        encoding=reader.choice(node, "encoding", ENCODINGS, default.encoding),
    )
    if len(reader.problems) > before:
        return default
    try:
        Csv(found.delimiter, found.quote or None, found.escape, comment=found.comment or None)
    except ValueError as error:
        hint = "Write each mark as one character in quotes, a tab as \"\\t\"; `quote: ''` for files without quotes."
        reader.problem("SR110", place, f"invalid `csv`: {error}", hint)
        return default
    return found


def _raw(reader: Reader, node: Any, key: str, default: str) -> str:
    """Return a text as it is, blanks and tabs included; a key without a value is a problem."""
    if not isinstance(node, Mapping) or key not in node:
        return default
    if not isinstance(node[key], str):
        hint = f'Write it in quotes: {key}: "{default or "NA"}"'
        reader.problem("SR103", reader.value_place(node, key), f"`{key}` must be a string", hint)
        return default
    return str(node[key])
