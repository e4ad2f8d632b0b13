"""Lines of blanks and tabs, which never land: counted, so that every line of a source is accounted for. Pure."""

from __future__ import annotations

from typing import Any

# As `line_grammar.BLANKS`, which the landing query trims.
BLANKS = " \t"


def is_blank(text: str) -> bool:
    """Return whether a line is empty or consists of blanks and tabs.

    >>> is_blank(" \\t"), is_blank(" {}")
    (True, False)
    """
    return not text.strip(BLANKS)


def count(values: Any) -> int:
    """Return the number of blank lines in a column of lines. Few lines begin with anything but a bracket."""
    import pyarrow.compute as pc

    rest = pc.filter(values, pc.invert(pc.starts_with(values, "{")))
    return len(pc.filter(rest, pc.equal(pc.utf8_trim(rest, characters=BLANKS), "")))
