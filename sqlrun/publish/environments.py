"""The warehouse's environments, each with its own ledger. Shell: ledgers, Delta logs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError, UsageError
from sqlrun.publish import environment_paths
from sqlrun.publish.environment_paths import PRODUCTION, OtherEnvironments
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.table_state import Published
from sqlrun.storage.factory import storage_of


def names(warehouse: str) -> list[str]:
    """Return the names of the environments that have a ledger, without production."""
    storage, folder = storage_of(warehouse), f"{warehouse}/_sqlrun/environments"
    return sorted(name for name in storage.names(folder) if storage.is_there(f"{folder}/{name}/ledger/_delta_log"))


def all_of(ledger: Ledger) -> list[Ledger]:
    """Return the ledgers of all environments of a warehouse, production's first."""
    return [ledger.of(name) for name in (PRODUCTION, *names(ledger.warehouse))]


def other_environments(ledger: Ledger) -> OtherEnvironments:
    """Return the other environments for a tick's plan; their ledgers are read on demand."""
    is_ancestor = environment_paths.absolute(_reaches, ledger.warehouse)
    if ledger.env:
        return OtherEnvironments(ledger.env, ledger.of(PRODUCTION).read().published, is_ancestor=is_ancestor)

    @cache
    def offers() -> Sequence[tuple[str, Published]]:
        found = [(name, ledger.of(name).read().published) for name in names(ledger.warehouse)]
        ticks = [(name, tick) for name, tick in found if tick is not None]
        return sorted(ticks, key=lambda each: (-each[1].as_of.timestamp(), each[0]))

    return OtherEnvironments(offers=offers, is_ancestor=is_ancestor)


def _reaches(path: str, after: int, until: int) -> bool:
    """Return whether a version of a table derives from an earlier one, and the log between them is complete."""
    try:
        head = delta_table.head(path)
        if head is None or head < until:
            return False
        delta_table.effective_commits(path, after, until)
    except EngineError:
        return False
    return True


def others(ledger: Ledger, keep: int | None = None) -> list[Published]:
    """Return the latest ticks of all other environments, production among them; at most `keep` of each, None: all."""
    return [tick for other in all_of(ledger) if other.env != ledger.env for tick in other.newest(keep)]


def mine(ledger: Ledger, newest: Published) -> dict[str, str]:
    """Return the paths of a tick's tables that only its environment may write to, by table."""
    return {name: state.path for name, state in environment_paths.own(newest, other_environments(ledger)).items()}


def unknown(ledger: Ledger) -> UsageError:
    """Return the error for an unknown environment; it lists the existing ones."""
    existing = ", ".join([PRODUCTION, *names(ledger.warehouse)])
    return UsageError(
        f"unknown environment `{ledger.env}` in {ledger.warehouse}. Environments: {existing}. "
        f"To create it, run `sqlrun build --env {ledger.env}`."
    )
