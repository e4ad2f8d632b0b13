"""The warehouse's environments: each a ledger, beside production's. Shell: ledgers, Delta logs."""

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
    """List the environments that have a ledger, production left out."""
    storage, folder = storage_of(warehouse), f"{warehouse}/_sqlrun/environments"
    return sorted(name for name in storage.names(folder) if storage.is_there(f"{folder}/{name}/ledger/_delta_log"))


def all_of(ledger: Ledger) -> list[Ledger]:
    """Return the ledgers of all environments of a warehouse, production's first."""
    return [ledger.of(name) for name in (PRODUCTION, *names(ledger.warehouse))]


def other_environments(ledger: Ledger) -> OtherEnvironments:
    """Return a tick's plan of the other environments; ledgers are read when they are asked for."""
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
    """Return whether a version of a table was made from an earlier one, and the log of what lies between is there."""
    try:
        head = delta_table.head(path)
        if head is None or head < until:
            return False
        delta_table.effective_commits(path, after, until)
    except EngineError:
        return False
    return True


def others(ledger: Ledger, keep: int | None = None) -> list[Published]:
    """Read the newest ticks of all other environments, production among them; all ticks if not told how many."""
    return [tick for other in all_of(ledger) if other.env != ledger.env for tick in other.newest(keep)]


def mine(ledger: Ledger, newest: Published) -> dict[str, str]:
    """Map the tables of a tick that its environment alone may write to, to their paths."""
    return {name: state.path for name, state in environment_paths.own(newest, other_environments(ledger)).items()}


def unknown(ledger: Ledger) -> UsageError:
    """Return which environments there are."""
    there = ", ".join([PRODUCTION, *names(ledger.warehouse)])
    return UsageError(
        f"unknown environment `{ledger.env}` in {ledger.warehouse}. Environments: {there}. "
        f"To create it, run `sqlrun build --env {ledger.env}`."
    )
