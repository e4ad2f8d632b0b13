"""Files on object stores for DuckDB. Shell: DuckDB."""

from __future__ import annotations

from typing import Any

from sqlrun.storage.factory import stores
from sqlrun.storage.urls import KINDS


def register(database: Any) -> None:
    """Let a database read URLs if this process uses an object store; do nothing if it can read them already."""
    if stores() and not database.filesystem_is_registered(next(iter(KINDS))):
        from sqlrun.storage.remote_files import RemoteFiles

        database.register_filesystem(RemoteFiles())
