"""Landing in planned batches: plan a batch, then commit it under its number. Shell: files, Delta files.

Both engines land a source like this, except for sources that Spark reads by Structured Streaming.

The protocol is Structured Streaming's: the parts of batch N are written to `<checkpoint>/batches/N.json` first; the
table's commit then carries the transaction id (checkpoint, N). At start a planned batch that is not in the table is
replayed with the same parts; any other is done and never read again. A part that changed since it was planned moves
to the next batch, as long as its own isn't committed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlrun.engine_api import NO_LINES, LandedBatch, Landing, LineCounts
from sqlrun.engines import landed_elsewhere
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta import table_pool
from sqlrun.errors import EngineError, LockedError, SourceError
from sqlrun.runtime.text_table import escaped
from sqlrun.source_api import AcceptedLoss, Extent, Loss, Positions, Reading
from sqlrun.sources import batches
from sqlrun.storage.factory import storage_of

SHOWN = 3  # number of parts that a note names


@dataclass(frozen=True, slots=True)
class Batch:
    """A planned batch to commit: the open table, its transaction's application and number, the parts to read.

    `is_new`: its plan was written a moment ago, so no earlier tick can have committed it.
    """

    table: Any
    app_id: str
    number: int
    parts: Positions
    lost: tuple[AcceptedLoss, ...] = ()
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed batch: its number of rows, quarantined ones included, and what was read of its parts.

    `left` are the parts left out because they differ from the plan, `unreadable` the unreadable ones, with the
    reason. `is_withdrawn`: there was nothing else, and nothing was committed.
    """

    rows: int
    left: tuple[str, ...]
    parts: Positions
    extents: Mapping[str, Extent]
    counts: LineCounts
    unreadable: Mapping[str, str] = field(default_factory=dict)
    is_withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class Landed:
    """The result of a landing: the table's newest version, the number of rows, notes, and the committed batches."""

    version: int
    rows: int
    notes: tuple[str, ...]
    batches: tuple[LandedBatch, ...]


# Commits the lines of a batch.
Commit = Callable[[Landing, Batch], Committed]


def land(commit: Commit, landing: Landing) -> Landed:
    """Land new lines; `commit` isn't called if there is nothing to land.

    Raises: EngineError, for a loss with its range; LockedError.
    """
    with table_pool.writing(landing.table.path, base=landing.base) as table:
        return _landed(commit, landing, table)


def _landed(commit: Commit, landing: Landing, table: Any) -> Landed:
    checkpoint = landing.checkpoint
    app_id = f"{landing.app_id}:{identity(checkpoint, table.version(), landing)}"
    plans = planned(checkpoint, landing)
    seen, last = batches.landed(plans.values()), max(plans, default=0)
    committed = _last_batch(table, landing.table.path, app_id)
    if table.version() > 0 and (committed is None or committed > last):
        raise EngineError(
            f"the checkpoint of {landing.table.name} belongs to another table, or lacks its list of batches. Landing "
            f"again would duplicate rows. Restore the checkpoint, or run `sqlrun build --full-refresh --select "
            f"{landing.table.name}+`.",
            model=landing.table.name,
        )
    done: list[LandedBatch] = []
    rows, left, version = 0, list[str](), table.version()
    unreadable: dict[str, str] = {}

    def carry_out(number: int, plan: batches.Batch, *, is_new: bool = False) -> None:
        nonlocal rows, version
        if version != table.version():
            delta_table.follow(landing.table.path, table)
        made = commit(landing, Batch(table, app_id, number, plan.parts, plan.lost, is_new))
        left.extend(made.left)
        unreadable.update(made.unreadable)
        if made.is_withdrawn:
            return
        version = table_pool.version_made(table)
        lost = () if plan.is_folded else plan.lost
        rows += made.rows
        done.append(LandedBatch((version,), made.parts, made.extents, made.counts, lost))

    # After a power failure the table may lack more than one batch.
    for number in (n for n in sorted(plans) if n > (committed or 0)):
        carry_out(number, plans[number])
    pending = landing.source.pending(seen)
    if pending.losses:
        raise _lost(landing, pending.losses)
    seen_now = {*left, *unreadable}
    changed = [part for part in pending.changed if part not in seen_now]
    fresh = {part: position for part, position in pending.ready.items() if part not in seen_now}
    left += (part for part in pending.unfinished if part not in seen_now)
    if fresh:
        if not batches.plan(checkpoint, last + 1, fresh):
            raise _overtaken(landing.table.name)
        carry_out(last + 1, batches.Batch(last + 1, fresh, fresh), is_new=True)
        if len(plans) >= batches.KEEP:
            _fold(checkpoint, last + 1, landing)
    notes = landing.source.notes(left, changed)
    return Landed(version, rows, (*notes, *_unread(unreadable)), tuple(done))


def _last_batch(table: Any, path: str, app_id: str) -> int | None:
    """Return the number of a table's last batch; None if it has none.

    Mostly the newest commit is a batch, and its entry was read when the tick began: delta-rs would read the log.
    """
    for action in delta_table.actions(path, table.version()):
        if "txn" in action and action["txn"]["appId"] == app_id:
            return int(action["txn"]["version"])
    found: int | None = table.transaction_version(app_id)
    return found


def _unread(parts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the note about parts that can't be read; () if there are none."""
    if not parts:
        return ()
    # Names and headers may have line breaks, which would look like lines of sqlrun's own.
    faults = [escaped(f"{part}: {reason}") for part, reason in sorted(parts.items())]
    them = "1 file that can't be read" if len(faults) == 1 else f"{len(faults):,} files that can't be read"
    more = f"; and {len(faults) - SHOWN:,} more" if len(faults) > SHOWN else ""
    return (
        f"sqlrun left out {them}, and tries again in each tick. Replace or move what is broken: "
        f"{'; '.join(faults[:SHOWN])}{more}",
    )


def identity(checkpoint: str, version: int, landing: Landing) -> str:
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


def planned(checkpoint: str, landing: Landing) -> dict[int, batches.Batch]:
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
    plans = planned(checkpoint, landing)
    if number not in plans:
        return  # it was withdrawn
    storage_of(landing.table.path).sync(landing.table.path)
    batches.fold(checkpoint, number, plans.values(), plans[number].parts)


def settled(landing: Landing, batch: Batch, reading: Reading) -> Positions:
    """Return the parts of a batch that were read; take the others out of its plan, before its commit.

    The next batch reads these in their current state. If `withdraws` is true, there is no plan any more.

    Raises: EngineError for parts that are gone, unless the landing accepts that; LockedError.
    """
    if reading.missing and not landing.accept_lost:
        raise landed_elsewhere.missing(landing, reading.missing)
    left = {*reading.changed, *reading.missing, *reading.unreadable}
    landed = {part: position for part, position in batch.parts.items() if part not in left}
    if left:
        if delta_table.head(landing.table.path) != batch.table.version():
            # Another build may have read them: removed from the plan, they would land twice.
            raise _overtaken(landing.table.name)
        if withdraws(batch, landed, reading):
            batches.withdraw(landing.checkpoint, batch.number)
        else:
            batches.replan(landing.checkpoint, batch.number, landed, batch.lost)
    return landed


def withdraws(batch: Batch, landed: Positions, reading: Reading) -> bool:
    """Return whether nothing of a new batch is left to commit: its parts can't be read, or have changed.

    A tick would otherwise write an empty commit for them each time.
    """
    left_out = bool(reading.unreadable or reading.changed) and not reading.missing
    return batch.is_new and not landed and left_out


def withdrawn(reading: Reading) -> Committed:
    """Return the result of a batch that `settled` has withdrawn."""
    return Committed(0, tuple(reading.changed), {}, {}, NO_LINES, dict(reading.unreadable), is_withdrawn=True)


def _lost(landing: Landing, losses: tuple[Loss, ...]) -> SourceError:
    """Return the error for lines that the source no longer has."""
    details = "; ".join(loss.what for loss in losses)
    name = landing.table.name
    return SourceError(
        f"SR747 {name} can't land {landing.source.location}: {details}. Nothing of this source lands until you decide. "
        f"Restore the lines, or record their loss and continue: sqlrun source accept-loss {name}",
        model=name,
    )
