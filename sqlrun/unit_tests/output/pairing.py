"""Rows that were expected, beside the rows that came instead of them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

Cells = tuple[str, ...]
# More pairs than this are not compared: somebody would wait for a table that nobody reads.
MOST_PAIRS = 250_000


@dataclass(frozen=True, slots=True)
class Paired:
    """`pairs` of an expected row and the one that came for it; the rows that have no other stand apart."""

    pairs: tuple[tuple[Cells, Cells], ...]
    missing: tuple[Cells, ...]
    unexpected: tuple[Cells, ...]


def paired(
    columns: Sequence[str], missing: Sequence[Cells], unexpected: Sequence[Cells], grain: Collection[str] = ()
) -> Paired:
    """Pair rows by the grain where all of it was compared, else with the row that has most cells in common.

    Rows that share less than half of their cells are no pair, unless there is but one of each.

    >>> paired(("id", "n"), [("a", "1"), ("b", "2")], [("b", "3"), ("c", "1")], ("id",)).pairs
    ((('b', '2'), ('b', '3')),)
    """
    keys = [place for place, name in enumerate(columns) if name in grain]
    if grain and len(keys) == len(set(grain)):
        matches = _by_key(missing, unexpected, keys)
    elif len(missing) == len(unexpected) == 1:
        matches = [(0, 0)]
    else:
        matches = _by_likeness(missing, unexpected)
    left, right = {a for a, _ in matches}, {b for _, b in matches}
    return Paired(
        tuple((missing[a], unexpected[b]) for a, b in sorted(matches)),
        tuple(row for place, row in enumerate(missing) if place not in left),
        tuple(row for place, row in enumerate(unexpected) if place not in right),
    )


def _by_key(missing: Sequence[Cells], unexpected: Sequence[Cells], keys: Sequence[int]) -> list[tuple[int, int]]:
    waiting: dict[Cells, list[int]] = {}
    for place in reversed(range(len(unexpected))):
        waiting.setdefault(tuple(unexpected[place][k] for k in keys), []).append(place)
    found = []
    for place, row in enumerate(missing):
        others = waiting.get(tuple(row[k] for k in keys))
        if others:
            found.append((place, others.pop()))
    return found


def _by_likeness(missing: Sequence[Cells], unexpected: Sequence[Cells]) -> list[tuple[int, int]]:
    if len(missing) * len(unexpected) > MOST_PAIRS:
        return []
    scored = []
    for a, row in enumerate(missing):
        for b, other in enumerate(unexpected):
            same = [x == y for x, y in zip(row, other, strict=True)]
            if any(same) and 2 * sum(same) >= len(same):
                # Of equally many, those in the first columns count: that is where keys stand.
                scored.append((-sum(same), [not equal for equal in same], a, b))
    found: list[tuple[int, int]] = []
    left: set[int] = set()
    right: set[int] = set()
    for _, _, a, b in sorted(scored):
        if a not in left and b not in right:
            found.append((a, b))
            left.add(a)
            right.add(b)
    return found
