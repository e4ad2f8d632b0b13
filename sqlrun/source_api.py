"""What sqlrun asks of a source: which parts have not landed, their lines, and what the source says of them. Pure.

A source consists of *parts*: the files of a folder, or the partitions of a log. A *position* says how far a part goes.
Each line has an *origin*, a text that identifies it within the source and that its row keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

# How far a part goes, as its source counts: a file's size in bytes and its time of change in nanoseconds. None where
# that is not remembered.
Position = tuple[int | None, int | None]
Positions = Mapping[str, Position]
# The parts of a checkpoint that remembers names alone.
UNKNOWN: Position = (None, None)


@dataclass(frozen=True, slots=True)
class Pending:
    """How a source differs from what has landed.

    `ready`: parts that can land now. `unfinished`: parts that are being written and left to the next tick. `changed`:
    parts that landed and are different now. `settled`: no part is so young that its writer may still be at work.
    """

    ready: Positions
    unfinished: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    settled: bool = True

    @property
    def parts(self) -> list[str]:
        """The names of all parts that have not landed, in order."""
        return sorted({*self.ready, *self.unfinished})


@dataclass(frozen=True, slots=True)
class Count:
    """How many lines lie in some parts; `is_exact` where the source counts lines itself, else an estimate."""

    lines: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a line came from: a part, and the line's number in it (from 1; None where it can't be found)."""

    part: str
    number: int | None


@dataclass(frozen=True, slots=True)
class Stream:
    """How Structured Streaming reads a source.

    `columns` are Spark SQL over the format's own columns: the `value` and the `file` (the origin) of each line.
    `settings` are set while the stream runs.
    """

    format: str
    path: str
    options: Mapping[str, str]
    columns: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Streamed:
    """A part of a batch in a stream's checkpoint."""

    part: str
    position: Position
    batch: int


class Reading(Protocol):
    """Parts that are being read; `changed` and `missing` are complete once all tables were taken."""

    @property
    def changed(self) -> list[str]:
        """The parts that are not at the position that was asked for: none of their lines is in a table."""

    @property
    def missing(self) -> list[str]:
        """The parts that can't be found any more."""

    def tables(self) -> Iterator[pa.Table]:
        """Return tables of a bounded size with a line a row: `value` (text) and `file` (its origin)."""


class SourceReader(Protocol):
    """A source as both engines land it. Failures are `EngineError`s.

    An engine remembers positions in its checkpoint, and lands what `pending` says. The reader itself remembers nothing.
    """

    @property
    def location(self) -> str:
        """Where the source is, for messages."""

    def pending(self, landed: Positions) -> Pending:
        """Return what differs from what has landed."""

    def read(self, parts: Positions) -> Reading:
        """Return a reading of these parts at these positions, and of nothing after them."""

    def commit(self, parts: Positions) -> None:
        """Learn that the lines of these parts are in a committed table.

        Where Spark streams, its own source learns that instead.
        """

    def missing(self, parts: Collection[str]) -> list[str]:
        """Return those of some parts that can't be read any more, in order."""

    def describe(self, lines: Sequence[tuple[str, str]]) -> list[Origin]:
        """Return where lines came from; each is given by its origin and its text."""

    def count(self, parts: Positions) -> Count:
        """Return how many lines the source says lie in these parts."""

    def notes(self, unfinished: Sequence[str], changed: Sequence[str]) -> tuple[str, ...]:
        """Return what to say of parts that are left to the next tick, and of parts that changed after landing."""

    def stream(self, *, accept_lost: bool) -> Stream:
        """Return how Spark reads the source; with `accept_lost`, a planned part that is gone is left out."""

    def streamed(self, checkpoint: str) -> tuple[Streamed, ...]:
        """Return the parts of all batches in a stream's checkpoint."""

    def relocate(self, checkpoint: str, qualified: Callable[[str], str]) -> None:
        """Make a stream's checkpoint name the source where it is now; `qualified` writes a path as Spark does."""
