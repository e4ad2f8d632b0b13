"""The ranges of a table's rows that a tick can need, so that files outside are skipped. Pure.

A window that moves from (L0, U0] to (L1, U1] reads only the post-state rows of (U0, U1] and the pre-state rows of (L0,
L1]. Ranges here are closed, so they include both ends. The statement's own conditions stay exact.
"""

from __future__ import annotations

from sqlrun.incremental.algebra import Node
from sqlrun.incremental.file_ranges import Range
from sqlrun.incremental.operators.aggregate import Aggregate
from sqlrun.incremental.operators.latest import Latest
from sqlrun.incremental.script import Moment
from sqlrun.incremental.stages import Stage, collapse


def needed(stage: Stage, moment: Moment, *, fresh: bool) -> dict[tuple[str, str], tuple[Range, ...]]:
    """Return for each (table, row set) the ranges that a stage's statement can need; an absent key means all rows."""
    if stage.node is None or moment.previous is None or fresh:
        return {}
    node = _changed(stage, stage.node)
    if node is None:
        return {}
    found: dict[tuple[str, str], list[Range]] = {}
    whole: set[tuple[str, str]] = set()  # one read without a range is enough
    for read in node.reads_beside_changes(moment):
        key = (read.table, read.row_set)
        if read.range is None:
            whole.add(key)
        else:
            found.setdefault(key, []).append(read.range)
    return {key: tuple(ranges) for key, ranges in found.items() if key not in whole}


def _changed(stage: Stage, root: Node) -> Node | None:
    """Return the node whose changes a stage's statement reads; None if the statement reads rows as well."""
    _, below = collapse(root)
    if stage.method in ("additive", "newest") and isinstance(below, Aggregate | Latest):
        return below.child  # the stored rows replace the input's pre-state
    return root if stage.method in ("append", "rows") else None
