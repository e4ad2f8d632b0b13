"""The newest published tick, held in memory and swapped whole within a second of its publishing. Shell: threads, clock.

What is held stays while the warehouse can't be read; then `problem` says why, and answers tell how old they are.
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

# Looking is a listing of one folder.
LOOK_EVERY = 0.25
RETRY_EVERY = 1.0


@dataclass
class Live:
    """What answers are made of: read `snapshot` once for an answer, and it is of one tick."""

    clock: Callable[[], datetime]
    stale_after: timedelta
    snapshot: Snapshot | None = None
    problem: str = ""
    listeners: list[Callable[[], None]] = field(default_factory=list)

    def age(self, snapshot: Snapshot) -> int:
        """Return how many seconds ago a tick's `as_of` was; 0 for one of the future."""
        return max(0, int((self.clock() - snapshot.published.as_of).total_seconds()))

    def stale(self, snapshot: Snapshot) -> bool:
        """Return whether a tick is older than it should be, or a newer one could not be read."""
        return bool(self.problem) or self.age(snapshot) > self.stale_after.total_seconds()

    def show(self, snapshot: Snapshot) -> None:
        """Answer from this tick from now on."""
        self.snapshot, self.problem = snapshot, ""
        for tell in list(self.listeners):
            tell()


class Watcher:
    """Looks for a newly published tick, in a thread of its own."""

    def __init__(self, ledger: Ledger, reader: Reader, live: Live) -> None:
        self.ledger, self.reader, self.live = ledger, reader, live
        self._seen: int | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sqlrun-watcher", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking; a tick that is being read is read to its end."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        self.reader.engine.close()

    def look(self) -> None:
        """Read the newest published tick if it isn't the one that is shown; nothing where no log entry is new.

        Raises: SqlrunError if the warehouse or what it holds can't be read.
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
                # Whatever it is, the last good tick is still answered.
                self.live.problem, wait = f"{type(error).__name__}: {first_line(error)}", RETRY_EVERY
