"""The extent of a JSON value in a text; the value is neither computed nor rewritten. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

_BLANKS = re.compile(r"[ \t\r\n]*")
_BREAK = re.compile(r"[\r\n]")
_BREAKS = re.compile(r"[\r\n][ \t\r\n]*")
_TEXT = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_TEXTS_OR_BREAKS = re.compile(rf"({_TEXT})|{_BREAKS.pattern}", re.DOTALL)
_TEXTS_OR_BRACKETS = re.compile(rf"{_TEXT}|[\[\]{{}}]|\"", re.DOTALL)
_SCALAR = re.compile(rf'{_TEXT}|[^ \t\r\n,"\[\]{{}}]+', re.DOTALL)


class Malformed(Exception):
    """A value has no end; `at` is the position in the text where that shows."""

    def __init__(self, reason: str, at: int) -> None:
        self.reason, self.at = reason, at
        super().__init__(reason)


# No number is computed: a long one takes quadratic time, and more than 4,300 digits are an error.
_DECODER = json.JSONDecoder(parse_int=len, parse_float=len)
_scan: Callable[[str, int], tuple[object, int]] = _DECODER.scan_once  # type: ignore[attr-defined]


def valid_end(text: str, start: int) -> int | None:
    """Return the end of the JSON value at a position; None if it isn't valid JSON. NaN and Infinity are accepted."""
    try:
        return _scan(text, start)[1]
    except (StopIteration, ValueError, RecursionError):
        return None


def blanks(text: str, start: int) -> int:
    """Return the end of the white space at a position."""
    found = _BLANKS.match(text, start)
    return found.end() if found else start


def line_end(text: str, start: int) -> int:
    """Return the end of the line at a position, without its line break."""
    found = _BREAK.search(text, start)
    return found.start() if found else len(text)


def end(text: str, start: int) -> int:
    """Return the end of an element. It needn't be valid: only its brackets have to close, so that it can be cut out.

    Raises: Malformed.
    """
    if text[start : start + 1] not in ("{", "["):
        scalar = _SCALAR.match(text, start)
        if scalar is None:
            raise Malformed("a value is missing", start)
        return scalar.end()
    depth = 0
    for found in _TEXTS_OR_BRACKETS.finditer(text, start):
        match found[0]:
            case "{" | "[":
                depth += 1
            case "}" | "]":
                depth -= 1
                if depth == 0:
                    return found.end()
            case '"':
                raise Malformed("a text doesn't end", found.start())
    raise Malformed("an object or a list doesn't end", start)


def on_one_line(text: str, start: int, end: int, *, is_valid: bool) -> str:
    """Return a value without the line breaks between its tokens. A break inside of a text is an error, and stays.

    A blank replaces a break, since two tokens without one would become another token. Valid JSON has no breaks inside
    of texts.
    """
    value = text[start:end]
    if "\n" not in value and "\r" not in value:
        return value
    if is_valid or '"' not in value:
        return _BREAKS.sub(" ", value)
    return _TEXTS_OR_BREAKS.sub(lambda found: found[1] or " ", value)
