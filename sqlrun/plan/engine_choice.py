"""The choice of the engine for a table with `engine: auto`. Pure.

Both engines compute the same change on the same files, so the choice never affects results. On one machine DuckDB is
faster for changes up to a few times its memory (docs/decisions/0017). So the rule is static: it depends on sizes alone,
not on the duration of past ticks.
"""

from __future__ import annotations

# Bytes of memory for each byte of a file: columns are decompressed, and joins and sorts have rows twice.
UNPACKED = 6.0
# Maximum size of an intermediate result as a multiple of DuckDB's memory limit; DuckDB spills it to disk.
MOST_SPILLED = 4.0


def too_large(size: int, memory: int | None) -> str:
    """Return why Spark runs a statement that reads `size` bytes of files; "" if DuckDB runs it.

    `memory`: bytes that DuckDB may use; None or 0 if unknown.

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
