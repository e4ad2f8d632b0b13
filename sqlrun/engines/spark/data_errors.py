"""Recognise Spark's errors about a value of a row, and what they say about the expression. Pure."""

from __future__ import annotations

import re
from itertools import pairwise

from sqlrun.runtime.text_lines import text_lines

# Classes of SQLSTATE: data exceptions; a scalar subquery with several rows; a key that is twice in a map.
_OF_VALUES = re.compile(r" SQLSTATE: (?:22\d{3}|21000|23505)")
_ERROR_CLASS = re.compile(r"\[[A-Z][A-Z_0-9.]+\] ")
# sqlrun doesn't allow this setting, because a wrong value would become NULL without a message.
_ADVICE = re.compile(r"""\s*If (?:necessary|you want to \w+.*?,)[^.]*set "spark\.sql.*""", re.DOTALL)


def found(text: str) -> tuple[str, str] | None:
    """Return the message of an error about a value, and the expression in Spark SQL, "" if Spark shows none.

    `text` is the whole error, with its causes. None for another error.

    >>> found("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\\n"
    ...       "== SQL (line 1, position 8) ==\\nselect a / b as c\\n       ^^^^^")
    ('[DIVIDE_BY_ZERO] Division by zero.', 'a / b')
    """
    state = _OF_VALUES.search(text)
    if state is None:
        return None
    starts = [start.start() for start in _ERROR_CLASS.finditer(text, 0, state.start())]
    reason = text[starts[-1] if starts else 0 : state.start()]
    return _ADVICE.sub("", reason), _marked(text[state.end() :])


def _marked(text: str) -> str:
    """Return the part of a statement that stands above the carets; "" if there is none."""
    lines = text_lines(text.partition("\n== SQL")[2])
    for above, marks in pairwise(lines[1:]):
        if "^" in marks and set(marks) <= set(" ^"):
            first = marks.index("^")
            return above[first : first + marks.count("^")]
    return ""
