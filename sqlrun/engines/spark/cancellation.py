"""How a statement of Spark's is stopped: its jobs are cancelled, and its stream ends. Shell: Spark, threads."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any

# Seconds between two attempts: what runs next in the same group has to be met too.
AGAIN = 0.5


class Cancel:
    """Cancels a job group when it is called, again and again; whoever calls doesn't wait for the JVM."""

    def __init__(self, context: Any, group: str) -> None:
        self._context, self._group = context, group
        self._next = 0.0
        self._thread: threading.Thread | None = None
        self.streams: list[Any] = []
        self.asked = False

    def __call__(self) -> None:
        """Ask the JVM in a thread of its own, unless one asks already."""
        now = time.monotonic()
        if now >= self._next and (self._thread is None or not self._thread.is_alive()):
            self._next, self.asked = now + AGAIN, True
            self._thread = threading.Thread(target=self._cancel, name="sqlrun-cancel", daemon=True)
            self._thread.start()

    def _cancel(self) -> None:
        with suppress(Exception):  # it has ended meanwhile, or the JVM has
            self._context.cancelJobGroup(self._group)
        for stream in self.streams:
            # Hadoop's and Delta's code may lose an interrupt and go on to the batch's job: both are repeated.
            with suppress(Exception):
                self._context.cancelJobGroup(str(stream.runId))
            with suppress(Exception):  # it hasn't ended within `stopTimeout`
                stream.stop()
