"""A source without files: partitions of numbered lines, like those of a log broker. Shell: none."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sqlrun.source_api import Count, Extent, Loss, Origin, Pending, Position, Positions


@dataclass
class Log:
    """Partitions by name. A position is a range of offsets; an origin is `partition:offset`."""

    partitions: dict[str, list[str]] = field(default_factory=dict)
    # The first retained offset of each partition.
    begin: dict[str, int] = field(default_factory=dict)
    committed: dict[str, Position] = field(default_factory=dict)
    location: str = "log"

    def pending(self, landed: Positions) -> Pending:
        """Return the range of each partition that follows the landed one."""
        ranges = {}
        for name, lines in self.partitions.items():
            after = landed.get(name, (0, 0))[1] or 0
            if len(lines) > after:
                ranges[name] = (after, len(lines))
        return Pending(ranges)

    def read(self, parts: Positions) -> Reading:
        """Return a reading of some ranges."""
        return Reading(self, parts)

    def commit(self, parts: Positions) -> None:
        """Record the acknowledged parts."""
        self.committed |= parts

    def missing(self, parts: Collection[str]) -> list[str]:
        """Return the partitions that are gone."""
        return sorted(part for part in parts if part not in self.partitions)

    def describe(self, lines: Sequence[tuple[str, str]]) -> list[Origin]:
        """Split origins into partition and offset."""
        return [Origin(origin.rpartition(":")[0], int(origin.rpartition(":")[2])) for origin, _ in lines]

    def count(self, parts: Positions) -> Count:
        """Return the exact number of lines in the ranges."""
        return Count(sum((until or 0) - (since or 0) for since, until in parts.values()), True)

    def notes(self, unfinished: Sequence[str], changed: Sequence[str]) -> tuple[str, ...]:
        """Report partitions by name."""
        return tuple(f"{part} is left" for part in (*unfinished, *changed))

    def summary(self, pending: Pending) -> str:
        """Return the number of partitions."""
        return f"{len(pending.ready)} partitions" if pending.ready else ""

    @property
    def streaming(self) -> None:
        """Return nothing: both engines land planned batches."""

    def frame(self, parts: Positions) -> None:
        """Return nothing: Spark has no such source."""

    def lost(self, parts: Positions) -> tuple[Loss, ...]:
        """Return nothing: a range is missing as a whole."""
        return ()

    def part(self, origin: str) -> str:
        """Return the partition."""
        return f"split_part({origin}, ':', 1)"

    def shown(self, part: str) -> str:
        """Return the partition."""
        return part

    def span(self, position: Position) -> tuple[int | None, int | None]:
        """Return the range."""
        return position

    def gaps(self, position: Position, lines: int) -> int | None:
        """Return the rest of the range."""
        return (position[1] or 0) - (position[0] or 0) - lines

    def oldest(self, origin: str) -> str:
        """Return all origins."""
        return f"select {origin} as file from held"


@dataclass
class Reading:
    """Ranges that are being read; a range that begins before its partition's first offset is missing."""

    log: Log
    parts: Positions
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    extents: dict[str, Extent] = field(default_factory=dict)

    def tables(self) -> Iterator[Any]:
        """Return a table for each partition."""
        for name, (since, until) in self.parts.items():
            if name not in self.log.partitions or (since or 0) < self.log.begin.get(name, 0):
                self.missing.append(name)
                continue
            lines = self.log.partitions[name][since:until]
            self.extents[name] = Extent(len(lines))
            origins = [f"{name}:{offset}" for offset in range(since or 0, until or 0)]
            yield pa.table({"value": pa.array(lines, pa.string()), "file": pa.array(origins, pa.string())})
