"""What has been found out about an open table, kept for as long as it is open at that version. Shell: threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

if TYPE_CHECKING:
    from deltalake import DeltaTable

Found = TypeVar("Found")
# By the object's number: an open table has no hash to be a key by.
_kept: dict[int, tuple[ref[DeltaTable], int, dict[Hashable, Any]]] = {}
_keeping = threading.Lock()


def once(table: DeltaTable, what: Hashable, find: Callable[[], Found]) -> Found:
    """Give what was found for an open table at the version that it has; find it where nobody has.

    Two threads may both find it; it must not be changed by those who get it.
    """
    known = _known(table)
    if what not in known:
        known[what] = find()
    found: Found = known[what]
    return found


def handed_on(table: DeltaTable, other: DeltaTable, what: Hashable) -> None:
    """Note of another object of the same version what has been found, if it has."""
    known = _known(table)
    if what in known:
        note(other, what, known[what])


def note(table: DeltaTable, what: Hashable, found: object) -> None:
    """Keep what is known without looking, of the version that an open table has."""
    _known(table)[what] = found


def _known(table: DeltaTable) -> dict[Hashable, Any]:
    number, version = id(table), table.version()
    with _keeping:
        kept = _kept.get(number)
        if kept is None or kept[0]() is not table or kept[1] != version:
            kept = (ref(table, lambda gone: _forget(number, gone)), version, {})
            _kept[number] = kept
        return kept[2]


def _forget(number: int, gone: object) -> None:
    # No lock: this runs wherever the last reference goes, and maybe in a thread that holds it.
    kept = _kept.get(number)
    if kept is not None and kept[0] is gone:
        _kept.pop(number, None)
