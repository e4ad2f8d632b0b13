"""Small entries that this process has seen on an object store a moment ago. Shell: memory, clocks.

Entries of Delta logs, plans of batches, ids of checkpoints. A tick asks for the same entries many times. Each question
would be a request. An entry never changes, except where a user deletes a warehouse and builds it again: then a reader
sees the old one for `FRESH` seconds more. A listing that shows another stamp ends this at once; plans are always listed
first.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock

from sqlrun.storage.storage import Stamp

FOLDERS = ("/_delta_log", "/batches")
ENTRY = re.compile(r"/_delta_log/\d{20}\.json$|/_sqlrun/checkpoints/.+/(batches/\d+\.json|id)$")
# Seconds that an entry counts as known, number of known entries, and the largest one whose bytes stay.
FRESH, MOST, SMALL = 10.0, 4096, 65_536


@dataclass(frozen=True, slots=True)
class _Known:
    stamp: Stamp
    seen: float
    body: bytes | None = None


class LogEntries:
    """The entries of one store that were seen."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._keeping = Lock()

    def stamp(self, path: str) -> Stamp | None:
        """Return an entry's stamp; None if it wasn't seen a moment ago."""
        known = self._fresh(path)
        return None if known is None else known.stamp

    def body(self, path: str) -> bytes | None:
        """Return an entry's bytes; None if they weren't read, or it wasn't seen a moment ago."""
        known = self._fresh(path)
        return None if known is None else known.body

    def note(self, path: str, stamp: Stamp, body: bytes | None = None) -> None:
        """Note an object that was seen, if it is a log entry."""
        if ENTRY.search(path) is None:
            return
        with self._keeping:
            before = self._known.pop(path, None)
            if body is None and before is not None and before.stamp == stamp:
                body = before.body
            self._known[path] = _Known(stamp, time.monotonic(), body if body and len(body) <= SMALL else None)
            while len(self._known) > MOST:
                self._known.popitem(last=False)

    def forget(self, paths: Iterable[str]) -> None:
        """Forget objects that this process deletes or replaces."""
        with self._keeping:
            for path in paths:
                self._known.pop(path, None)

    def _fresh(self, path: str) -> _Known | None:
        with self._keeping:
            known = self._known.get(path)
        return known if known is not None and time.monotonic() - known.seen < FRESH else None
