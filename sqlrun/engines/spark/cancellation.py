"""Cancellation of a Spark statement: its jobs are cancelled, and its stream stops. Shell: Spark, threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

# Seconds between two attempts: later jobs of the group have to be cancelled too.
AGAIN = 0.5


class Cancel:
    """Cancels a job group repeatedly once called; the caller doesn't wait for the JVM."""

    def __init__(self, cancel: Callable[[str], Any], group: str) -> None:
        self._cancel_group, self._group = cancel, group
        self._next = 0.0
        self._thread: threading.Thread | None = None
        self.streams: list[Any] = []
        self.asked = False

    def __call__(self) -> None:
        """Call the JVM in a separate thread, unless one is calling already."""
        now = time.monotonic()
        if now >= self._next and (self._thread is None or not self._thread.is_alive()):
            self._next, self.asked = now + AGAIN, True
            self._thread = threading.Thread(target=self._cancel, name="sqlrun-cancel", daemon=True)
            self._thread.start()

    def _cancel(self) -> None:
        with suppress(Exception):  # the group or the JVM has ended meanwhile
            self._cancel_group(self._group)
        for stream in self.streams:
            # Hadoop's and Delta's code may lose an interrupt and continue with the batch's job: repeat both.
            with suppress(Exception):
                self._cancel_group(str(stream.runId))
            with suppress(Exception):  # it didn't end within `stopTimeout`
                stream.stop()
