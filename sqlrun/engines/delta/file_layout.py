"""Choice between rewriting a file and marking its rows as deleted, for a MERGE. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# Maximum number of live rows that are copied: this costs no more than a mark and leaves a file without deleted rows.
COPIED = 10_000
# Maximum share of deleted rows in a file: with more, reading it wastes too much.
MOST_DEAD = 0.3
# Number of files of similar size that become one file of the next size: each row is copied once for each size.
TIER = 4


@dataclass(frozen=True, slots=True)
class Standing:
    """A file before a MERGE: its rows, its deleted rows, and the rows that the MERGE replaces or deletes."""

    file: str
    rows: int
    dead: int
    hit: int

    @property
    def live(self) -> int:
        """Return the number of rows that remain."""
        return self.rows - self.dead - self.hit


def rewritten(files: Iterable[Standing], new: int) -> frozenset[str]:
    """Return the files of a partition to rewrite together with `new` rows; the others stay, perhaps with marks.

    >>> large, small = Standing("large", 100_000, 0, 50), Standing("small", 900, 0, 50)
    >>> sorted(rewritten([large, small], 1000))
    ['small']
    >>> sorted(rewritten([large, Standing("holey", 100_000, 30_000, 50)], 1000))
    ['holey']
    >>> sorted(rewritten([large, *(Standing(name, 4000, 0, 0) for name in "abcd")], 1000))
    ['a', 'b', 'c', 'd']
    """
    rest = sorted(files, key=lambda file: file.live)
    chosen = {f.file for f in rest if f.hit and (f.rows <= COPIED or f.dead + f.hit > MOST_DEAD * f.rows)}
    size = new + sum(f.live for f in rest if f.file in chosen)
    while size:
        near = [f for f in rest if f.file not in chosen and f.live <= TIER * size]
        if len(near) < TIER:
            break
        chosen.update(f.file for f in near)
        size += sum(f.live for f in near)
    return frozenset(chosen)
