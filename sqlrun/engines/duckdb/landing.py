"""Landing on DuckDB: plan a batch, then commit it under its number. Shell: files, DuckDB, Delta files.

The protocol is Structured Streaming's: the parts of batch N are written to `<checkpoint>/batches/N.json` first; the
table's commit then carries the transaction id (checkpoint, N). At start a planned batch that is not in the table is
replayed with the same parts; any other is done and never read again. A part that changed since it was planned moves
to the next batch, as long as its own isn't committed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from sqlrun.engine_api import Append, Landing, Write
from sqlrun.engines import landed_elsewhere
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta import table_pool
from sqlrun.engines.duckdb import append as duckdb_append
from sqlrun.errors import EngineError, LockedError
from sqlrun.source_api import Positions
from sqlrun.sources import batches
from sqlrun.storage.factory import storage_of


def land(session: Callable[[], Any], landing: Landing) -> tuple[int, tuple[str, ...]]:
    """Land new files; return the number of rows written, quarantined ones included, and notes to report.

    `session` is opened only if there is something to land.
    """
    with table_pool.writing(landing.table.path) as table:
        return _landed(session, landing, table)


def _landed(session: Callable[[], Any], landing: Landing, table: Any) -> tuple[int, tuple[str, ...]]:
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
    rows, left = 0, list[str]()
    # After a power failure the table may lack more than one batch.
    for number in (n for n in sorted(plans) if n > (committed or 0)):
        again, unsettled = _commit(session(), landing, table, app_id, number, plans[number].parts)
        delta_table.follow(landing.table.path, table)
        rows, left = rows + again, left + unsettled
    pending = landing.source.pending(seen)
    changed = [part for part in pending.changed if part not in left]
    fresh = {part: position for part, position in pending.ready.items() if part not in left}
    left += (part for part in pending.unfinished if part not in left)
    if fresh:
        if not batches.plan(checkpoint, last + 1, fresh):
            raise _overtaken(landing.table.name)
        delta_table.follow(landing.table.path, table)
        more, unsettled = _commit(session(), landing, table, app_id, last + 1, fresh)
        rows, left = rows + more, left + unsettled
        _fold(checkpoint, last + 1, landing)
    return rows, landing.source.notes(left, changed)


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


def _commit(
    session: Any, landing: Landing, table: Any, app_id: str, number: int, parts: Positions
) -> tuple[int, list[str]]:
    """Land a batch; return its number of rows, and the parts left out because they differ from the plan.

    These parts leave the plan before the commit, so that the next batch reads them in their current state.
    """
    write = Write(
        landing.table,
        table.version(),
        number,
        app_id,
        (),
        Append(landing.sql),
        landing.metadata,
        own_commit=landing.own_commit,
    )
    reading = landing.source.read(parts)
    with duckdb_append.coming(session, table, write) as rows:
        for chunk in reading.tables():
            session.register("lines", chunk)
            rows.add(landing.sql)
            session.unregister("lines")
        if reading.missing and not landing.accept_lost:
            raise landed_elsewhere.missing(landing, reading.missing)
        left = {*reading.changed, *reading.missing}
        landed = {part: position for part, position in parts.items() if part not in left}
        if left:
            if delta_table.head(landing.table.path) != table.version():
                # Another build may have read them: removed from the plan, they would land twice.
                raise _overtaken(landing.table.name)
            batches.replan(landing.checkpoint, number, landed)
        # A batch without rows is committed too, to record its number.
        count = rows.commit({**landing.metadata, "sqlrun.files": str(len(landed))})
    landing.source.commit(landed)
    return count, reading.changed
