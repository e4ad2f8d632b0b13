"""The newest published tick in memory, replaced within a second of a publish. Shell: threads, clock.

If the warehouse can't be read, the last tick stays: `problem` is the reason, and answers include their age.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError, SqlrunError, first_line
from sqlrun.publish.ledger import Ledger
from sqlrun.serve.snapshot import Reader, Snapshot

# Seconds between looks; a look lists one folder.
LOOK_EVERY = 0.25
RETRY_EVERY = 1.0


@dataclass
class Live:
    """The shown tick and its freshness. An answer reads `snapshot` once, so that all of it comes from one tick."""

    clock: Callable[[], datetime]
    stale_after: timedelta
    snapshot: Snapshot | None = None
    problem: str = ""
    listeners: list[Callable[[], None]] = field(default_factory=list)

    def age(self, snapshot: Snapshot) -> int:
        """Return the seconds since a tick's `as_of`; 0 if it is in the future."""
        return max(0, int((self.clock() - snapshot.published.as_of).total_seconds()))

    def stale(self, snapshot: Snapshot) -> bool:
        """Return whether a tick is older than `stale_after`, or the warehouse can't be read."""
        return bool(self.problem) or self.age(snapshot) > self.stale_after.total_seconds()

    def show(self, snapshot: Snapshot) -> None:
        """Replace the shown tick and notify the listeners."""
        self.snapshot, self.problem = snapshot, ""
        for notify in list(self.listeners):
            notify()


class Watcher:
    """A thread that polls for newly published ticks."""

    def __init__(self, ledger: Ledger, reader: Reader, live: Live) -> None:
        self.ledger, self.reader, self.live = ledger, reader, live
        self._seen: int | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sqlrun-watcher", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, after it has read any tick in progress, and close the reader's engine."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        self.reader.engine.close()

    def look(self) -> None:
        """Read and show the newest published tick if it differs from the shown one. Without a new commit, do nothing.

        Raises: SqlrunError if the warehouse can't be read, or the tick lacks a required table or column.
        """
        head = delta_table.head(self.ledger.path)
        if head is None and self.live.snapshot is not None:
            raise EngineError(f"there is no ledger at {self.ledger.path} any more")
        if head is None or head == self._seen:
            self.live.problem = ""
            return
        published = self.ledger.read().published
        shown = self.live.snapshot
        if published is not None and (shown is None or published != shown.published):
            row = self.ledger.sealed(f"tick = {published.tick} and kind = 'published'")[-1]
            self.live.show(self.reader.read(published, row["written_at"]))
        self._seen, self.live.problem = head, ""

    def _run(self) -> None:
        wait = 0.0
        while not self._stopped.wait(wait):
            wait = LOOK_EVERY
            try:
                self.look()
            except SqlrunError as error:
                self.live.problem, wait = first_line(error), RETRY_EVERY
            except Exception as error:
                # Whatever the error, the server continues to answer from the last good tick.
                self.live.problem, wait = f"{type(error).__name__}: {first_line(error)}", RETRY_EVERY
