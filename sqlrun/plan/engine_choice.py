"""Which engine maintains a table in a tick with `engine: auto`, where both can. Pure.

Another engine is never another result: both carry out the same change on the same files. On one machine DuckDB is the
faster one for changes of any size that fit its memory or little more (docs/decisions/0017), so the rule is static: it
asks for sizes alone, not for what past ticks took.
"""

from __future__ import annotations

# A byte of a file becomes this many bytes in memory: columns are unpacked, and joins and sorts hold rows twice.
UNPACKED = 6.0
# DuckDB puts on the disk what doesn't fit: up to this many times its memory limit.
MOST_SPILLED = 4.0


def too_large(size: int, memory: int | None) -> str:
    """Return why a statement that reads `size` bytes of files is left to Spark; "" where DuckDB carries it out.

    `memory`: bytes that DuckDB may use; None or 0 where that is not known.

    >>> too_large(1 << 30, 1 << 30)
    'it needs about 6.0 GiB, but DuckDB may use 1.0 GiB'
    >>> too_large(1 << 30, 2 << 30), too_large(1 << 60, None)
    ('', '')
    """
    needed = size * UNPACKED
    if not memory or memory < 0 or needed <= memory * MOST_SPILLED:
        return ""
    return f"it needs about {_gib(needed)}, but DuckDB may use {_gib(memory)}"


def _gib(size: float) -> str:
    return f"{size / (1 << 30):,.1f} GiB"
