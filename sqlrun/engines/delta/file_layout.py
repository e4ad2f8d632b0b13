"""Choice between rewriting a file and marking its rows as deleted, for a MERGE, and of partitions to compact. Pure.

A MERGE must not take much longer than the one before it. So a large partition has several files, and of those with too
many deleted rows a MERGE rewrites one.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

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
# Size in bytes of a file that compaction makes; larger ones stay.
COMPACTED = 100 * 1024 * 1024
# Number of rows up to which compaction makes one file of any partition.
SMALL = 100_000
# Share of a larger partition's rows in one file that makes compaction leave the partition as it is, and the number of
# files of which it leaves no partition: MERGEs leave fewer.
MOST_ROWS, MANY_FILES = 0.8, 25
# Number of rows of larger partitions above which the next compaction does the rest: a tick waits for it.
AT_ONCE = 2_000_000
# Number of rows of a row group: threads share a file by its row groups, and readers skip row groups by their ranges.
ROW_GROUP = 40_960


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


def compacted(partitions: Mapping[Key, Collection[int]], growing: Set[Key]) -> list[Key]:
    """Return the partitions of which compaction makes one file each, or one for each 100 MB.

    `partitions`: the live rows of each one's smaller files. MERGEs add to `growing` ones, and would divide a large file
    again. Others get few rows: one file makes the log short, because a MERGE marks rows of most files. A few late rows
    don't make it written again. If large partitions have too many rows for one compaction, the first ones are chosen.

    >>> compacted({"today": [900_000, 900_000], "yesterday": [900_000, 900_000], "before": [1_800_000, 900]}, {"today"})
    ['yesterday']
    >>> compacted({"today": [1_800, 900], "c": [900_000] * 2, "b": [900_000] * 2, "a": [900, 90]}, {"today"})
    ['today', 'c', 'a']
    """
    found, large = [], 0
    for key, rows in partitions.items():
        every, most = sum(rows), max(rows, default=0)
        one = every <= SMALL or (key not in growing and most < every * MOST_ROWS)
        if len(rows) < (2 if one else MANY_FILES):
            continue
        if every > SMALL:
            if large and large + every > AT_ONCE:
                continue
            large += every
        found.append(key)
    return found


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
