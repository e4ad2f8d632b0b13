"""Lines of a text, split at line feeds only. Pure.

Python's own `str.splitlines` also splits at U+2028, U+2029, U+0085 and at some control characters. JSON, YAML and SQL
allow all of those inside a text, so a log split at them looks truncated. A test bans `splitlines`.
"""

from __future__ import annotations


def text_lines(text: str) -> list[str]:
    r"""Return the lines of a text without their ends, which are `\n` or `\r\n`.

    >>> text_lines("a\u2028b\r\nc\n"), text_lines("")
    (['a\u2028b', 'c'], [])
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines
