"""Where a tick ends in the partitions of a database's topics, so that it takes whole transactions only. Pure.

A database commits its transactions one after the other, and a connector sends their events in that order. So each
partition has them in that order, while another partition may be behind. The end marks in the transaction topic are in
the same order, and each counts the transaction's events of each table.

A transaction is complete if all its events are in the partitions. A cut takes the longest row of complete
transactions: every partition up to its first event of any other. A connector that died sends events and marks again,
so that a partition may repeat a few transactions. Repeated events count once, and are taken like the first ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlrun.decoding.transaction_marks import Mark, Member
from sqlrun.runtime.text_table import counted

RECENT = 10_000  # number of complete transactions whose events are known when they come again


@dataclass(frozen=True, slots=True)
class Run:
    """Successive messages of one transaction in a partition, from an offset. `committed` is in milliseconds."""

    transaction: str
    offset: int
    committed: int


@dataclass(slots=True)
class Partition:
    """What was read of a partition that has changes of one table: the range `since` up to, but without, `until`.

    `may_lack_marks`: the range may begin with transactions whose marks the broker no longer has, or never had.
    """

    table: str
    since: int
    until: int
    may_lack_marks: bool = False
    runs: list[Run] = field(default_factory=list)
    seen: dict[str, set[tuple[bytes, str]]] = field(default_factory=dict)

    def add(self, offset: int, key: bytes, member: Member) -> None:
        """Add the event of a message. One that belongs to no transaction is taken as it comes."""
        if member.is_alone:
            return
        if not self.runs or self.runs[-1].transaction != member.transaction:
            self.runs.append(Run(member.transaction, offset, member.committed))
        self.seen.setdefault(member.transaction, set()).add((key, member.identity))


@dataclass(frozen=True, slots=True)
class Complete:
    """The last complete transaction, when it was committed (milliseconds since 1970), and the offset after its mark.

    `recent` are the newest complete transactions. Their events may come again, and their marks may be before `offset`.
    """

    transaction: str = ""
    committed: int = 0
    offset: int = 0
    recent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of each partition by name, the last transaction before it, and what waits: offsets, and the reason."""

    ends: Mapping[str, int]
    complete: Complete
    waiting: int = 0
    reason: str = ""


def cut(marks: Sequence[tuple[int, Mark]], partitions: Mapping[str, Partition], before: Complete) -> Cut:
    """Return the next cut. `marks` with their offsets begin after those of `before`, the last complete transaction."""
    ends: dict[str, tuple[int, Mark]] = {}
    for offset, mark in marks:
        if mark.is_end:
            ends.setdefault(mark.transaction, (offset, mark))
    order = {transaction: place for place, transaction in enumerate(ends)}
    begun, recent = {mark.transaction for _, mark in marks}, {*before.recent}
    oldest = min((mark.committed for _, mark in marks), default=before.committed)
    # Each partition's runs that no earlier tick has settled.
    runs = {name: tuple(_unsettled(one, begun, recent, oldest)) for name, one in partitions.items()}
    latest = {
        name: max((order.get(run.transaction, math.inf) for run in found), default=-1) for name, found in runs.items()
    }
    taken, complete, reason = dict[str, None](), before, ""
    for transaction, (offset, mark) in ends.items():
        if transaction in recent:
            complete = replace(complete, offset=offset + 1)
            continue
        reason = "; ".join(_missing(mark, order[transaction], partitions, latest))
        if reason:
            break
        taken[transaction] = None
        complete = Complete(transaction, mark.committed, offset + 1)
    complete = replace(complete, recent=(*before.recent, *taken)[-RECENT:])
    found = {
        name: next((run.offset for run in runs[name] if run.transaction not in taken), one.until)
        for name, one in partitions.items()
    }
    waiting = sum(one.until - found[name] for name, one in partitions.items())
    return Cut(found, complete, waiting, (reason or _open(runs, taken)) if waiting else "")


def _unsettled(partition: Partition, begun: set[str], recent: set[str], oldest: int) -> Iterator[Run]:
    """Yield the runs, without those of transactions that an earlier cut took.

    A run without a mark waits for it. Only if marks may be gone it can be an old one: committed before the first mark,
    or before a run that has a mark and comes later. Events that are sent again come later, but were committed earlier.
    """
    newest, found = -1, list[Run]()
    for run in reversed(partition.runs):
        if run.transaction in recent:
            continue
        is_begun = run.transaction in begun
        if is_begun:
            newest = max(newest, run.committed)
        is_old = partition.may_lack_marks and (run.committed < oldest or run.committed <= newest)
        if is_begun or not is_old:
            found.append(run)
    return reversed(found)


def _missing(mark: Mark, place: int, partitions: Mapping[str, Partition], latest: Mapping[str, float]) -> Iterator[str]:
    """Yield what the partitions lack of a transaction.

    What lacks in a partition that has a later transaction will never come: it landed earlier, was compacted, or a
    transformation of the connector left it out.
    """
    for table, count in mark.counts.items():
        parts = [name for name, one in partitions.items() if one.table == table]
        seen = sum(len(partitions[name].seen.get(mark.transaction, ())) for name in parts)
        if seen < count and not all(latest[name] > place for name in parts):
            yield f"the transaction {mark.transaction} lacks {count - seen:,} of {counted(count, 'event')} of {table}"


def _open(runs: Mapping[str, Sequence[Run]], taken: Collection[str]) -> str:
    """Return why events wait although all transactions with an end are complete."""
    first = next((run.transaction for found in runs.values() for run in found if run.transaction not in taken), "")
    if not first:
        return "the events name no transaction: set `provide.transaction.metadata` of the connector"
    return f"the end of the transaction {first} hasn't come"
