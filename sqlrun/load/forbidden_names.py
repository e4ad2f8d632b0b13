"""Names that a column or a path can't have, because a reader, writer or terminal would misread them. Pure."""

from __future__ import annotations

import re
import unicodedata

# Characters that end a name for an engine, even in quotes.
SIGNS = '"\\;'
ANOTHER = "Choose another name. sqlrun can't read a source field of this name."
# Columns that sqlrun, Delta or DuckDB add to rows.
OWN = re.compile(
    r"_(weight|n|one|net|best|stays|change_type|commit_version|commit_timestamp|reason|raw|file|landed_at|rescued|absent|dropped)"
    r"|_(part|sum|count|min|max)_[0-9]+|_key_.*|_sqlrun\..*",
    re.IGNORECASE,
)
# Characters that delta-rs doesn't accept in a path, and percent escapes, which it decodes.
IN_PATHS = re.compile(r"[\[\]|\\^\x00-\x1f\x7f\ud800-\udfff]|%[0-9A-Fa-f]{2}")
# Characters that Spark reads as a pattern.
PATTERNS = re.compile(r"[*?{}]")


def column_fault(name: str) -> str:
    """Return what is wrong with a column's name; "" for a valid one.

    >>> column_fault("größe"), column_fault("a "), column_fault("a\\tb")
    ('', 'begins or ends with a space', 'contains the character U+0009')
    """
    if not name:
        return "is empty"
    if name != name.strip():
        return "begins or ends with a space"
    if name == "*":
        return "means all columns"
    odd = next((c for c in name if c in SIGNS or unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")), "")
    return f"contains the character {_shown(odd)}" if odd else ""


def is_own(name: str) -> bool:
    """Return whether a name belongs to a column that is added to rows.

    >>> is_own("_n"), is_own("_part_1"), is_own("_note")
    (True, True, False)
    """
    return OWN.fullmatch(name) is not None


def path_fault(path: str, engine: str) -> str:
    """Return the part of a path that an engine's libraries can't handle; "" for a valid path.

    >>> path_fault("/a [b]/c", "duckdb"), path_fault("/a*b", "spark"), path_fault("/day=1/ü ~%", "duckdb")
    ('[', '*', '')
    """
    found = IN_PATHS.search(path) or (PATTERNS.search(path) if engine != "duckdb" else None)
    return "" if found is None else _shown(found[0]) if len(found[0]) == 1 else found[0]


def _shown(sign: str) -> str:
    return sign if sign.isprintable() and sign.isascii() else f"U+{ord(sign):04X}"
