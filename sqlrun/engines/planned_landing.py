"""Landing in planned batches: plan a batch, then commit it under its number. Shell: files, Delta files.

Both engines land a source like this, except for sources that Spark reads by Structured Streaming.

The protocol is Structured Streaming's: the parts of batch N are written to `<checkpoint>/batches/N.json` first; the
table's commit then carries the transaction id (checkpoint, N). At start a planned batch that is not in the table is
replayed with the same parts; any other is done and never read again. A part that changed since it was planned moves
to the next batch, as long as its own isn't committed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlrun.engine_api import NO_LINES, Landing, LineCounts
from sqlrun.engines import landed_elsewhere
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta import table_pool
from sqlrun.errors import EngineError, LockedError
from sqlrun.source_api import Loss, Positions, Reading
from sqlrun.sources import batches
from sqlrun.storage.factory import storage_of


@dataclass(frozen=True, slots=True)
class Batch:
    """A planned batch to commit: the open table, its transaction's application and number, the parts to read."""

    table: Any
    app_id: str
    number: int
    parts: Positions


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed batch: its number of rows, quarantined ones included, and its lines that are no rows.

    `left` are the parts left out because they differ from the plan.
    """

    rows: int
    left: list[str]
    counts: LineCounts


# Commits the lines of a batch.
Commit = Callable[[Landing, Batch], Committed]


@dataclass(slots=True)
class Landed:
    """The result of a landing: its batches together, and notes to report."""

    rows: int = 0
    counts: LineCounts = NO_LINES
    left: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()

    def add(self, batch: Committed) -> None:
        """Add a batch."""
        self.rows += batch.rows
        self.counts += batch.counts
        self.left += batch.left


def land(commit: Commit, landing: Landing) -> Landed:
    """Land new lines; `commit` isn't called if there is nothing to land.

    Raises: EngineError, for a loss with its range; LockedError.
    """
    with table_pool.writing(landing.table.path) as table:
        return _landed(commit, landing, table)


def _landed(commit: Commit, landing: Landing, table: Any) -> Landed:
    checkpoint = landing.checkpoint
    app_id = f"{landing.app_id}:{_identity(checkpoint, table.version(), landing)}"
    plans = _planned(checkpoint, landing)
    seen, last = batches.landed(plans.values()), max(plans, default=0)
    committed = table.transaction_version(app_id)
    if table.version() > 0 and (committed is None or committed > last):
        raise EngineError(
            f"the checkpoint of {landing.table.name} belongs to another table, or lacks its list of batches. Landing "
            f"again would duplicate rows. Restore the checkpoint, or run `sqlrun build --full-refresh --select "
            f"{landing.table.name}+`.",
            model=landing.table.name,
        )
    done = Landed()
    # After a power failure the table may lack more than one batch.
    for number in (n for n in sorted(plans) if n > (committed or 0)):
        done.add(commit(landing, Batch(table, app_id, number, plans[number].parts)))
        delta_table.follow(landing.table.path, table)
    pending = landing.source.pending(seen)
    if pending.losses:
        raise _lost(landing, pending.losses)
    changed = [part for part in pending.changed if part not in done.left]
    fresh = {part: position for part, position in pending.ready.items() if part not in done.left}
    done.left += (part for part in pending.unfinished if part not in done.left)
    if fresh:
        if not batches.plan(checkpoint, last + 1, fresh):
            raise _overtaken(landing.table.name)
        delta_table.follow(landing.table.path, table)
        done.add(commit(landing, Batch(table, app_id, last + 1, fresh)))
        _fold(checkpoint, last + 1, landing)
    done.notes = landing.source.notes(done.left, changed)
    return done


def _identity(checkpoint: str, version: int, landing: Landing) -> str:
    """Return the checkpoint's own id; reject a table with rows whose checkpoint is gone, instead of reading again."""
    known = batches.identity(checkpoint)
    if known:
        return known
    if version > 0:
        raise EngineError(
            f"{landing.table.name} has rows, but its checkpoint is missing. Landing from the beginning would duplicate "
            "the rows. Restore the checkpoint, or run `sqlrun build --full-refresh --select "
            f"{landing.table.name}`.",
            model=landing.table.name,
        )
    if not batches.identify(checkpoint, uuid.uuid4().hex):
        raise _overtaken(landing.table.name)
    return batches.identity(checkpoint)


def _planned(checkpoint: str, landing: Landing) -> dict[int, batches.Batch]:
    """Return the planned batches by number: all of them, or from the one that contains the folded older ones."""
    plans = batches.read(checkpoint)
    bad = batches.first_fault(plans)
    if bad is not None:
        raise EngineError(
            f"batch {bad} of {landing.table.name} is corrupt or missing in {checkpoint}/{batches.FOLDER}. "
            "Its files would "
            f"land twice. Restore it, or run `sqlrun build --full-refresh --select {landing.table.name}+`.",
            model=landing.table.name,
        )
    return {number: plan for number, plan in plans.items() if plan is not None}


def _overtaken(name: str) -> LockedError:
    return LockedError(f"another build is landing {name}. This build landed nothing")


def _fold(checkpoint: str, number: int, landing: Landing) -> None:
    """Fold old batches into the newest file.

    A folded batch can't be replayed, so its commits are made durable first.
    """
    if not batches.are_many(checkpoint):
        return
    storage_of(landing.table.path).sync(landing.table.path)
    plans = _planned(checkpoint, landing)
    batches.fold(checkpoint, number, plans.values(), plans[number].parts)


def settled(landing: Landing, batch: Batch, reading: Reading) -> Positions:
    """Return the parts of a batch that were read; take those that were not out of its plan, before its commit.

    The next batch reads these in their current state.

    Raises: EngineError for parts that are gone, unless the landing accepts that; LockedError.
    """
    if reading.missing and not landing.accept_lost:
        raise landed_elsewhere.missing(landing, reading.missing)
    left = {*reading.changed, *reading.missing}
    landed = {part: position for part, position in batch.parts.items() if part not in left}
    if left:
        if delta_table.head(landing.table.path) != batch.table.version():
            # Another build may have read them: removed from the plan, they would land twice.
            raise _overtaken(landing.table.name)
        batches.replan(landing.checkpoint, batch.number, landed)
    return landed


def _lost(landing: Landing, losses: tuple[Loss, ...]) -> EngineError:
    """Return the error for lines that the source no longer has."""
    told = "; ".join(loss.what for loss in losses)
    name = landing.table.name
    return EngineError(
        f"SR747 {name} can't land {landing.source.location}: {told}. Nothing of this source lands until you decide. "
        f"Restore the lines, or record their loss and continue: sqlrun source accept-loss {name}",
        model=name,
    )
