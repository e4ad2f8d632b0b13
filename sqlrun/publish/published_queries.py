"""The text of each published table's query: `<warehouse>/_sqlrun/queries/<fingerprint>.sql`. Shell: files.

A build writes it after the tick that first publishes the table. Only `sqlrun plan --sql` reads it, to show what an edit
changed, so a tick never depends on these files: they may be deleted.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlrun.errors import EngineError
from sqlrun.storage.factory import storage_of


def file_of(warehouse: str, fingerprint: str) -> str:
    """Return the path of a query's text; `fingerprint` is that of the table's path."""
    return f"{warehouse}/_sqlrun/queries/{fingerprint}.sql"


def write(warehouse: str, texts: Mapping[str, str]) -> None:
    """Write the texts, by fingerprint, that aren't there yet.

    Raises: EngineError if one can't be written.
    """
    if not texts:
        return
    storage = storage_of(warehouse)
    try:
        storage.make_folder(f"{warehouse}/_sqlrun/queries")
        storage.at_once(
            lambda each: storage.put_if_absent(file_of(warehouse, each[0]), each[1].encode(), synced=False),
            texts.items(),
        )
    except OSError as error:
        raise EngineError(f"can't write the queries of new tables: {error.strerror or error}") from error


def read(warehouse: str, fingerprint: str) -> str | None:
    """Return a query's text; None if it isn't there, or isn't text any more."""
    try:
        return storage_of(warehouse).text(file_of(warehouse, fingerprint))
    except (OSError, ValueError):
        return None
