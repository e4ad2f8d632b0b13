"""What has been found out about an open table, kept for as long as it is open at that version. Shell: threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

if TYPE_CHECKING:
    from deltalake import DeltaTable

Found = TypeVar("Found")
# By the object's number: an open table has no hash to be a key by. What is known of each version, from its own one on.
_cached: dict[int, tuple[ref[DeltaTable], dict[int, dict[Hashable, Any]]]] = {}
_keeping = threading.Lock()


def once(table: DeltaTable, what: Hashable, find: Callable[[], Found]) -> Found:
    """Return what was found for an open table at the version that it has; find it where nobody has.

    Two threads may both find it; it must not be changed by those who get it.
    """
    known = _known(table, table.version())
    if what not in known:
        known[what] = find()
    found: Found = known[what]
    return found


def handed_on(table: DeltaTable, other: DeltaTable, what: Hashable) -> None:
    """Note of another object what is known of its version by this one, which has that version or is about to."""
    known = _known(table, other.version())
    if what in known:
        note(other, other.version(), what, known[what])


def note(table: DeltaTable, version: int, what: Hashable, found: object) -> None:
    """Keep what is known without looking, of a version that an open table has, or will have when it follows its log."""
    _known(table, version)[what] = found


def _known(table: DeltaTable, version: int) -> dict[Hashable, Any]:
    number, now = id(table), table.version()
    with _keeping:
        kept = _cached.get(number)
        if kept is None or kept[0]() is not table:
            kept = _cached[number] = (ref(table, lambda gone: _forget(number, gone)), {})
        for gone in [each for each in kept[1] if each < now]:
            del kept[1][gone]
        return kept[1].setdefault(version, {})


def _forget(number: int, gone: object) -> None:
    # No lock: this runs wherever the last reference goes, and maybe in a thread that holds it.
    kept = _cached.get(number)
    if kept is not None and kept[0] is gone:
        _cached.pop(number, None)
