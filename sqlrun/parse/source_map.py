"""Map a place in rendered SQL to the analyst's line and column. Pure."""

from __future__ import annotations

import re

from sqlrun.errors import Place
from sqlrun.project import Rendered


def source_place(rendered: Rendered, line: int, column: int, word: str = "") -> tuple[Place, str]:
    """Return the analyst's place for a place in the rendered SQL, and the text of that line."""
    source, text = rendered.model.sql.split("\n"), rendered.sql.split("\n")
    number = rendered.lines[min(line, len(rendered.lines)) - 1] if rendered.lines else line
    compiled = text[line - 1] if line <= len(text) else ""
    # A call over several lines is mapped to its first line: the word may be in a later one.
    for at in range(number, min(number + 12, len(source)) + 1):
        found = _source_column(compiled if at == number else "", source[at - 1], column, word)
        if found:
            return Place(rendered.model.file, at, found), source[at - 1]
        if "}}" in source[at - 1]:
            break
    excerpt = source[number - 1] if number <= len(source) else ""
    return Place(rendered.model.file, number, len(excerpt) - len(excerpt.lstrip()) + 1, exact=False), excerpt


def _source_column(compiled: str, excerpt: str, column: int, word: str) -> int:
    """Return the column in the analyst's line for a column in the compiled line; 0 if it isn't known.

    Jinja changed the text between a common beginning and a common end.

    >>> _source_column("where price < 30 )", "where price < {{ most }} )", 18, "")
    26
    """
    if compiled == excerpt:
        return column
    ends = list(zip(compiled, excerpt, strict=False)), list(zip(reversed(compiled), reversed(excerpt), strict=False))
    before, behind = (next((n for n, (a, b) in enumerate(pairs) if a != b), len(pairs)) for pairs in ends)
    if compiled and column <= before:
        return column
    if compiled and len(compiled) - column < behind:
        return len(excerpt) - (len(compiled) - column)
    found = re.search(rf"\b{re.escape(word)}\b", excerpt) if word else None
    return found.start() + 1 if found else 0
