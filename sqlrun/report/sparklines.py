"""Outcomes and shares as paths of small SVG pictures, which need no script. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from sqlrun.outcome import RANKED

# Heights of boxes, by rank.
HEIGHTS = tuple(outcome.height for outcome in RANKED)
TALL = max(HEIGHTS)
BARS = 20


def strip(ranks: Sequence[int | None]) -> tuple[str, ...]:
    """Return one path for each rank, "" if there is none; a run of equal outcomes is one box.

    >>> strip([0, 0, None, 3])
    ('M0 7h2v5h-2z', '', '', 'M3 0h1v12h-1z', '')
    """
    paths = [""] * len(HEIGHTS)
    place = 0
    for rank, run in groupby(ranks):
        length = len(list(run))
        if rank is not None:
            height = HEIGHTS[rank]
            paths[rank] += f"M{place} {TALL - height}h{length}v{height}h-{length}z"
        place += length
    return tuple(paths)


def bars(values: Sequence[float | None]) -> str:
    """Return the path of one bar per column, scaled to the highest; a positive value is at least 1 high.

    >>> bars([0.0, 0.5, None, 1.0])
    'M1 10h1v10h-1zM3 0h1v20h-1z'
    """
    top = max((value for value in values if value is not None), default=0.0)
    path = ""
    place = 0
    for value, run in groupby(values):
        length = len(list(run))
        if value and value > 0 and top > 0:
            height = max(1, round(BARS * value / top))
            path += f"M{place} {BARS - height}h{length}v{height}h-{length}z"
        place += length
    return path
