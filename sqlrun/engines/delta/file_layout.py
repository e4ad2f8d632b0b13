"""Which files of a partition a MERGE writes anew, and in which it only marks rows as deleted. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# Copying so few rows costs no more than a mark does, and leaves a whole file.
COPIED = 10_000
# With more dead rows than this share of a file it is read for too little.
MOST_DEAD = 0.3
# So many files of about one size become one that is larger by as much: a file's rows are copied once for each size.
TIER = 4


@dataclass(frozen=True, slots=True)
class Standing:
    """A file before a MERGE: its rows, those deleted before, and those that the MERGE replaces or deletes."""

    file: str
    rows: int
    dead: int
    hit: int

    @property
    def live(self) -> int:
        """Count the rows that stay."""
        return self.rows - self.dead - self.hit


def rewritten(files: Iterable[Standing], new: int) -> frozenset[str]:
    """Choose the files of a partition that are written anew, together with `new` rows; the others stay or are marked.

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
