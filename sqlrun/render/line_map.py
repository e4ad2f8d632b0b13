"""Marks that carry line numbers through Jinja, and the line map that they leave. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

# Private-use characters: no SQL contains them, and neither whitespace control nor a Jinja tag ever matches them.
OPEN, CLOSE = "\ue000", "\ue001"
MARK = re.compile(f"{OPEN}([0-9]+){CLOSE}")
# The text inside these tags becomes a value that a template may compare or trim, so it gets no marks.
BEGINS = ("macro", "call", "filter", "set")
ENDS = tuple(f"end{name}" for name in BEGINS)


class Token(Protocol):
    """One of Jinja's tokens: whitespace control is done, tags are separate from text."""

    lineno: int
    type: str
    value: str


def marked(tokens: Sequence[Token], make: Any) -> Iterator[Token]:
    """Yield the tokens with a mark before every line of plain text and before every `{{`.

    `make(line, type, value)` returns a token. Jinja's own tags stay as they are, so a `}}` in a string or a newline in
    a tag is harmless.
    """
    inside = 0
    for index, token in enumerate(tokens):
        if token.type == "block_begin":
            name = tokens[index + 1].value
            if name in ENDS:
                inside -= 1
            elif name in BEGINS and not (name == "set" and _assigns(tokens, index)):
                inside += 1
        if inside == 0 and token.type == "data":
            lines = token.value.split("\n")
            value = "\n".join(f"{mark(token.lineno + number)}{line}" for number, line in enumerate(lines))
            yield make(token.lineno, "data", value)
            continue
        if inside == 0 and token.type == "variable_begin":
            yield make(token.lineno, "data", mark(token.lineno))
        yield token


def mark(line: int) -> str:
    """Return the mark of a line."""
    return f"{OPEN}{line}{CLOSE}"


def _assigns(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a tag is `{% set x = 1 %}`, not `{% set x %}...{% endset %}`."""
    for token in tokens[index:]:
        if token.type in ("assign", "block_end"):
            return token.type == "assign"
    return True


def unmarked(text: str) -> tuple[str, tuple[int, ...]]:
    """Return a text without marks, and the source line of each line: that of its first word, or of the macro's call.

    >>> unmarked(f"{OPEN}1{CLOSE}select\\n{OPEN}2{CLOSE}  a,\\n  b")
    ('select\\n  a,\\n  b', (1, 2, 2))
    """
    lines, numbers, current = [], [], 1
    for line in text.split("\n"):
        number, plain = 0, ""
        for place, piece in enumerate(MARK.split(line)):
            if place % 2:
                current = int(piece)
                continue
            if piece.strip() and not number:
                number = current
            plain += piece
        lines.append(plain)
        numbers.append(number or current)
    return "\n".join(lines), tuple(numbers)
