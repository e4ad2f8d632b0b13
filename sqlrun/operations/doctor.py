"""Repair after a power failure: move unpublished damage aside, reject published damage. Shell: files, ledger.

A build checks first what it needs; `sqlrun doctor` checks everything. Files are moved, never deleted, to
`<warehouse>/_sqlrun/set_aside/<when>`; their contents are computed again from the published state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from sqlrun.engines.delta import foreign_writers, heads, log_faults
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.heads import Heads
from sqlrun.engines.delta.table_check import Found, Subject, Table
from sqlrun.errors import UsageError
from sqlrun.land import quarantine_log
from sqlrun.operations import checkpoint_check
from sqlrun.plan.values import TickPlan
from sqlrun.project import model_of
from sqlrun.publish import environments, warehouse_format
from sqlrun.publish.environment_paths import PRODUCTION
from sqlrun.publish.ledger import Ledger
from sqlrun.runtime import text_table
from sqlrun.storage.factory import storage_of
from sqlrun.system_tables import check_results, completeness, intake, measures, receipts

MOVED_FILES = "_sqlrun/set_aside"
CHAIN = 20
Warn = Callable[[str], None]


def at_start(ledger: Ledger, clock: datetime, warn: Warn) -> Heads:
    """Repair the files that planning a tick needs, and check the ledger for edits; return the newest versions seen.

    Raises: UsageError for another project's warehouse, an edited ledger, or damage that can't be repaired.
    """
    known = heal_books(ledger, clock, warn)
    ledger.require_chain(CHAIN, known)
    return known


def heal_books(ledger: Ledger, clock: datetime, warn: Warn) -> Heads:
    """Check the warehouse's owner and all environments' ledgers and system tables; repair them where possible.

    Return their newest versions. Raises: UsageError for another project's warehouse, or damage that can't be repaired.
    """
    production, warehouse = ledger.of(PRODUCTION), ledger.warehouse
    # Examining changes nothing, so it needn't wait for the owner's name.
    asks: list[Callable[[], Any]] = [
        partial(warehouse_format.require, warehouse, ledger.project),
        partial(environments.names, warehouse),
        *_examinations(production),
    ]
    has_format, names, *examined = storage_of(warehouse).at_once(lambda ask: ask(), asks)
    found = [one for part in examined for one in part]
    heal(warehouse, found, clock, warn)
    for name in names:
        parts = storage_of(warehouse).at_once(lambda examine: examine(), _examinations(ledger.of(name)))
        more = [one for part in parts for one in part]
        heal(warehouse, more, clock, warn)
        found += more
    if not has_format:
        warehouse_format.put(warehouse, ledger.project)
    return heads.seen(warehouse, found)


def _examinations(ledger: Ledger) -> tuple[Callable[[], Iterable[Found]], ...]:
    """Return the examinations of an environment's ledger and of its system tables."""
    return partial(of_ledger, ledger), partial(of_books, ledger)


def before_tick(ledger: Ledger, plan: TickPlan, clock: datetime, warn: Warn) -> Heads:
    """Check the tables that a tick reads and writes, and their landings' checkpoints; repair them where possible.

    Return the tables' newest versions. Raises: UsageError for damage to published data.
    """
    subjects = []
    for name, table in plan.tables.items():
        if table.shared:
            continue  # production checks it
        shown = table.state.version if table.state else -1
        hint, project = advice(name, lands=table.lands), ledger.project
        subjects.append(Subject(name, table.path, shown, shown, table.lands, advice=hint, project=project))
    found = storage_of(ledger.warehouse).at_once(partial(of_table, ledger, deep=False), subjects)
    heal(ledger.warehouse, found, clock, warn)
    return heads.seen(ledger.warehouse, found)


def free_number(ledger: Ledger, plan: TickPlan, known: Heads) -> int:
    """Return the lowest tick number that no table of a plan has used.

    A power failure can lose a row `pinned` and leave its tick's commits, with their transaction ids.
    """
    used = 0
    for table in (table for table in plan.tables.values() if not table.is_source):
        head = known.of(table.spec.path)
        if head is not None and head > (table.state.version if table.state else 0):
            found = delta_table.open_table(table.spec.path).transaction_version(plan.app_id(ledger.project, table.path))
            used = max(used, found or 0)
    return used + 1


def advice(name: str, *, lands: bool) -> str:
    """Return the advice for damage to published data of a table."""
    owner = model_of(name)
    again = f"`sqlrun build --full-refresh --select {owner}+`"
    if lands:
        return f"A published tick needs it. Restore the file from a backup, or land all files again: {again}"
    return f"A published tick needs it. Restore the file from a backup, or rebuild the table: {again}"


def of_table(ledger: Ledger, subject: Subject, *, deep: bool) -> Found:
    """Examine a table and its landing's checkpoint; versions of any published tick are protected."""
    found = _examined(ledger, subject, deep=deep)
    if not found.moves or deep:
        return found
    published = versions_shown(ledger).get(subject.path, -1)
    return found if published <= subject.kept else _examined(ledger, replace(subject, kept=published), deep=deep)


def versions_shown(ledger: Ledger) -> dict[str, int]:
    """Return the newest published version of each table, over all environments, by path."""
    newest: dict[str, int] = {}
    for each in environments.all_of(ledger):
        for tick in each.all_published():
            for state in tick.tables.values():
                newest[state.path] = max(newest.get(state.path, -1), state.version)
    return newest


def _examined(ledger: Ledger, subject: Subject, *, deep: bool) -> Found:
    def table() -> Found:
        return Table(ledger.warehouse, subject, deep=deep).examine()

    if not subject.stays:
        return table()
    asks: list[Callable[[], Any]] = [table, partial(checkpoint_check.look, ledger.warehouse, subject)]
    found, seen = storage_of(ledger.warehouse).at_once(lambda ask: ask(), asks)
    return checkpoint_check.examine(ledger.warehouse, subject, found, seen, ledger.project)


def of_ledger(ledger: Ledger, *, deep: bool = False) -> tuple[Found, ...]:
    """Examine the ledger: a corrupt row was never committed, unless a later row was published."""
    path = str(PurePosixPath(ledger.path).relative_to(ledger.warehouse))
    subject = Subject("ledger", path, stays=True, project=ledger.project)
    found = Table(ledger.warehouse, subject, deep=deep).examine()
    if found.first is None:
        return (found,)
    for version, text in found.texts.items():
        ids = log_faults.transactions(text)
        if version > found.first and any(app.endswith(".published") for app in ids):
            advice = (
                "A later tick was published, so this file was intact before. Restore the ledger's folder from a backup"
            )
            findings = [replace(f, movable=False, advice=advice) for f in found.findings]
            return (replace(found, findings=findings, moves=[]),)
    return (found,)


def of_books(ledger: Ledger, *, deep: bool = False) -> list[Found]:
    """Examine run stats, checks, measures, the quarantine log and the intake: all from a corrupt entry on may go.

    No decision depends on the first three. A command that writes to the log returns only when its rows are synced. Rows
    of the intake are synced before their tick is published, and a tick computes missing ones again.
    """
    books = (
        ("receipts", receipts),
        ("checks", check_results),
        ("measures", measures),
        ("quarantine", quarantine_log),
        ("intake", intake),
        ("completeness", completeness),
    )
    paths = {name: PurePosixPath(book.path_of(ledger.warehouse, ledger.env)) for name, book in books}
    subjects = [
        Subject(name, str(path.relative_to(ledger.warehouse)), stays=True, transaction=False, project=ledger.project)
        for name, path in paths.items()
    ]
    return storage_of(ledger.warehouse).at_once(lambda one: Table(ledger.warehouse, one, deep=deep).examine(), subjects)


def heal(warehouse: str, found: Iterable[Found], clock: datetime, warn: Warn) -> None:
    """Move damaged files aside, roll back commits of other writers, and report both; raise for published damage.

    Raises: UsageError in this case; EngineError if a rollback fails.
    """
    found = list(found)
    for each in found:
        for path in each.stale:  # Spark would try the file four times before ignoring it
            storage_of(warehouse).delete(f"{warehouse}/{path}")
    found = [each for each in found if each.findings or each.foreign]
    refused = [str(finding) for each in found for finding in each.refused] + foreign_writers.refusals(found)
    if refused:
        raise UsageError("\n".join(f"{each}." for each in refused))
    damaged = [each for each in found if each.findings]
    if damaged:
        folder = move_files(warehouse, [path for each in damaged for path in each.moves], clock)
        for each in damaged:
            warn(message(each, folder))
    foreign_writers.heal(warehouse, found, warn)


def message(found: Found, folder: str) -> str:
    """Say which files of a table were moved aside, and why."""
    first = found.findings[0]
    more = f" and {text_table.counted(len(found.moves) - 1, 'more file')}" if len(found.moves) > 1 else ""
    return (
        f"{first.table}: {first.file} {first.what}, as after a power failure. It{more} was moved to {folder}. "
        "Published files are intact; sqlrun computes the rest again."
    )


def move_files(warehouse: str, paths: Iterable[str], clock: datetime) -> str:
    """Move files, in this order, to a new folder; return its path relative to the warehouse."""
    storage = storage_of(warehouse)
    base = f"{MOVED_FILES}/{clock:%Y-%m-%dT%H-%M-%S}"
    folder, number = base, 1
    while storage.is_there(f"{warehouse}/{folder}"):
        number += 1
        folder = f"{base}-{number}"
    for path in paths:
        storage.move(f"{warehouse}/{path}", f"{warehouse}/{folder}/{path}")
    storage.sync(warehouse)
    return folder
