"""Accept the losses of a source, so that it lands again. Shell: the checkpoint, the source.

An accepted loss is part of a batch's plan: the batch has no lines of it, and landing goes on behind it. So it is
recorded once, whatever interrupts the command or the next build, and the intake shows it with the batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError, LockedError
from sqlrun.source_api import AcceptedLoss, Loss, Position, SourceReader
from sqlrun.sources import batches


def losses(reader: SourceReader, checkpoint: str, committed: int) -> list[Loss]:
    """Return the losses that stop a source: within planned batches that aren't committed, and after all batches."""
    plans = _plans(checkpoint)
    found = [loss for number, plan in plans.items() if number > committed for loss in reader.lost(plan.parts)]
    closed = {loss.part for loss in found if loss.resumes is None}
    pending = reader.pending(batches.landed(plans.values())).losses
    return [*found, *(loss for loss in pending if loss.part not in closed)]


def committed_batch(table: str, app: str, checkpoint: str) -> int:
    """Return the number of the last batch that a landing table contains; 0 if it has none.

    `app` is the landing's application id without the checkpoint's.
    """
    if delta_table.head(table) is None:
        return 0
    return delta_table.open_table(table).transaction_version(f"{app}:{batches.identity(checkpoint)}") or 0


def accept(reader: SourceReader, checkpoint: str, committed: int, by: str, at: datetime) -> list[AcceptedLoss]:
    """Accept all losses of a source, and return them; the warehouse must be locked.

    Raises: EngineError, LockedError.
    """
    plans, done = _plans(checkpoint), list[AcceptedLoss]()
    for number, plan in plans.items():
        if number <= committed:
            continue
        found = accepted(reader.lost(plan.parts), by, at)
        if found:
            parts = {name: one for name, at_once in plan.parts.items() if (one := _rest(name, at_once, found))}
            batches.replan(checkpoint, number, parts, (*plan.lost, *found))
            done += found
    plans = _plans(checkpoint)
    found = accepted(reader.pending(batches.landed(plans.values())).losses, by, at)
    if found and not batches.plan(checkpoint, max(plans, default=0) + 1, {}, found):
        raise LockedError("another build is landing this source. Nothing was accepted")
    return [*done, *found]


def accepted(found: Iterable[Loss], by: str, at: datetime) -> tuple[AcceptedLoss, ...]:
    """Return losses as accepted by someone at a time."""
    return tuple(
        AcceptedLoss(
            part=loss.part,
            since=loss.since,
            until=loss.until,
            resumes=loss.resumes,
            kind=loss.kind,
            what=loss.what,
            by=by,
            at=at.isoformat(timespec="seconds"),
        )
        for loss in found
    )


def _rest(part: str, position: Position, found: Iterable[AcceptedLoss]) -> Position | None:
    """Return what is left of a planned range; None if its part is closed."""
    since, until = position
    for loss in found:
        if loss.part == part:
            if loss.resumes is None:
                return None
            since = loss.resumes
    return since, until


def _plans(checkpoint: str) -> dict[int, batches.Batch]:
    plans = batches.read(checkpoint)
    if batches.first_fault(plans) is not None:
        raise EngineError(f"the checkpoint {checkpoint} is corrupt. Run `sqlrun doctor`")
    return {number: plan for number, plan in sorted(plans.items()) if plan is not None}
