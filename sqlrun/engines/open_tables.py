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
# What is known of the version that an open table is about to follow to.
_coming: dict[int, tuple[int, dict[Hashable, Any]]] = {}
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
    """Note of another object, of this one's version or its next, what has been found of that, if it has."""
    known = _known(table) if other.version() == table.version() else _of_next(table, other.version())
    if what in known:
        note(other, what, known[what])


def note(table: DeltaTable, what: Hashable, found: object) -> None:
    """Keep what is known without looking, of the version that an open table has."""
    _known(table)[what] = found


def note_of(table: DeltaTable, version: int, what: Hashable, found: object) -> None:
    """Keep what is known of a version that an open table has, or will have when it follows its log."""
    (_known(table) if version == table.version() else _of_next(table, version))[what] = found


def _of_next(table: DeltaTable, version: int) -> dict[Hashable, Any]:
    _known(table)  # so that what is kept goes when the table does
    with _keeping:
        coming = _coming.get(id(table))
        if coming is None or coming[0] != version:
            coming = _coming[id(table)] = (version, {})
        return coming[1]


def _known(table: DeltaTable) -> dict[Hashable, Any]:
    number, version = id(table), table.version()
    with _keeping:
        kept = _kept.get(number)
        if kept is None or kept[0]() is not table or kept[1] != version:
            coming = _coming.pop(number, None)
            known = (
                {} if coming is None or coming[0] != version or kept is None or kept[0]() is not table else coming[1]
            )
            kept = (ref(table, lambda gone: _forget(number, gone)), version, known)
            _kept[number] = kept
        return kept[2]


def _forget(number: int, gone: object) -> None:
    # No lock: this runs wherever the last reference goes, and maybe in a thread that holds it.
    kept = _kept.get(number)
    if kept is not None and kept[0] is gone:
        _kept.pop(number, None)
        _coming.pop(number, None)
