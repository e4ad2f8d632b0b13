"""The interface of a source: its pending parts, their lines, and its notes. Pure.

A source consists of *parts*: the files of a folder, or the partitions of a log. A *position* is the extent of a part.
Each line has an *origin*, a text that identifies it within the source and is stored in its row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from sqlrun.runtime.text_table import counted

if TYPE_CHECKING:
    import pyarrow as pa

# Turns the values of messages, and the members that each message's object gets beside its own, into the texts of lines
# and the reason why one can't be read (None if it can).
Decode = Callable[[Sequence[bytes | None], Sequence[str]], tuple[list[str], list[str | None]]]
# The extent of a part, in the source's own units: a file's size in bytes and its modification time in nanoseconds, or
# the first offset of a range and the one after its last. None if it isn't recorded.
Position = tuple[int | None, int | None]
Positions = Mapping[str, Position]
# The position of parts in a checkpoint that records names alone.
UNKNOWN: Position = (None, None)


@dataclass(frozen=True, slots=True)
class CompleteTo:
    """The last transaction of a database that its sources have whole, by connection and transaction topic.

    `transaction` is "" if they have none yet; `committed_at` is when the database committed it, None if unknown.
    `next_offset` is the offset after its mark in the topic. `waiting` messages of later transactions hadn't landed.
    """

    connection: str
    topic: str
    transaction: str = ""
    committed_at: datetime | None = None
    next_offset: int = 0
    waiting: int = 0

    def __str__(self) -> str:
        """Return the words for it.

        >>> str(CompleteTo("kafka", "shop.transaction", "772")), str(CompleteTo("kafka", "shop.transaction"))
        ('the transaction 772 of shop.transaction', 'no transaction of shop.transaction yet')
        """
        if not self.transaction:
            return f"no transaction of {self.topic} yet"
        at = f" at {self.committed_at:%Y-%m-%d %H:%M:%S} UTC" if self.committed_at else ""
        return f"the transaction {self.transaction} of {self.topic}{at}"


@dataclass(frozen=True, slots=True)
class Loss:
    """Lines that a source has lost: those of a part from position `since` up to, but without, `until`.

    `kind` is one of a source's own words; `what` says in a sentence what happened. `until` is None if the source
    doesn't know how many lines there were. Once the loss is accepted, landing goes on at position `resumes`; None: the
    part is closed.
    """

    kind: str
    part: str
    since: int
    until: int | None
    what: str
    resumes: int | None

    @property
    def lines(self) -> int | None:
        """Return the number of lost positions; None if unknown."""
        return None if self.until is None else self.until - self.since


@dataclass(frozen=True, slots=True)
class AcceptedLoss:
    """A loss that someone has accepted: landing goes on at `resumes`; None: the part is closed.

    `at` is ISO 8601.
    """

    part: str
    since: int
    until: int | None
    resumes: int | None
    kind: str
    what: str
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class Pending:
    """The difference between a source and its landed parts.

    `ready`: parts that can land now. `unfinished`: parts that are being written and left to the next tick. `changed`:
    landed parts that have changed since. `settled`: every part is old enough that its writer has finished. `losses`:
    lines that the source no longer has and that no batch has landed; while there are any, nothing is ready. `backlog`:
    the number of pending lines by the source, those included that a limit leaves to later ticks.
    """

    ready: Positions
    unfinished: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    settled: bool = True
    losses: tuple[Loss, ...] = ()
    backlog: int = 0

    @property
    def parts(self) -> list[str]:
        """Return the names of all parts that have not landed, in order."""
        return sorted({*self.ready, *self.unfinished})


@dataclass(frozen=True, slots=True)
class Count:
    """The number of lines in some parts; `is_exact` if the source counts lines itself, else an estimate."""

    lines: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a line: a part, and the line's number in it (from 1; None if it can't be found)."""

    part: str
    number: int | None


@dataclass(frozen=True, slots=True)
class Stream:
    """The options for Structured Streaming to read a source.

    `columns` are Spark SQL over the format's own columns: the `value` and the `file` (the origin) of each line.
    `settings` are set while the stream runs.
    """

    format: str
    path: str
    options: Mapping[str, str]
    columns: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Frame:
    """The options for Spark's own connector to read parts as a batch.

    `columns` are as in `Stream`, and `part` (the name of a line's part). `drops` are reasons to leave a record out,
    each with its condition, SQL over the connector's columns. `options` may contain secrets.

    With `values`, the column `value` has the bytes of a message, a further column `members` has what `Decode` takes
    beside them, and Python on the executors turns both into the lines.
    """

    format: str
    options: Mapping[str, str] = field(repr=False)
    columns: tuple[str, ...]
    drops: tuple[tuple[str, str], ...] = ()
    values: Values | None = None


class Values(Protocol):
    """Values of messages that only Python can decode. An executor gets a copy, which may contain secrets."""

    def decoder(self) -> Decode:
        """Return what decodes values. Failures are `EngineError`s; nothing of the parts lands then."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """A part of a batch in a stream's checkpoint."""

    part: str
    position: Position
    batch: int


@dataclass(frozen=True, slots=True)
class Extent:
    """What a reading found in a part: the number of lines, and of lines that the reader itself left out, by reason.

    `lines` includes the latter, and the blank ones, which never land (`sources/blank_lines.py`): `dropped` counts both.
    """

    lines: int
    dropped: Mapping[str, int] = field(default_factory=dict)


class Reading(Protocol):
    """Parts that are being read; all but `tables` are complete after the last table."""

    @property
    def changed(self) -> list[str]:
        """Return the parts that aren't at the requested position: none of their lines is in a table."""

    @property
    def missing(self) -> list[str]:
        """Return the parts that no longer exist."""

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Return the parts that can't be read as a whole, each with the reason: none of their lines is in a table."""

    @property
    def extents(self) -> Mapping[str, Extent]:
        """Return what each part contained that was read."""

    def tables(self) -> Iterator[pa.Table]:
        """Return tables of bounded size with one row per line: `value` (text) and `file` (its origin).

        A source may have records that can't be read: then also `fault`, the reason, or NULL for any other record.
        """


class Streaming(Protocol):
    """A source that Spark reads by Structured Streaming, with a checkpoint of Spark's own."""

    def stream(self, *, accept_lost: bool) -> Stream:
        """Return how Spark reads the source; with `accept_lost`, a planned part that is gone is left out."""

    def streamed(self, checkpoint: str) -> tuple[Streamed, ...]:
        """Return the parts of all batches in a stream's checkpoint."""

    def relocate(self, checkpoint: str, qualified: Callable[[str], str]) -> None:
        """Update the source's place in a stream's checkpoint; `qualified` writes a path as Spark does."""


class SourceReader(Protocol):
    """A source, as both engines land it. Failures are `EngineError`s.

    An engine records positions in its checkpoint, and lands what `pending` returns. The reader itself records nothing.
    """

    @property
    def location(self) -> str:
        """Return the source's place, for messages."""

    @property
    def streaming(self) -> Streaming | None:
        """Return how Structured Streaming reads the source on Spark; None: both engines land planned batches."""

    def frame(self, parts: Positions) -> Frame | None:
        """Return how Spark's own connector reads parts; None: its executors call `read`."""

    def pending(self, landed: Positions) -> Pending:
        """Return the difference to the landed parts."""

    def read(self, parts: Positions) -> Reading:
        """Return a reading of these parts up to these positions."""

    def lost(self, parts: Positions) -> tuple[Loss, ...]:
        """Return the losses within planned parts: what `read` can no longer read of them."""

    def commit(self, parts: Positions) -> None:
        """Take note that the lines of these parts are in a committed table.

        For a Spark stream, Spark's own source takes note instead.
        """

    def shown(self, part: str) -> str:
        """Return a part's name for people."""

    def span(self, position: Position) -> tuple[int | None, int | None]:
        """Return the two ends of a part's position: offsets, or bytes."""

    def gaps(self, position: Position, lines: int) -> int | None:
        """Return the number of positions without a line, in a position with some lines; None if they aren't counted."""

    def oldest(self, origin: str) -> str:
        """Return DuckDB's SELECT of origins of a table `held`, as `file`, by which `missing` finds all lost parts.

        `origin` is the column of a line's origin.
        """

    def part(self, origin: str) -> str:
        """Return SQL for the part of a line, as in `Origin`; it means the same on both engines.

        `origin` is the column of a line's origin.
        """

    def missing(self, parts: Collection[str]) -> list[str]:
        """Return the parts or origins that can no longer be read, in order."""

    def describe(self, lines: Sequence[tuple[str, str]]) -> list[Origin]:
        """Return the origins of lines, each given by its origin's text and its own text."""

    def count(self, parts: Positions) -> Count:
        """Return the number of lines in these parts, by the source."""

    def summary(self, pending: Pending) -> str:
        """Return what is pending in a few words; "" if nothing is ready."""

    def notes(self, unfinished: Sequence[str], changed: Sequence[str]) -> tuple[str, ...]:
        """Return notes about parts that are left to the next tick, and about parts that changed after landing."""


# Numbers of lines in the accounting of a source.
NUMBERS = ("read", "landed", "quarantined", "dropped", "gaps", "lost", "unexplained")
# Lines that were read are in one of these: their sum is `read`.
SIDES = ("landed", "quarantined", "dropped", "unexplained")


@dataclass(frozen=True, slots=True)
class LostLines:
    """An accepted loss: what was lost, by whose decision and when. `lines` is None if the number is unknown."""

    source: str
    part: str
    tick: int
    what: str
    lines: int | None
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class LineSums:
    """Sums of rows; a number is None if no row knows it. `reasons` are of dropped lines, in alphabetical order."""

    read: int | None = None
    landed: int | None = None
    quarantined: int | None = None
    dropped: int | None = None
    gaps: int | None = None
    lost: int | None = None
    unexplained: int | None = None
    reasons: Mapping[str, int] = field(default_factory=dict)
    losses: tuple[LostLines, ...] = ()

    @property
    def numbers(self) -> Mapping[str, int | None]:
        """Return the sums by name, in the order of `NUMBERS`."""
        return {name: getattr(self, name) for name in NUMBERS}

    @property
    def is_nothing(self) -> bool:
        """Return whether there was no line and no loss."""
        return not self.losses and not any(self.numbers.values())

    def arithmetic(self) -> str:
        """Return the sums as one line of arithmetic.

        >>> LineSums(read=7, landed=5, quarantined=1, dropped=1, unexplained=0).arithmetic()
        '7 lines read = 5 landed + 1 quarantined + 1 dropped + 0 unexplained; 0 lost'
        """
        sides = " + ".join(f"{self.numbers[name] or 0:,} {name}" for name in SIDES)
        read = "an unknown number of lines" if self.read is None and self.landed else counted(self.read or 0, "line")
        return f"{read} read = {sides}; {self.lost or 0:,} lost"

    def exceptions(self) -> str:
        """Return the numbers of lines that neither landed nor were left out by a rule; "" if there are none.

        >>> LineSums(lost=2, gaps=1, unexplained=0).exceptions()
        '1 gap, 2 lost'
        """
        found = [counted(self.gaps, "gap")] if self.gaps else []
        found += [f"{self.lost:,} lost"] if self.lost else []
        found += ["lines lost"] if self.losses and not self.lost else []
        found += [f"{self.unexplained:,} unexplained"] if self.unexplained else []
        return ", ".join(found)


NO_SUMS = LineSums()
