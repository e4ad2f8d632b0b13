"""`sqlrun doctor`: examine the warehouse, and repair it with `--repair`. Shell: files, the ledger, the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from sqlrun.engines.delta import foreign_writers
from sqlrun.engines.delta.table_check import Found, Subject, Table
from sqlrun.errors import EngineError, UsageError
from sqlrun.load import load, profile
from sqlrun.operations import doctor, maintenance
from sqlrun.publish import current_folders, environments, warehouse_format
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.table_state import Published
from sqlrun.report.console import Console
from sqlrun.runtime import text_table
from sqlrun.sources import checkpoint
from sqlrun.storage import lock
from sqlrun.storage.factory import storage_of


def examine_warehouse(root: Path, name: str | None, repair: bool, clock: datetime) -> int:
    """Run `sqlrun doctor`; return 1 if something is still wrong, else 0."""
    settings = load.read(root).project
    target = profile.load(root, name or settings.profile)
    ledger, console = Ledger(target.warehouse, settings.name), Console()
    if not storage_of(ledger.warehouse).is_folder(f"{ledger.warehouse}/_sqlrun"):
        raise UsageError(f"{ledger.warehouse} is not a warehouse yet. `sqlrun build` creates it.")
    warehouse_format.require(ledger.warehouse, ledger.project)
    with lock.hold(ledger.warehouse, clock):
        books = [
            (*doctor.of_ledger(each, deep=True), *doctor.of_books(each, deep=True))
            for each in environments.all_of(ledger)
        ]
        records = [found for each in books for found in each]
        wrong = _report(ledger, records, repair, clock, console)
        if any((each[0].findings or each[0].foreign) and (not repair or each[0].refused) for each in books):
            console.lines(["Restore the ledger first; the doctor checks the tables after that."])
            return 1
        for each in environments.all_of(ledger):
            each.require_chain()
        published = ledger.read().published
        tables = [doctor.of_table(ledger, subject, deep=True) for subject in subjects(ledger, published)]
        wrong += _report(ledger, tables, repair, clock, console)
        wrong += sum(_behind(each, repair, console) for each in environments.all_of(ledger))
        refused = [finding for found in tables for finding in found.refused]
        if refused and published is not None:
            whole = newest_whole(ledger, published)
            advice = (
                f"`sqlrun rollback --to {whole}` shows readers tick {whole}" if whole else "No earlier tick is intact"
            )
            console.lines([f"{advice}, until you rebuild the tables above."])
    files = text_table.counted(sum(len(found.log.names) for found in (*records, *tables)), "file")
    looked = (
        f"{text_table.counted(len(tables), 'table')}, the ledger, the receipts and the checks: {files} in their logs"
    )
    console.lines([f"Examined {looked}. {'Some of them need repair.' if wrong else 'All are intact.'}"])
    return 1 if wrong else 0


def _behind(ledger: Ledger, repair: bool, console: Console) -> int:
    """Report folders that don't show the published tick, and repair them with `repair`; return how many are left."""
    published = ledger.read().published
    names = current_folders.behind(ledger, published)
    if not names or published is None:
        return 0
    place = current_folders.place(ledger)
    if repair:
        current_folders.follow(ledger, published, lambda text: console.lines([text]))
        names = current_folders.behind(ledger, published)
        if not names:
            console.lines([f"The folders in {place} show tick {published.tick} again."])
    if names:
        listed = ", ".join(names)
        console.lines(
            [f"{place}: {listed} doesn't show tick {published.tick}. The next build, or `--repair`, repairs it."]
        )
    return len(names)


def subjects(ledger: Ledger, published: Published | None) -> Iterator[Subject]:
    """Yield the tables of the published tick and all other tables in the warehouse."""
    shown = {state.path: (name, state) for name, state in published.tables.items()} if published else {}
    kept = doctor.versions_shown(ledger)
    storage, root = storage_of(ledger.warehouse), ledger.warehouse
    folders = (path for path in maintenance.table_folders(root) if not path.startswith(("_", ".")))
    there = {path for path in folders if storage.is_there(f"{root}/{path}/_delta_log")}
    for path in sorted(there | shown.keys()):
        name = path.partition("/")[0]
        # Tables that no reader sees are examined too: a build uses them again once an edit is undone.
        version, lands = -1, storage.is_folder(f"{root}/{checkpoint.path_of(path)}")
        if path in shown:
            version, lands = shown[path][1].version, bool(shown[path][1].where)
        advice, project = doctor.advice(name, lands=lands), ledger.project
        yield Subject(name, path, version, kept.get(path, -1), lands, advice=advice, project=project)


def newest_whole(ledger: Ledger, published: Published) -> int | None:
    """Return the newest earlier tick whose tables are all intact; None if there is none."""
    for tick in reversed(ledger.all_published()):
        if tick.tick < published.tick and all(_whole(ledger, n, s.path, s.version) for n, s in tick.tables.items()):
            return tick.tick
    return None


def _whole(ledger: Ledger, name: str, path: str, version: int) -> bool:
    found = Table(ledger.warehouse, Subject(name, path, version, version), deep=True).examine()
    return not found.refused


def _report(ledger: Ledger, found: list[Found], repair: bool, clock: datetime, console: Console) -> int:
    """Print all findings, and repair them with `repair`; return the number of findings left."""
    console.lines(str(finding) + "." for each in found for finding in each.findings)
    others_left = sum(_taken_back(ledger.warehouse, each, repair, console) for each in found if each.foreign)
    return others_left + _move_damaged(ledger, found, repair, clock, console)


def _taken_back(warehouse: str, found: Found, repair: bool, console: Console) -> int:
    """Report another writer's commits, and roll them back with `repair`; return 1 if any are left, else 0."""
    seen = foreign_writers.adopted(found)
    if seen:
        console.lines([f"{seen}."])
    newer = [one for one in found.foreign if one.version > found.subject.seen]
    if not newer:
        return 1 if seen else 0  # commits that no reader sees any more stay
    found = replace(found, foreign=newer)
    if not repair or found.refused:
        console.lines([f"{foreign_writers.refusal(found.subject, newer)}."])
        return 1
    try:
        console.lines([f"{foreign_writers.take_back(warehouse, found)}."])
    except EngineError as error:
        console.lines([f"{error}."])
        return 1
    return 1 if seen else 0


def _move_damaged(ledger: Ledger, found: list[Found], repair: bool, clock: datetime, console: Console) -> int:
    left = sum(len(each.findings) for each in found)
    moves = [path for each in found if not each.refused for path in each.moves]
    if not moves:
        return left
    if not repair:
        console.lines(["No published tick needs these files. The next build, or `--repair`, moves them aside."])
        return left
    folder = doctor.move_files(ledger.warehouse, moves, clock)
    console.lines(
        [f"Set aside in {folder}: {text_table.counted(len(moves), 'file')}. sqlrun computes their content again."]
    )
    return sum(len(each.findings) for each in found if each.refused)
