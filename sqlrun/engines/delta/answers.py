"""Commits of delta-rs whose answer was lost on its way from an object store. Shell: Delta files.

The store wrote the commit, and delta-rs' repeated write then found the version taken, as if by another writer. Each
commit carries a token of its own, by which it is recognized.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from sqlrun.storage import urls
from sqlrun.storage.factory import storage_of

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

TOKEN = "sqlrun.commit"
# Maximum number of times that rows are appended again behind other writers' commits.
TRIES = 15
Result = TypeVar("Result")


def token() -> dict[str, str]:
    """Return metadata that no other commit has."""
    return {TOKEN: uuid.uuid4().hex}


def received(table: DeltaTable, commit: CommitProperties, write: Callable[[], Result]) -> Result | None:
    """Return the result of a write of delta-rs; None if only its answer was lost.

    The table is at the write's version afterwards.
    """
    path, before = urls.path_of(table.table_uri), table.version()
    if not urls.is_url(path):
        return write()
    try:
        return write()
    except Exception:
        if not _is_there(path, before, commit):
            raise
    table.update_incremental()
    return None


def _is_there(path: str, before: int, commit: CommitProperties) -> bool:
    """Return whether a commit after a version has this commit's token."""
    storage, wanted, version = storage_of(path), (commit.custom_metadata or {})[TOKEN], before + 1
    while True:
        try:
            if wanted in storage.text(f"{path}/_delta_log/{version:020d}.json"):
                return True
        except FileNotFoundError:
            return False
        version += 1


def repeated(table: DeltaTable, once: Callable[[], None]) -> None:
    """Append by a write that fails behind a commit of another writer: repeat it behind that commit.

    On an object store delta-rs must not repeat it: the other commit may be its own.
    """
    from deltalake.exceptions import CommitFailedError

    for _ in range(TRIES):
        try:
            return once()
        except CommitFailedError:
            table.update_incremental()
    return once()
