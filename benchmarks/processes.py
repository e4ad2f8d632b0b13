"""Cost of a process and its children: wall clock, CPU, bytes, memory. Shell: processes, /proc (Linux).

A process starts in its own session, so that a JVM without its parent is still found. Bytes are all that the process
read and wrote through the system, from the disk or its cache: a warm cache favours no contender.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

# Seconds between two scans. A scan takes some milliseconds of CPU: more scans would disturb the measurement.
STEP = 0.1
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Failed(Exception):
    """A contender's process ended with an error; the message is the end of its output."""


@dataclass(slots=True)
class Spent:
    """Cost of a span; memory is the peak of all processes together."""

    seconds: float = 0.0
    cpu: float = 0.0
    read: int = 0
    written: int = 0
    memory: int = 0


@dataclass(slots=True)
class Seen:
    """One process in its last scan."""

    parent: int
    cpu: float
    read: int
    written: int
    memory: int


@dataclass(slots=True)
class Tree:
    """The processes of a session, watched by a thread; an ended process counts with its last scan."""

    session: int
    _alive: dict[int, Seen] = field(default_factory=dict)
    _ended: Seen = field(default_factory=lambda: Seen(0, 0.0, 0, 0, 0))
    _most: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Tree:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(STEP):
            self.look()

    def look(self) -> None:
        """Scan the processes."""
        with self._lock:
            found = processes(self.session)
            for number in self._alive.keys() - found.keys():
                gone = self._alive[number]
                self._ended.cpu += gone.cpu
                # The parent that waits for a child takes over its count of bytes.
                if gone.parent not in found:
                    self._ended.read += gone.read
                    self._ended.written += gone.written
            self._alive = found
            self._most = max(self._most, sum(one.memory for one in found.values()))

    def so_far(self) -> Spent:
        """Return the cost since the start; the peak of memory is reset."""
        self.look()
        with self._lock:
            everyone = [self._ended, *self._alive.values()]
            spent = Spent(0.0, sum(one.cpu for one in everyone), 0, 0, self._most)
            spent.read, spent.written = sum(one.read for one in everyone), sum(one.written for one in everyone)
            self._most = 0
            return spent

    def is_empty(self) -> bool:
        """Return whether all processes have ended."""
        self.look()
        return not self._alive


def processes(session: int) -> dict[int, Seen]:
    """Return all processes of a session."""
    found = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                one = _seen(Path(entry.path), session)
            except (OSError, ValueError, IndexError):  # it has ended meanwhile
                continue
            if one is not None:
                found[int(entry.name)] = one
    return found


def _seen(folder: Path, session: int) -> Seen | None:
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    if int(fields[3]) != session or fields[0] == "Z":
        return None
    counted = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
    cpu = (int(fields[11]) + int(fields[12])) / TICKS
    return Seen(int(fields[1]), cpu, int(counted["rchar"]), int(counted["wchar"]), int(fields[21]) * PAGE)


def less(after: Spent, before: Spent, seconds: float) -> Spent:
    """Return the cost between two counts."""
    cpu, read, written = after.cpu - before.cpu, after.read - before.read, after.written - before.written
    return Spent(seconds, max(cpu, 0.0), max(read, 0), max(written, 0), after.memory)


def command(argv: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float, log: Path) -> Spent:
    """Run a command, end all its children, and return the cost; its output goes to `log`, whose end a failure shows."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    with log.open("ab") as said:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with Tree(process.pid) as tree:
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                end(process.pid, tree, patience=0.0)
                process.wait()
                raise Failed(f"{' '.join(argv)} took more than {limit:.0f} s") from None
            seconds = time.perf_counter() - started
            spent = tree.so_far()
            end(process.pid, tree)
    if code:
        raise Failed(f"{' '.join(argv)} ended with {code}:\n{tail(log)}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # The cost after the last scan is known for children that were waited for.
    waited = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    spent.seconds, spent.cpu = seconds, max(spent.cpu, waited)
    return spent


def end(session: int, tree: Tree, patience: float = 10.0) -> None:
    """Wait for a process's children; stop them after a while."""
    since = time.perf_counter()
    while not tree.is_empty():
        if time.perf_counter() - since > patience:
            for number in processes(session):
                os.kill(number, signal.SIGKILL)
            patience += 5.0
        time.sleep(STEP)


def tail(log: Path, lines: int = 12) -> str:
    """Return the last lines of a file."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


class Resident:
    """A process that stays: it reads requests and writes answers, both JSON, one on each line."""

    def __init__(
        self, argv: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float, log: Path
    ) -> None:
        self._log, self._limit = log, limit
        self._said = log.open("ab")
        self._process = subprocess.Popen(
            argv,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            start_new_session=True,
        )
        self._tree = Tree(self._process.pid)
        self._tree.__enter__()

    def so_far(self) -> Spent:
        """Return the cost since the start."""
        return self._tree.so_far()

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and return its answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        timer = threading.Timer(self._limit, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        answer: dict[str, Any] = json.loads(line) if line else {"error": f"the process ended:\n{tail(self._log)}"}
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def close(self) -> None:
        """Wait for its end; stop it after a while."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        end(self._process.pid, self._tree)
        self._tree.__exit__(None, None, None)
        self._process.stdout.close()
        self._said.close()
