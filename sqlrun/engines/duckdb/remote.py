"""Files on object stores for DuckDB. Shell: DuckDB."""

from __future__ import annotations

from typing import Any

from sqlrun.storage.factory import stores


def register(database: Any) -> None:
    """Let a database read URLs, if this process uses an object store."""
    if stores():
        from sqlrun.storage.remote_files import RemoteFiles

        database.register_filesystem(RemoteFiles())
