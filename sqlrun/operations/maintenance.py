"""Vacuum by hand or every N ticks: compact small files, delete old ones, publish the tick again. Shell: Delta files.

Files that a retained tick needs stay. A crash leaves tables ahead of the published tick, with the same rows; the next
build rolls them back to it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial

from sqlrun.engines.delta import foreign_commits, foreign_writers
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta import vacuum as delta_vacuum
from sqlrun.errors import LockedError, UsageError
from sqlrun.land import dead_letters
from sqlrun.operations import retention
from sqlrun.publish import current_folders, environments, warehouse_format
from sqlrun.publish.environment_paths import system_folder
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import nothing_published
from sqlrun.publish.table_state import Published, TableState
from sqlrun.sources import checkpoint
from sqlrun.storage import lock
from sqlrun.storage.factory import storage_of
from sqlrun.system_tables import check_results, completeness, intake, measures, receipts

# Readers that opened a table before its tick was replaced may still be reading.
READERS = timedelta(hours=1)


# The file with the number of the tick after which the tables were vacuumed last.
MARK = "maintained"


@dataclass(slots=True)
class Done:
    """Results of maintenance: compacted files and the files they became; deleted files, log entries and tables.

    `tick`: number of the tick published again.
    """

    merged: int = 0
    made: int = 0
    files: int = 0
    entries: int = 0
    tables: tuple[str, ...] = ()
    tick: int | None = None


def vacuum(ledger: Ledger, keep: int, clock: datetime, report: Callable[[str], None]) -> Done:
    """Compact and clean up every published table; `keep` ticks can still be read, compared and rolled back to.

    Raises: UsageError before the first tick, or where a build died and left tables ahead of the published tick.
    """
    warehouse_format.require(ledger.warehouse, ledger.project)
    with lock.hold(ledger.warehouse, clock) as holder:
        return vacuum_held(ledger, keep, clock, holder, report)


def due(ledger: Ledger, tick: int, every: int) -> bool:
    """Return whether `every` ticks have passed since the last vacuum; 0 is never."""
    try:
        last = int(storage_of(ledger.warehouse).text(_mark(ledger)))
    except (OSError, ValueError):
        last = 0
    return every > 0 and tick - last >= every


def _mark(ledger: Ledger) -> str:
    return f"{ledger.warehouse}/{system_folder(ledger.env)}/{MARK}"


def vacuum_held(ledger: Ledger, keep: int, clock: datetime, holder: str, report: Callable[[str], None]) -> Done:
    """Do what `vacuum` does; the caller holds the warehouse's lock."""
    retained = ledger.newest(keep)
    if not retained:
        raise nothing_published(ledger)
    newest, done = retained[0], Done()
    assert_lock_held = partial(_require_alone, ledger, holder, ledger.last_pinned())
    # Versions that other environments still show, or derived their own tables from, stay as well.
    needed = retention.needed([*retained, *environments.others(ledger, keep)])
    own = environments.mine(ledger, newest)
    _require_whole(ledger, newest, own)
    # A folder that a crash left behind would name files that are deleted below.
    current_folders.follow(ledger, newest, report)
    states: dict[str, TableState] = dict(newest.tables)
    unsent = dead_letters.behind(ledger.warehouse, ledger.env, newest)
    for name, state in newest.tables.items():
        if name not in own or state.path in unsent:
            continue
        path = f"{ledger.warehouse}/{state.path}"
        assert_lock_held()
        compacted = _compact(path, done, state.version)
        assert_lock_held()
        _delete_old(path, needed[state.path], clock, done)
        states[name] = replace(state, version=_after_deletion(path, compacted))
        report(name)
    assert_lock_held()
    measures.forget(ledger.warehouse, retained[-1].tick, newest.as_of, ledger.env)
    _forget(ledger, retained[-1].tick, clock, done)
    done.tables = tuple(
        drop_table(ledger.warehouse, path, assert_lock_held) for path in unused(ledger.warehouse, needed)
    )
    if states != newest.tables:
        done.tick = ledger.read().last_tick + 1
        assert_lock_held()
        pinned = ledger.pin(done.tick, newest.as_of, states, clock, holder)
        lock.require(ledger.warehouse, holder)
        ledger.publish(done.tick, newest.as_of, states, clock, holder, pinned)
        current_folders.follow(ledger, replace(newest, tick=done.tick, tables=states), report)
    mark = str(done.tick or newest.tick)
    storage_of(ledger.warehouse).put(_mark(ledger), mark.encode(), synced=False)
    return done


def _require_alone(ledger: Ledger, holder: str, last: int | None) -> None:
    """Check that no other process has begun a tick since, because that tick may need what was unneeded before."""
    lock.require(ledger.warehouse, holder)
    if ledger.last_pinned() != last:
        raise LockedError("another build began during this vacuum, which stopped. Run it again.")


def _forget(ledger: Ledger, oldest: int, clock: datetime, done: Done) -> None:
    """Shorten the system tables: delete rows of ticks before the oldest retained one, and old entries of their logs."""
    of_old_ticks = f"tick < {oldest}"
    forgotten = {
        ledger.path: of_old_ticks,
        receipts.path_of(ledger.warehouse, ledger.env): of_old_ticks,
        check_results.path_of(ledger.warehouse, ledger.env): of_old_ticks,
        completeness.path_of(ledger.warehouse, ledger.env): of_old_ticks,
        intake.path_of(ledger.warehouse, ledger.env): f"{of_old_ticks} and lost_because is null",  # losses stay visible
        measures.path_of(ledger.warehouse, ledger.env): "",  # comparisons need weeks of measures
    }
    for path, rows in forgotten.items():
        head = delta_table.head(path)
        if head is not None:
            if rows:
                delta_table.delete_rows(path, rows)
            _compact(path, done)
            done.files += delta_vacuum.vacuum(path, READERS)
            head = delta_table.head(path)
            assert head is not None
            done.files += delta_vacuum.drop_forgotten(path, head, clock - READERS)
            done.files += delta_vacuum.drop_vectors(path, head, clock - READERS)
            done.files += delta_vacuum.drop_change_files(path, head)  # system tables' change feeds have no readers
            done.entries += delta_vacuum.trim_log(path, head, clock - READERS)


def _require_whole(ledger: Ledger, newest: Published, own: Iterable[str]) -> None:
    for name in own:
        state = newest.tables[name]
        path = f"{ledger.warehouse}/{state.path}"
        head = delta_table.head(path)
        if head != state.version:
            command = f"sqlrun build --env {ledger.env}" if ledger.env else "sqlrun build"
            if found := foreign_writers.between(path, state.version, head or 0, ledger.project):
                raise UsageError(
                    f"{name} was changed by another writer than sqlrun after tick {newest.tick}: "
                    f"{foreign_commits.summary(found)}. Run `{command}` first; it rolls the change back, or reports "
                    "what to do."
                )
            raise UsageError(
                f"{name} is at version {head}, tick {newest.tick} shows {state.version}: a build has died or failed "
                f"since. Run `{command}` first; it rolls the writes back."
            )


def _compact(path: str, done: Done, version: int | None = None) -> int:
    """Compact a table's small files; return its version afterwards.

    `version`: only if the table is still at this version; another build may have changed it during a suspension.
    """
    merged, made = delta_vacuum.compact(path, version)
    done.merged += merged
    done.made += made
    head = delta_table.head(path)
    assert head is not None
    return head


def _after_deletion(path: str, compacted: int) -> int:
    """Return a table's version after files were deleted, which adds commits without rows.

    Of an older version the next tick would restore the table. Commits of rows by another process stay unpublished.
    """
    head = delta_table.head(path)
    assert head is not None
    return compacted if delta_table.effective_commits(path, compacted, head) else head


def _delete_old(path: str, versions: set[int], clock: datetime, done: Done) -> None:
    """Delete data files, change files and log entries that no given version needs."""
    oldest = min(versions)
    since = delta_table.committed_at(path, oldest)
    if since is None:
        return
    age = max(clock.astimezone(timezone.utc) - since, timedelta(0))
    done.files += delta_vacuum.vacuum(path, max(age, READERS))
    done.files += delta_vacuum.drop_forgotten(path, oldest, clock - READERS)
    done.files += delta_vacuum.drop_vectors(path, oldest, clock - READERS)
    done.files += delta_vacuum.drop_change_files(path, oldest)
    delta_vacuum.drop_checksums(path)
    done.entries += delta_vacuum.trim_log(path, oldest, clock - READERS)


def unused(warehouse: str, wanted: dict[str, set[int]]) -> list[str]:
    """Return the tables of a warehouse that no tick needs."""
    return retention.unused(table_folders(warehouse), wanted)


def table_folders(warehouse: str) -> Iterator[str]:
    """Return the folders that may be tables, as `model/hash`."""
    storage = storage_of(warehouse)
    for model in storage.entries(warehouse):
        if model.is_folder:
            below = storage.entries(f"{warehouse}/{model.name}")
            yield from (f"{model.name}/{entry.name}" for entry in below if entry.is_folder)


def drop_table(warehouse: str, path: str, assert_lock_held: Callable[[], None] = lambda: None) -> str:
    """Delete a table and its landing's checkpoint: landing rejects one without the other."""
    assert_lock_held()
    storage = storage_of(warehouse)
    storage.delete_folder(f"{warehouse}/{path}")
    with contextlib.suppress(OSError):
        storage.delete_folder(f"{warehouse}/{checkpoint.path_of(path)}")
    storage.delete_empty(f"{warehouse}/{path.rpartition('/')[0]}")
    return path
