"""Cache of immutable objects' bytes and sizes, shared by a process's readers. Shell: memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock

# Bytes of files that stay in memory, and the largest file that is read whole.
KEPT, WHOLE = 256_000_000, 16_000_000
MOST_SIZES = 100_000

_kept: OrderedDict[str, bytes] = OrderedDict()
_sizes: dict[str, int] = {}
_keeping = Lock()


def keep(path: str, data: bytes) -> None:
    """Cache a file's bytes; the ones used longest ago go first."""
    with _keeping:
        _kept[path] = data
        _kept.move_to_end(path)
        total = sum(map(len, _kept.values())) if len(_kept) % 16 == 0 else 0
        while total > KEPT:
            total -= len(_kept.popitem(last=False)[1])


def cached(path: str) -> bytes | None:
    """Return a file's bytes; None if they aren't cached."""
    with _keeping:
        if path in _kept:
            _kept.move_to_end(path)
        return _kept.get(path)


def note_sizes(sizes: Mapping[str, int]) -> None:
    """Note files' sizes by their paths, as a table's log has them: opening them then needs one request less."""
    with _keeping:
        if len(_sizes) > MOST_SIZES:
            _sizes.clear()
        _sizes.update(sizes)


def size(path: str) -> int | None:
    """Return a file's size; None if it isn't known."""
    return _sizes.get(path)
