"""Cache of facts about an open table, as long as it is open at that version. Shell: threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

if TYPE_CHECKING:
    from deltalake import DeltaTable

Found = TypeVar("Found")
# A fact about a version that this process has committed, and that the open table hasn't read yet.
COMMITTED = "committed"
# By the object's id, because an open table isn't hashable: facts by version, from its current version on.
_cached: dict[int, tuple[ref[DeltaTable], dict[int, dict[Hashable, Any]]]] = {}
_keeping = threading.Lock()


def once(table: DeltaTable, what: Hashable, find: Callable[[], Found]) -> Found:
    """Return a cached fact about an open table at its version; compute it with `find` if it isn't cached.

    Two threads may both compute it; callers must not change it.
    """
    known = _known(table, table.version())
    if what not in known:
        known[what] = find()
    found: Found = known[what]
    return found


def handed_on(table: DeltaTable, other: DeltaTable, what: Hashable) -> None:
    """Copy a fact to another object of the same table, which has the same version or is about to."""
    known = _known(table, other.version())
    if what in known:
        note(other, other.version(), what, known[what])


def note(table: DeltaTable, version: int, what: Hashable, found: object) -> None:
    """Cache a fact about a version of an open table: its own, or the one that it is about to read."""
    _known(table, version)[what] = found


def is_noted(table: DeltaTable, version: int, what: Hashable) -> bool:
    """Return whether a fact about a version of an open table is cached."""
    return what in _known(table, version)


def _known(table: DeltaTable, version: int) -> dict[Hashable, Any]:
    number, now = id(table), table.version()
    with _keeping:
        cached = _cached.get(number)
        if cached is None or cached[0]() is not table:
            cached = _cached[number] = (ref(table, lambda old: _forget(number, old)), {})
        for old in [each for each in cached[1] if each < now]:
            del cached[1][old]
        return cached[1].setdefault(version, {})


def _forget(number: int, dead: object) -> None:
    # No lock: this runs wherever the last reference is dropped, perhaps in a thread that holds the lock.
    cached = _cached.get(number)
    if cached is not None and cached[0] is dead:
        _cached.pop(number, None)
