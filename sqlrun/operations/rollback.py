"""Past ticks: list them, compare them, roll back to one. Shell: the ledger, Delta files, the terminal."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import unquote

from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError, UsageError
from sqlrun.operations import compare
from sqlrun.publish import current_folders, warehouse_format
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import find, nothing_published, tick_of
from sqlrun.publish.table_state import Published, all_complete_to
from sqlrun.report import log_lines
from sqlrun.report.console import Console
from sqlrun.runtime import text_table
from sqlrun.storage import lock
from sqlrun.storage.factory import storage_of
from sqlrun.system_tables import measures, receipts


def list_ticks(ledger: Ledger, limit: int) -> list[str]:
    """Return lines about ticks: time, outcome, rows changed, checks and seconds, the newest first."""
    entries = ledger.entries()
    if not entries:
        raise nothing_published(ledger)
    newest = next((entry.tick for entry in entries if entry.published_at), 0)
    costs = receipts.totals(ledger.warehouse, ledger.env)
    rows = []
    for entry in entries[:limit] if limit else entries:
        status = "published" if entry.published_at else "not published"
        cost = costs.get(entry.tick)
        seconds = cost.seconds if cost else None
        if entry.pinned_at and entry.published_at and seconds is None:
            seconds = (entry.published_at - entry.pinned_at).total_seconds()
        rows.append(
            (
                entry.tick,
                f"{entry.as_of:%Y-%m-%d %H:%M}",
                status + (", current" if entry.tick == newest else ""),
                f"{entry.published_at:%Y-%m-%d %H:%M:%S}" if entry.published_at else None,
                cost.rows_changed if cost else None,
                _checks(cost) if cost else None,
                None if seconds is None else f"{seconds:.2f}",
            )
        )
    head = ("tick", "as_of", "status", "published_at", "rows_changed", "checks", "table_seconds")
    return [*log_lines.table(head, rows), *_complete(ledger, newest)]


def _complete(ledger: Ledger, tick: int) -> list[str]:
    """Return a line for each database whose whole transactions the current tick has."""
    published = ledger.published(tick) if tick else None
    facts = all_complete_to(published.tables) if published is not None else ()
    return [f"Tick {tick} is complete to {fact}." for fact in facts]


def _checks(cost: receipts.Total) -> str:
    """Return a summary of a tick's checks."""
    passed = cost.checks - cost.warned - cost.failed
    parts = ((passed, "passed"), (cost.warned, "warned"), (cost.failed, "failed"))
    return ", ".join(f"{count} {word}" for count, word in parts if count) or "none"


def compared(ledger: Ledger, before: int | None, after: int | None) -> tuple[Published, Published]:
    """Return the two published ticks to compare: by default the newest, and the one before it.

    Raises: UsageError if a tick is unknown.
    """
    last = tick_of(ledger, after)
    if before is None:
        earlier = [entry.tick for entry in ledger.entries() if entry.published_at and entry.tick < last.tick]
        if not earlier:
            raise UsageError(f"there is no tick before tick {last.tick} to compare with")
        before = earlier[0]
    return tick_of(ledger, before), last


def difference(ledger: Ledger, model: str, before: int | None, after: int | None) -> list[dict[str, object]]:
    """Return the rows that left (`-`) and came (`+`) between two published ticks, as bags.

    Raises: UsageError if a tick is unknown, or the model's columns were others then.
    """
    first, last = compared(ledger, before, after)
    old, new = (find(tick, ledger.warehouse, model) for tick in (first, last))
    if old.columns != new.columns:
        raise UsageError(f"the columns of {model} differ between tick {first.tick} and tick {last.tick}")
    before_side, after_side = (compare.Side(ledger.env, ledger.warehouse, tick) for tick in (first, last))
    return compare.sample(model, before_side, after_side, limit=0)


def roll_back(ledger: Ledger, to: int, clock: datetime, console: Console) -> None:
    """Publish an earlier tick's tables again, as a new tick. Landed rows stay: the next build processes them again.

    Raises: UsageError if the tick was never published, is the latest, or its files are gone.
    """
    warehouse_format.require(ledger.warehouse, ledger.project)
    with lock.hold(ledger.warehouse, clock) as holder:
        newest = tick_of(ledger)
        old = tick_of(ledger, to)
        if old.tick == newest.tick:
            raise UsageError(f"tick {to} is the current one")
        for name, state in old.tables.items():
            path = f"{ledger.warehouse}/{state.path}"
            gone = _gone(path, state.version)
            if gone:
                raise UsageError(f"tick {to} can't be restored: {name} at version {state.version} {gone}")
        number = ledger.read().last_tick + 1
        lock.require(ledger.warehouse, holder)
        pinned = ledger.pin(number, old.as_of, old.tables, clock, holder)
        lock.require(ledger.warehouse, holder)
        ledger.publish(number, old.as_of, old.tables, clock, holder, pinned)
        shown = Published(number, old.as_of, old.tables)
        current_folders.follow(ledger, shown, lambda text: console.print(text, "warning"))
    try:
        measures.take_back(ledger.warehouse, to, ledger.env)
    except EngineError as error:
        console.problem(error)
    console.print(
        f"Readers see tick {to} again, as tick {number}, as_of {old.as_of:%Y-%m-%d %H:%M} UTC. "
        "The next build continues from there, with all lines that have landed since."
    )


def _gone(path: str, version: int) -> str:
    """Return which file of a table's version is missing; empty if the version is complete."""
    try:
        files = delta_table.files_at(delta_table.open_table(path, version))
    except EngineError:
        return "can't be read"
    storage = storage_of(path)
    missing = [file["path"] for file in files if not storage.is_there(f"{path}/{unquote(file['path'])}")]
    return f"lacks {text_table.counted(len(missing), 'file')}" if missing else ""
