"""Pairing of expected rows with the actual rows that replaced them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

Cells = tuple[str, ...]
# Maximum number of pairs to compare: beyond it the search takes long, and the table is too large to read.
MOST_PAIRS = 250_000


@dataclass(frozen=True, slots=True)
class Paired:
    """`pairs` of an expected and an actual row; rows without a counterpart are `missing` or `unexpected`."""

    pairs: tuple[tuple[Cells, Cells], ...]
    missing: tuple[Cells, ...]
    unexpected: tuple[Cells, ...]


def paired(
    columns: Sequence[str], missing: Sequence[Cells], unexpected: Sequence[Cells], grain: Collection[str] = ()
) -> Paired:
    """Pair rows by the grain if all of its columns are compared, otherwise by the number of equal cells.

    Rows that share less than half of their cells are no pair, unless there is only one of each.

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
                # Of equally similar rows, those with equal first columns win: keys are usually there.
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
