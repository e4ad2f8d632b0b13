"""`sqlrun env`: list and drop environments. Shell: the project, ledgers, Delta files, the terminal."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path

from sqlrun import pipeline
from sqlrun.engines.factory import catalog_of, engine_of
from sqlrun.errors import UsageError
from sqlrun.operations import maintenance, retention
from sqlrun.pipeline import ledger_of
from sqlrun.plan import environment_sharing, sampling
from sqlrun.publish import current_folders, environment_paths, environments
from sqlrun.publish.catalog_tables import CatalogTables
from sqlrun.publish.environment_paths import PRODUCTION
from sqlrun.publish.ledger import Ledger
from sqlrun.report import log_lines
from sqlrun.report.console import Console
from sqlrun.runtime.disk_cache import Cache
from sqlrun.storage import lock


def list_environments(root: Path, name: str | None) -> int:
    """Run `sqlrun env list`."""
    Console().lines(
        log_lines.table(("name", "tick", "as_of", "own_tables", "shared_tables", "sample"), listed(_ledger(root, name)))
    )
    return 0


def drop_environment(root: Path, env: str, name: str | None, clock: datetime) -> int:
    """Run `sqlrun env drop`."""
    console = Console()
    prepared = pipeline.prepare(root, Cache.of(root))
    ledger = ledger_of(root, prepared, name).of(env)
    _require_droppable(ledger)
    profile = pipeline.profile_of(root, prepared, name)
    if profile.catalog:
        with closing(engine_of(profile)) as engine:
            catalog = catalog_of(profile, engine)
            assert catalog is not None
            CatalogTables(catalog).drop(ledger)
    for path in drop(ledger, clock):
        console.print(f"Deleted {path}, which no other environment shows.")
    console.print(f"Environment {env} is gone.")
    return 0


def _ledger(root: Path, name: str | None) -> Ledger:
    return ledger_of(root, pipeline.prepare(root, Cache.of(root)), name)


def listed(ledger: Ledger) -> list[tuple[str, int | None, str | None, int, int, str]]:
    """Return name, tick, time, own tables, shared tables and sample of each environment, production first."""
    rows: list[tuple[str, int | None, str | None, int, int, str]] = []
    for env in (PRODUCTION, *environments.names(ledger.warehouse)):
        one = ledger.of(env)
        newest = one.read().published
        if newest is None:
            rows.append((env, None, None, 0, 0, ""))
        else:
            counts = environment_sharing.counted(newest.tables, environments.mine(one, newest))
            sample = sampling.of_tick(newest)
            rows.append((env, newest.tick, f"{newest.as_of:%Y-%m-%d %H:%M}", *counts, str(sample) if sample else ""))
    return rows


def drop(ledger: Ledger, clock: datetime) -> list[str]:
    """Delete an environment's ledger, then its tables; return the paths of the deleted tables.

    A table that production has taken over, or showed in any of its ticks, stays. A crash in between leaves tables that
    no environment shows; `sqlrun vacuum` deletes them.

    Raises: UsageError if there is no such environment, or it is production.
    """
    _require_droppable(ledger)
    with lock.hold(ledger.warehouse, clock) as holder:
        assert_lock_held = partial(lock.require, ledger.warehouse, holder)
        wanted = retention.needed(environments.others(ledger))
        built = [
            path for path in maintenance.unused(ledger.warehouse, wanted) if environment_paths.owner(path) == ledger.env
        ]
        assert_lock_held()
        current_folders.drop(ledger)
        ledger.drop()
        return [maintenance.drop_table(ledger.warehouse, path, assert_lock_held) for path in built]


def _require_droppable(ledger: Ledger) -> None:
    if not ledger.env:
        raise UsageError(
            f"{PRODUCTION} can't be dropped. To delete the whole warehouse, run `sqlrun clean --warehouse`"
        )
    if ledger.env not in environments.names(ledger.warehouse):
        raise environments.unknown(ledger)
