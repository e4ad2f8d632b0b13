"""The daemon's view of its Spark: started, lent to one command at a time, discarded. Shell: processes."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from sqlrun.daemon import protocol

# Maximum number of loans of a JVM: each command leaves some objects behind.
MOST_LOANS = 200
# Maximum seconds of a start.
LONGEST_START = 300.0


class KeptSpark:
    """At most one JVM; `fork` runs a function in a fork of the daemon and returns its pid."""

    def __init__(self, settings: dict[str, str] | None, fork: Callable[[Callable[[], int]], int]) -> None:
        self._settings, self._fork = settings, fork
        self.channel: socket.socket | None = None
        self.pid = 0
        self._where: dict[str, Any] = {}
        self._borrower = 0
        self._loans = 0
        self._begun = self.seconds = 0.0
        self._asked: list[tuple[int, str, socket.socket]] = []
        self.trouble = "the profile's engine needs none" if settings is None else ""

    def suits(self, settings: dict[str, str] | None) -> bool:
        """Return whether this Spark suits a profile with these settings; None means that it needs none."""
        return settings is None or settings == self._settings

    @property
    def state(self) -> str:
        """Return the state: none, starting, ready or lent."""
        if not self.pid:
            return "none"
        if not self._where:
            return "starting"
        return "lent" if self._borrower else "ready"

    def start(self) -> None:
        """Start Spark in a fork; nothing happens if it runs, or if a start has failed."""
        if self.pid or self._settings is None or self.trouble:
            return
        ours, theirs = socket.socketpair()
        server, settings = os.getpid(), self._settings

        def keep() -> int:
            ours.close()
            from sqlrun.daemon.spark_host import keep

            return keep(theirs, settings, server)

        self.pid, self._begun, self._loans = self._fork(keep), time.monotonic(), 0
        theirs.close()
        self.channel = ours

    def heard(self) -> None:
        """Handle the Spark host's message: Spark's address, or why there is none."""
        assert self.channel is not None
        try:
            message, _ = protocol.receive(self.channel)
        except (protocol.WireError, OSError):
            message = {"failed": "it ended while it started"}
        if "failed" in message:
            self.trouble = message["failed"]
            self.drop()
        else:
            self._where, self.seconds = message, time.monotonic() - self._begun
        self._close_channel()
        asked, self._asked = self._asked, []
        for pid, key, control in asked:
            self.asked(pid, key, control)

    def asked(self, pid: int, key: str, control: socket.socket) -> None:
        """Answer a command's request for Spark; during a start, answer when it is done."""
        if self.state == "starting":
            self._asked.append((pid, key, control))
            return
        answer: dict[str, Any] = {"reason": ""}
        if self.state == "lent":
            answer = {"reason": "the daemon's is lent to another command"}
        elif self.state == "ready" and key != self._where["key"]:
            answer = {"reason": "the daemon's has other settings, another Java or another folder"}
        elif self.state == "ready":
            self._borrower, self._loans = pid, self._loans + 1
            answer = {"port": self._where["port"], "secret": self._where["secret"]}
        elif self._settings is not None:
            answer = {"reason": f"the daemon has none: {self.trouble or 'it ended'}"}
        with contextlib.suppress(OSError):
            protocol.send(control, answer)

    def ended(self, pid: int, *, free: bool) -> None:
        """Reclaim Spark from an ended command; discard it if a job of the command may still run."""
        self._asked = [each for each in self._asked if each[0] != pid]
        if pid == self.pid:
            self._forget()
            self._close_channel()
        elif pid == self._borrower:
            self._borrower = 0
            if not free or self._loans >= MOST_LOANS:
                self.drop()
                self.start()

    def is_lent_to(self, pid: int) -> bool:
        """Return whether a command has borrowed Spark."""
        return pid == self._borrower

    def drop(self) -> None:
        """Kill Spark, whatever it does."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
        self._close_channel()
        self._forget()

    def late(self) -> bool:
        """Return whether a start takes too long."""
        return self.state == "starting" and time.monotonic() - self._begun > LONGEST_START

    def _forget(self) -> None:
        self.pid, self._where, self._borrower = 0, {}, 0

    def _close_channel(self) -> None:
        if self.channel is not None:
            self.channel.close()
            self.channel = None
