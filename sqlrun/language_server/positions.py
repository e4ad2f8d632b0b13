"""Positions in a text as editors count them: lines from 0, characters in UTF-16 units. Pure."""

from __future__ import annotations

import re

# A line and a character, both from 0.
Position = tuple[int, int]
_END = re.compile(r"\r\n|\n|\r")


def units(text: str) -> int:
    """Return the number of UTF-16 units of a text.

    >>> units("a😀")
    3
    """
    return len(text) + sum(letter > "\uffff" for letter in text)


def offset_of(text: str, position: Position) -> int:
    r"""Return the index in a text of a position; a position behind the end of a line is that end.

    >>> offset_of("a\r\n😀b", (1, 2)), offset_of("a\nb", (0, 9)), offset_of("a", (7, 0))
    (4, 1, 1)
    """
    line, character = position
    start = 0
    for _ in range(line):
        end = _END.search(text, start)
        if end is None:
            return len(text)
        start = end.end()
    stop = _END.search(text, start)
    last = stop.start() if stop else len(text)
    left = character
    while start < last and left > 0:
        left -= units(text[start])
        start += 1
    return start


def position_of(text: str, offset: int) -> Position:
    r"""Return the position of an index in a text.

    >>> position_of("a\r\n😀b", 4)
    (1, 2)
    """
    line, start = 0, 0
    for end in _END.finditer(text, 0, offset):
        line, start = line + 1, end.end()
    return line, units(text[start:offset])


def span(line: str, column: int, *, exact: bool) -> tuple[int, int]:
    """Return the characters where the word at a column (from 1) begins and ends; the whole line unless `exact`.

    >>> span("select 😀 prize", 10, exact=True), span("  total", 3, exact=False)
    ((10, 15), (2, 7))
    """
    start = column - 1
    if not exact or start >= len(line):
        start, end = len(line) - len(line.lstrip()), len(line.rstrip())
        return units(line[:start]), max(units(line[:end]), units(line[:start]) + 1)
    found = re.compile(r"\w+|`[^`]*`|.", re.DOTALL).match(line, start)
    end = found.end() if found else start + 1
    return units(line[:start]), units(line[:end])
