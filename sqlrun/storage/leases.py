"""Locks on object stores: leases in numbered objects. Shell: the network, threads, clocks.

A lock is a prefix with one object for each step: its number is the fencing token. Each holder, renewal and release
writes the next number by put-if-absent, so a renewal and a takeover compete for one number, and one wins. A waiter
takes over a lease whose newest number hasn't changed for `TERM` seconds of the waiter's own clock; clocks of two
machines are never compared. A holder deletes its older numbers.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sqlrun.storage.storage import Entry

# Seconds without a renewal after which a waiter takes over, between two renewals, and between a waiter's looks.
TERM, RENEWAL, LOOK = 30.0, 8.0, 1.0


class Objects(Protocol):
    """The methods of a store that leases need."""

    def read(self, path: str) -> bytes:
        """Return an object's bytes."""

    def entries(self, folder: str) -> list[Entry]:
        """Return the entries of a prefix."""

    def put_if_absent(self, path: str, data: bytes, *, synced: bool) -> bool:
        """Write an object, if there is none."""

    def delete(self, path: str) -> None:
        """Delete an object."""


def now() -> float:
    """Return seconds of a clock that doesn't stop while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass(slots=True)
class Held:
    """A lease of this process: its newest number, and the time when its latest confirmed renewal began.

    `lost`: the text of the process that took it over; "" if its objects were deleted; None while it is held.
    """

    path: str
    text: str
    token: str
    number: int
    renewed: float
    lost: str | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    # Guards a renewal against the lease's end.
    writing: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class Step:
    """An object of a lock: its number, its holder's text and token; `free` for a release."""

    number: int
    text: str = ""
    token: str = ""
    free: bool = False
    process: str = ""


class Leases:
    """The leases of one store that this process holds."""

    def __init__(self, store: Objects) -> None:
        self._store = store
        self._held: dict[str, Held] = {}

    @contextmanager
    def hold(self, path: str, text: str, taken: Callable[[str], None]) -> Iterator[None]:
        """Take a lease and renew it in a thread; `Storage.hold` documents `taken`."""
        held = self._taken(path, text, taken)
        self._held[path] = held
        thread = threading.Thread(target=self._renew, args=(held,), name="sqlrun-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._end(held, release=True)
            thread.join()
            if self._held.get(path) is held:
                del self._held[path]

    def holder(self, path: str) -> str:
        """Return the text of a lock's holder; "" if there is none.

        This process's own lease needs no request as long as no waiter can have taken it over.
        """
        held = self._held.get(path)
        if held is not None and held.lost is None and now() - held.renewed < TERM - RENEWAL:
            return held.text
        if held is not None:
            if held.lost is None:
                self._confirm(held)
            return held.text if held.lost is None else held.lost
        newest = self._newest(path)
        return "" if newest is None or newest.free else newest.text

    def forget_below(self, folder: str) -> None:
        """End the leases below a prefix without a release: their objects are about to be deleted."""
        for path, held in list(self._held.items()):
            if path.startswith(f"{folder}/"):
                self._end(held, release=False)
                held.lost = ""

    def _taken(self, path: str, text: str, taken: Callable[[str], None]) -> Held:
        """Wait for a lock and take it."""
        token, seen, since, reported, moved = uuid.uuid4().hex, -1, now(), False, False
        newest: Step | None = None
        while True:
            if max(self._numbers(path), default=0) != seen or seen == -1:
                newest = self._newest(path)
                moved, seen, since = seen >= 0, newest.number if newest else 0, now()
            number = seen
            if newest is None or newest.free or _is_dead(newest.process) or now() - since >= TERM:
                began = now()
                if self._step(path, number + 1, text, token) and self._leads(path, number + 1):
                    self._sweep(path, number)
                    return Held(path, text, token, number + 1, began)
                continue
            if not reported and (moved or _is_alive(newest.process)):
                taken(newest.text)
                reported = True
            time.sleep(LOOK)

    def _renew(self, held: Held) -> None:
        """Renew a lease until it ends or is lost; a failed renewal is repeated."""
        while not held.ended.wait(RENEWAL):
            try:
                self._confirm(held)
            except OSError:
                continue
            if held.lost is not None:
                return

    def _confirm(self, held: Held) -> None:
        """Renew a lease, or note that it is lost. Raises: OSError if the store can't be reached."""
        with held.writing:
            if held.ended.is_set() or held.lost is not None:
                return
            began, number = now(), held.number + 1
            if not self._step(held.path, number, held.text, held.token):
                newest = self._newest(held.path)
                if newest is None or newest.token != held.token:
                    held.lost = "" if newest is None else newest.text
                    return
                number = newest.number  # of an earlier renewal, whose end failed
            there = self._numbers(held.path)
            if max(there, default=0) != number or held.number not in there:
                # Others went on while this process slept, or a user deleted the objects.
                self._store.delete(_object(held.path, number))
                newest = self._newest(held.path)
                held.lost = "" if newest is None else newest.text
                return
            held.number, held.renewed = number, began
            for old in there:
                if old < number:
                    self._store.delete(_object(held.path, old))

    def _end(self, held: Held, *, release: bool) -> None:
        """End a lease; write that it is free, if it is still held."""
        with held.writing:
            if held.ended.is_set():
                return
            held.ended.set()
            if not release or held.lost is not None:
                return
            try:
                if held.number in self._numbers(held.path):
                    self._step(held.path, held.number + 1, "", held.token, free=True)
                    self._store.delete(_object(held.path, held.number))
            except OSError:
                return  # a waiter takes over after the lease's term

    def _step(self, path: str, number: int, text: str, token: str, *, free: bool = False) -> bool:
        step = {"text": text, "token": token, "id": uuid.uuid4().hex, "free": free, "process": "" if free else _me()}
        return self._store.put_if_absent(_object(path, number), json.dumps(step).encode(), synced=True)

    def _leads(self, path: str, number: int) -> bool:
        """Return whether a number is the newest; delete it if not: older numbers may be free again."""
        if max(self._numbers(path), default=0) == number:
            return True
        self._store.delete(_object(path, number))
        return False

    def _sweep(self, path: str, until: int) -> None:
        for old in self._numbers(path):
            if old <= until:
                self._store.delete(_object(path, old))

    def _numbers(self, path: str) -> list[int]:
        return [int(entry.name) for entry in self._store.entries(path) if entry.name.isdigit()]

    def _newest(self, path: str) -> Step | None:
        while True:
            number = max(self._numbers(path), default=0)
            if not number:
                return None
            try:
                found: Any = json.loads(self._store.read(_object(path, number)))
            except FileNotFoundError:
                continue  # a newer number came
            return Step(number, found["text"], found["token"], found["free"], found["process"])


def _object(path: str, number: int) -> str:
    return f"{path}/{number:020d}"


def _me() -> str:
    """Return this process's identity: machine, its start, process namespace, id and start of the process."""
    return json.dumps([*_machine(), os.getpid(), _started(os.getpid())])


def _machine() -> list[str]:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return [socket.gethostname(), boot, str(Path("/proc/self/ns/pid").readlink())]
    except OSError:
        return []


def _started(pid: int) -> str:
    """Return when a process started; "" if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else fields[19]


def _state(process: str) -> bool | None:
    """Return whether a process of this machine lives; None if it is of another one."""
    if not process:
        return None
    *machine, pid, started = json.loads(process)
    if not machine or machine != _machine():
        return None
    return bool(started) and _started(int(pid)) == started


def _is_dead(process: str) -> bool:
    return _state(process) is False


def _is_alive(process: str) -> bool:
    return _state(process) is True
