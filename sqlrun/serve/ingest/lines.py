"""The body of a POST to the lines of a source's file. Pure.

Only what is no JSON at all is rejected, because the sender can still correct it. Fields and types are the landing's
matter, which quarantines. No value is changed: a line is the text that was sent, so no digit of a number is lost.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MOST_LINES = 100_000
SPACE = re.compile(r"[ \t\n\r]*")
# The landing splits lines at each of these, and none of them may be in a JSON string.
LINE_END = re.compile(r"\r\n|\r|\n")


class Wrong(Exception):
    """The body isn't JSON lines; the text has the line's number and no value."""


class TooMany(Exception):
    """The body has more than `MOST_LINES` lines."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines as bytes, each with its end, and their number."""

    data: bytes
    count: int


def read(body: bytes, *, only_lines: bool) -> Lines:
    r"""Return the lines of a body: one object per line, or without `only_lines` also one object or one array of them.

    Empty lines are left out, and so are line ends inside of an object.
    Raises: Wrong for other bytes than UTF-8, for other JSON than objects, for no object at all; TooMany.

    >>> read(b'[{"a": 1.10},\n {"b":\n 2}]', only_lines=False)
    Lines(data=b'{"a": 1.10}\n{"b":  2}\n', count=2)
    """
    body = body.removeprefix(codecs.BOM_UTF8)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Wrong(f"line {_line(body[: error.start].decode('utf-8'))}: not UTF-8") from None
    found: list[str] = []
    for item in _objects(text, only_lines):
        found.append(item)
        if len(found) > MOST_LINES:
            raise TooMany
    if not found:
        raise Wrong("line 1: the body has no JSON object")
    return Lines("".join(f"{item}\n" for item in found).encode(), len(found))


def _objects(text: str, only_lines: bool) -> Iterator[str]:
    start = _skip(text, 0)
    if only_lines or not text[start:]:
        return _by_line(text)
    if text[start] == "[":
        return _items(text, start + 1)
    value, end = _decoded(text, start)
    if _skip(text, end) < len(text):
        return _by_line(text)
    _require_object(value, _line(text[:start]))
    return iter([LINE_END.sub(" ", text[start:end])])


def _by_line(text: str) -> Iterator[str]:
    for number, line in enumerate(LINE_END.split(text), 1):
        line = line.strip(" \t")
        if not line:
            continue
        value, end = _decoded(line, 0, number)
        if end != len(line):
            raise Wrong(f"line {number}: more text after the JSON value, at character {end + 1}")
        _require_object(value, number)
        yield line


def _items(text: str, at: int) -> Iterator[str]:
    """Yield the items of an array that begins before `at`, each on one line."""
    at = _skip(text, at)
    if text[at : at + 1] == "]":
        _require_end(text, at + 1)
        return
    while True:
        start = at
        value, end = _decoded(text, start)
        if not isinstance(value, dict):
            _require_object(value, _line(text[:start]))
        yield LINE_END.sub(" ", text[start:end])
        at = _skip(text, end)
        match text[at : at + 1]:
            case ",":
                at = _skip(text, at + 1)
            case "]":
                _require_end(text, at + 1)
                return
            case _:
                raise Wrong(f"line {_line(text[:at])}: an item of the array must be followed by `,` or `]`")


def _require_end(text: str, at: int) -> None:
    if (at := _skip(text, at)) < len(text):
        raise Wrong(f"line {_line(text[:at])}: more text after the array")


def _require_object(value: Any, number: int) -> None:
    if not isinstance(value, dict):
        raise Wrong(f"line {number}: JSON, but not an object `{{...}}`")


def _decoded(text: str, start: int, number: int = 0) -> tuple[Any, int]:
    """Return the JSON value at a place and its end. `number` is that of the text's line; 0: the text is the body."""
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        line = number or _line(text[: error.pos])
        raise Wrong(f"line {line}: not JSON: {error.msg[0].lower()}{error.msg[1:].partition(' at')[0]}") from None
    except RecursionError:
        raise Wrong(f"line {number or _line(text[:start])}: the value is nested too deeply") from None
    except _Constant as error:
        raise Wrong(f"line {number or _line(text[:start])}: `{error}` isn't JSON") from None


class _Constant(Exception):
    """NaN or an infinity, which Python's decoder would accept."""


def _refuse(constant: str) -> Any:
    raise _Constant(constant)


# Numbers aren't computed: an integer of many digits would take long, and the text is passed on as it is.
_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_int=len, parse_float=len)


def _skip(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return found.end() if found else at


def _line(before: str) -> int:
    """Return the number of the line after a text."""
    return len(LINE_END.findall(before)) + 1
