"""The storage for a path. Shell: the storages."""

from __future__ import annotations

import re

from sqlrun.errors import UsageError
from sqlrun.storage.local import LocalStorage
from sqlrun.storage.storage import Storage

LOCAL: Storage = LocalStorage()
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def storage_of(path: str) -> Storage:
    """Return the storage of a warehouse, or of a path in it.

    Raises: UsageError for a URL; the profile's validation already rejects one (SR131).
    """
    if SCHEME.match(path):
        raise UsageError(f"`{path}` isn't a folder. A warehouse must be in a folder: mount the store")
    return LOCAL
