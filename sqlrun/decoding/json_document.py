"""Files that are one JSON document: an array of objects, or one object over several lines. Pure.

Elements are cut out of the text and not rewritten, so that a number keeps its digits and an object its repeated keys.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from sqlrun.decoding import json_lines, json_values, records
from sqlrun.decoding.formats import JsonDocument
from sqlrun.decoding.json_values import Malformed
from sqlrun.decoding.records import Fault
from sqlrun.decoding.undecodable import Undecodable

if TYPE_CHECKING:
    import pyarrow as pa


def decode(form: JsonDocument, data: bytes) -> pa.Table:
    """Return a document's elements, one record each; of a file of JSON lines, its lines (only for `auto`).

    A malformed document is one record with a fault.

    Raises: Undecodable if the document is too large.
    """
    text = json_lines.as_utf8(data).decode()
    start = json_values.blanks(text, 0)
    if start == len(text):
        return records.table([])
    if form.document == "auto" and _has_lines(text, start, len(data), form.max_document):
        return records.table(json_lines.lines(data))
    if len(data) > form.max_document:
        raise Undecodable(
            f"the JSON document has {len(data):,} bytes, and is read as a whole only up to {form.max_document:,}: "
            "raise `max_document`, or write one object per line"
        )
    try:
        return records.table(list(_elements(text, start)))
    except Malformed as error:
        line = text.count("\n", 0, error.at) + 1
        column = error.at - text.rfind("\n", 0, error.at)
        fault = Fault(text, f"not a JSON document: line {line}, column {column}: {error.reason}")
        return records.table([], {0: fault})


def _has_lines(text: str, start: int, size: int, limit: int) -> bool:
    """Return whether a file has JSON lines rather than one document.

    It has if its first line is intact and more text follows. Otherwise an object is a document only if the
    file is that object and no more, and an array is one unless the second line and the third are objects.
    """
    end = json_values.line_end(text, start)
    whole = json_values.valid_end(text, start)
    if text[start] == "[":
        on_one_line = whole is not None and whole <= end
        return (
            json_values.blanks(text, end) < len(text)
            if on_one_line
            else _two_objects(text, json_values.blanks(text, end))
        )
    if text[start] != "{" or (whole is not None and whole <= end):
        return True
    if size > limit:
        raise Undecodable(
            f"the file's first line isn't a JSON object, and the file has more than {limit:,} bytes, the most that "
            "are read as one JSON document: raise `max_document`, or declare JSON lines"
        )
    return whole is None or json_values.blanks(text, whole) < len(text)


def _two_objects(text: str, start: int) -> bool:
    """Return whether a line is an object and the next one begins as one: an array has a comma between them."""
    end = json_values.valid_end(text, start) if text[start : start + 1] == "{" else None
    return (
        end is not None
        and end <= json_values.line_end(text, start)
        and text.startswith("{", json_values.blanks(text, end))
    )


def _elements(text: str, start: int) -> Iterator[str]:
    """Yield the texts of an array's elements, or of the only object."""
    if text[start] == "[":
        end = yield from _array(text, start)
    else:
        end = json_values.end(text, start)
        yield json_values.on_one_line(text, start, end, is_valid=False)
    if json_values.blanks(text, end) < len(text):
        raise Malformed("the document has ended, and more text follows", json_values.blanks(text, end))


def _array(text: str, start: int) -> Generator[str, None, int]:
    """Yield the texts of an array's elements; return its end."""
    at = json_values.blanks(text, start + 1)
    if text[at : at + 1] == "]":
        return at + 1
    is_valid = True
    while True:
        # An error of Python's reader counts the lines before it. So after one malformed element only brackets count.
        known = json_values.valid_end(text, at) if is_valid else None
        is_valid = known is not None
        end = json_values.end(text, at) if known is None else known
        yield json_values.on_one_line(text, at, end, is_valid=is_valid)
        at = json_values.blanks(text, end)
        match text[at : at + 1]:
            case ",":
                at = json_values.blanks(text, at + 1)
            case "]":
                return at + 1
            case "":
                raise Malformed("the array doesn't end", at)
            case _:
                raise Malformed("a comma or the end of the array is missing", at)
