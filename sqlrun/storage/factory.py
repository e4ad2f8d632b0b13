"""The storage for a path. Shell: the storages."""

from __future__ import annotations

from collections.abc import Mapping

from sqlrun.errors import UsageError
from sqlrun.storage import urls
from sqlrun.storage.local import LocalStorage
from sqlrun.storage.object_store import ObjectStore
from sqlrun.storage.storage import Storage
from sqlrun.storage.store_options import NOTHING, StoreOptions

LOCAL: Storage = LocalStorage()
# By the URLs of warehouses that a profile has options for, and by those of other buckets.
_stores: dict[str, ObjectStore] = {}


def register(warehouse: str, options: Mapping[str, str] = NOTHING) -> None:
    """Register a warehouse's options, for all paths in it; do nothing for a folder."""
    if not urls.is_url(warehouse):
        return
    given = StoreOptions(urls.kind_of(warehouse), dict(options))
    known = _stores.get(warehouse)
    if known is None or known.options != given:
        _stores[warehouse] = ObjectStore(urls.root_of(warehouse), given)


def storage_of(path: str) -> Storage:
    """Return the storage of a warehouse, or of a path in it.

    Raises: UsageError for a URL of no known kind of store.
    """
    return LOCAL if urls.SCHEME.match(path) is None else store_of(path)


def store_of(url: str) -> ObjectStore:
    """Return the object store of a URL. Raises: UsageError for a URL of no known kind of store."""
    root = urls.longest(url, _stores)
    if root is not None:
        return _stores[root]
    kind = urls.kind_of(url)
    if not kind:
        schemes = ", ".join(f"{scheme}://" for scheme in urls.KINDS)
        raise UsageError(f"SR790 `{url}` is neither a folder nor on an object store ({schemes})")
    return _stores.setdefault(urls.root_of(url), ObjectStore(urls.root_of(url), StoreOptions(kind)))


def address_of(path: str) -> tuple[str, dict[str, str] | None]:
    """Return a table's path as delta-rs takes it, with the options of its store; None for a folder."""
    if urls.SCHEME.match(path) is None:
        return path, None
    return urls.escaped(path), store_of(path).options.of_delta


def stores() -> list[ObjectStore]:
    """Return the object stores that this process uses."""
    return list(_stores.values())
