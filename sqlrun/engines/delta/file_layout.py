"""Choice between rewriting a file and marking its rows as deleted, for a MERGE. Pure.

A MERGE must not take much longer than the one before it. So a large partition has several files, and of those with too
many deleted rows a MERGE rewrites one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

# Maximum number of live rows that are copied: this costs no more than a mark and leaves a file without deleted rows.
COPIED = 10_000
# Maximum share of deleted rows in a file: with more, reading it wastes too much.
MOST_DEAD = 0.3
# Share of deleted rows above which a large file doesn't wait for another one.
FAR_TOO_DEAD = 0.6
# Number of files of similar size that become one file of the next size: each row is copied once for each size.
TIER = 4
# Number of rows of the largest files of a partition, if they are less than a quarter of it.
LARGE = 1_000_000


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

    @property
    def share(self) -> float:
        """Return the share of deleted rows after the MERGE."""
        return (self.dead + self.hit) / self.rows


def largest(rows: int) -> int:
    """Return the number of rows of the largest files of a partition with `rows` rows."""
    return max(LARGE, rows // TIER)


def rows_of_each(new: int, rows: int) -> int | None:
    """Return the number of rows of each file if `new` of a partition's `rows` are written; None for one file.

    >>> rows_of_each(2_700_000, 3_600_000), rows_of_each(9_000_000, 20_000_000), rows_of_each(1_400_000, 3_600_000)
    (900000, 4500000, None)
    """
    files = round(new / largest(rows))
    return -(-new // files) if files > 1 else None


def rewritten(files: Iterable[Standing], new: int) -> frozenset[str]:
    """Return the files of a partition to rewrite together with `new` rows; the others stay, perhaps with marks.

    >>> large, small = Standing("large", 100_000, 0, 50), Standing("small", 900, 0, 50)
    >>> sorted(rewritten([large, small], 1000))
    ['small']
    >>> sorted(rewritten([large, Standing("holey", 100_000, 30_000, 50)], 1000))
    ['holey']
    >>> sorted(rewritten([large, *(Standing(name, 4000, 0, 0) for name in "abcd")], 1000))
    ['a', 'b', 'c', 'd']
    >>> sorted(rewritten([Standing(name, 900_000, 300_000 + n, 50_000) for n, name in enumerate("abc")], 150_000))
    ['c']
    """
    rest = sorted(files, key=lambda file: file.live)
    most = largest(new + sum(file.live for file in rest))
    holey = [file for file in rest if file.hit and (file.rows <= COPIED or file.share > MOST_DEAD)]
    large = [file for file in holey if file.live > most // TIER]
    chosen = {file.file for file in holey if file not in large or file.share > FAR_TOO_DEAD}
    if large:
        chosen.add(max(large, key=lambda file: file.share).file)
    size = new + sum(file.live for file in rest if file.file in chosen)
    while size:
        near = [file for file in rest if file.file not in chosen and file.live <= TIER * size]
        sizes = list(accumulate((file.live for file in near), initial=size))
        fitting = sum(one <= most for one in sizes[1:])
        if fitting < TIER:
            break
        chosen.update(file.file for file in near[:fitting])
        size = sizes[fitting]
    return frozenset(chosen)
