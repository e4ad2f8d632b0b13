"""The daemon: one thread that forks a process for each command and lends Spark. Shell: sockets, processes.

Libraries are loaded here and never used, so that forks are intact. Each command is its own process, as without a
daemon, and leaves nothing behind when it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import stat
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlrun.daemon import protocol
from sqlrun.daemon.command import Command, die_with
from sqlrun.daemon.compatibility import differing, identity
from sqlrun.daemon.spark import KeptSpark
from sqlrun.runtime import packages
from sqlrun.runtime.stopping import SIGNALS

# None of these modules starts a thread at import: a fork would lose it.
WARM = (
    "sqlrun.cli.main", "sqlrun.commands.build", "sqlrun.run.session", "sqlrun.operations.rollback",
    "sqlrun.operations.maintenance", "sqlrun.commands.ticks", "sqlrun.check.check", "sqlrun.commands.check",
    "sqlrun.unit_tests.command", "sqlrun.unit_tests.run.run", "sqlrun.engines.duckdb.engine", "sqlrun.engines.auto",
    "duckdb", "deltalake", "pyarrow", "pyarrow.dataset", "pyarrow.parquet", "numpy",
    "rich.console", "rich.live",
)  # fmt: skip
CHECKS = ("pandas", "great_expectations.expectations")
ON_SPARK = ("sqlrun.engines.spark.session", "sqlrun.engines.spark.engine", "pyspark.sql", "delta.tables")
# Variables for libraries that would start threads at import.
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


@dataclass(slots=True)
class Job:
    """A running command; `signalled` means that its jobs in Spark may still run."""

    pid: int
    connection: socket.socket
    control: socket.socket
    free: bool = False
    signalled: bool = False


class Server:
    """Waits for commands on a socket until `idle` seconds without one have passed, or until it is stopped."""

    def __init__(
        self,
        listener: socket.socket,
        lock: int,
        root: str,
        idle: float,
        settings: dict[str, str] | None,
        born: dict[str, str],
    ) -> None:
        self.listener, self.root, self.idle = listener, root, idle
        self._lock, self._pid = lock, os.getpid()
        self.spark = KeptSpark(settings, self._forked)
        self.jobs: dict[int, Job] = {}
        self.served, self.stopping = 0, False
        self._used = time.monotonic()
        self._since = time.time()
        self._identity = born
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        for end in (self._woken, self._waker):
            end.setblocking(False)

    def run(self) -> Command | None:
        """Serve clients. Return in a fork the command to run, in the daemon None at its end."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        self._selector.register(self._woken, selectors.EVENT_READ, self._collect_forks)
        self._selector.register(self.listener, selectors.EVENT_READ, self._accept)
        self.spark.start()
        while self.jobs or not (self.stopping or self._is_idle() or self.is_orphan()):
            self._watch_spark()
            for key, _ in self._selector.select(self._patience()):
                command = key.data()
                if command is not None:
                    return command  # type: ignore[no-any-return]
            if self.spark.late():
                self.spark.drop()
        self.spark.drop()
        return None

    def status(self) -> dict[str, Any]:
        """Return the state for `sqlrun up`."""
        idle = max(0.0, self.idle - (time.monotonic() - self._used))
        spark = {"state": self.spark.state, "seconds": self.spark.seconds, "trouble": self.spark.trouble}
        running = sorted(self.jobs)
        return {
            "pid": os.getpid(), "since": self._since, "served": self.served, "running": running, "idle": idle,
            "spark": spark, "stopping": self.stopping,
        }  # fmt: skip

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def _is_idle(self) -> bool:
        return time.monotonic() - self._used > self.idle and self.spark.state != "starting"

    def is_orphan(self) -> bool:
        """Return whether clients can't find this daemon any more: its socket or its project is gone."""
        try:
            path = self.listener.getsockname()
            return not stat.S_ISSOCK(os.lstat(path).st_mode) or protocol.address(self.root) != path
        except OSError:
            return True

    def _patience(self) -> float:
        return max(0.1, min(30.0, self.idle - (time.monotonic() - self._used)))

    def _watch_spark(self) -> None:
        """Listen to the Spark host while it starts Spark."""
        watched = [key for key in self._selector.get_map().values() if key.data == self._handle_spark_host]
        channel = self.spark.channel
        for key in watched:
            if key.fileobj is not channel:
                self._selector.unregister(key.fileobj)
        if channel is not None and not any(key.fileobj is channel for key in watched):
            self._selector.register(channel, selectors.EVENT_READ, self._handle_spark_host)

    def _handle_spark_host(self) -> None:
        if self.spark.channel is not None:
            self._selector.unregister(self.spark.channel)
            self.spark.heard()

    def _collect_forks(self) -> None:
        """Collect ended forks."""
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self._end_job(pid, os.waitstatus_to_exitcode(status))

    def _end_job(self, pid: int, code: int) -> None:
        job = self.jobs.pop(pid, None)
        if job is not None and not job.free:
            self._handle_command(job)  # its last message may have arrived with its end
        self.spark.ended(pid, free=job is not None and job.free and not job.signalled and code >= 0)
        if job is None:
            return
        self.spark.start()
        self._used = time.monotonic()
        for end in (job.connection, job.control):
            self._forget(end)
        with contextlib.suppress(OSError):
            protocol.send(job.connection, {"exit": code} if code >= 0 else {"signal": -code})
        job.connection.close()
        job.control.close()

    def _accept(self) -> Command | None:
        connection, _ = self.listener.accept()
        connection.settimeout(protocol.PATIENCE)
        try:
            protocol.require_same_user(connection)
            message, _ = protocol.receive(connection)
            return self._greet(connection, message)
        except (protocol.WireError, OSError, KeyError, TypeError, ValueError):
            connection.close()  # the client runs its command itself
            return None

    def _greet(self, connection: socket.socket, message: dict[str, Any]) -> Command | None:
        if "hello" not in message:
            if message.get("stop"):
                self.stopping = True
            fits, suits = message.get("identity") == self._identity, self.spark.suits(message.get("settings"))
            protocol.send(connection, {**self.status(), "fits": fits, "suits": suits})
            connection.close()
            return None
        refused = self._refusal(message)
        if refused:
            protocol.send(connection, {"refused": refused, "identity": self._identity})
            connection.close()
            return None
        protocol.send(connection, {"ready": True})
        request, files = protocol.receive(connection, 3)
        try:
            return self._begin(connection, request, files)
        finally:
            if os.getpid() == self._pid:
                for file in files:
                    os.close(file)

    def _refusal(self, message: dict[str, Any]) -> str:
        if message["root"] != self.root:
            return f"it serves {self.root}"
        if (
            differing(message["hello"], self._identity)
            or identity()["sqlrun's code"] != self._identity["sqlrun's code"]
        ):
            return "it was started in another way"
        return "it is about to end" if self.stopping else ""

    def _begin(self, connection: socket.socket, request: dict[str, Any], files: list[int]) -> Command | None:
        if len(files) != 3:
            raise protocol.WireError("three streams belong to a command")
        ours, theirs = socket.socketpair()
        # Signals that arrive before the fork has the command's handlers wait for them.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            pid = self._fork()
        finally:
            if os.getpid() == self._pid:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        if pid == 0:
            ours.close()
            return Command(request, files, theirs, connection)
        theirs.close()
        connection.settimeout(protocol.PATIENCE)
        job = self.jobs[pid] = Job(pid, connection, ours)
        self.served += 1
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._handle_client(job))
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._handle_command(job))
        return None

    def _handle_client(self, job: Job) -> None:
        """Pass signals on to the command; if the client has died, kill the command."""
        if job.pid not in self.jobs:
            return
        try:
            numbers = job.connection.recv(64)
        except OSError:
            numbers = b""
        if not numbers:
            self._forget(job.connection)
            if self.spark.is_lent_to(job.pid):
                self.spark.drop()
            numbers = bytes([signal.SIGKILL])
        job.signalled = True
        for number in numbers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(job.pid, signal.SIGSTOP if number == signal.SIGTSTP else number)

    def _handle_command(self, job: Job) -> None:
        """Handle a command's message: a request for Spark, or its return."""
        try:
            job.control.settimeout(0 if job.pid not in self.jobs else protocol.PATIENCE)
            message, _ = protocol.receive(job.control)
        except (protocol.WireError, OSError):
            self._forget(job.control)
            return
        if message.get("free"):
            job.free = True
        elif "spark" in message:
            self.spark.start()
            self.spark.asked(job.pid, message["spark"], job.control)

    def _forget(self, end: socket.socket) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(end)

    def _forked(self, work: Callable[[], int]) -> int:
        pid = self._fork(dies=False)
        if pid == 0:
            code = 70
            try:
                code = work()
            finally:
                os._exit(code)
        return pid

    def _fork(self, *, dies: bool = True) -> int:
        """Fork; the fork has none of the daemon's sockets, and dies with the daemon."""
        parent = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # allocators' threads, which handle forks
            pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            if dies:
                die_with(parent)
            for each in [key.fileobj for key in self._selector.get_map().values()]:
                each.close()  # type: ignore[union-attr]
            self._selector.close()
            self._waker.close()
            os.close(self._lock)
        return pid


def load(settings: dict[str, str] | None) -> None:
    """Import the modules that commands need, and build all that is safe before a fork."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    checks_alone = bool(packages.missing("gx"))
    if not checks_alone:
        from sqlrun.check import great_expectations

        great_expectations.load()
    on_spark = settings is not None and not packages.missing("spark")
    for module in (*WARM, *(() if checks_alone else CHECKS), *(ON_SPARK if on_spark else ())):
        importlib.import_module(module)
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    gc.collect()
    gc.freeze()


def listening(root: str) -> tuple[socket.socket, int]:
    """Return the project's open socket and its lock, which this process holds until it ends.

    Raises: OSError, WireError; BlockingIOError if another daemon holds the lock.
    """
    path = protocol.address(root)
    folder = Path(path).parent
    folder.mkdir(mode=0o700, exist_ok=True)
    protocol.require_private(str(folder), kind=stat.S_IFDIR)
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    Path(path).unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        made.bind(path)
    finally:
        os.umask(before)
    made.listen(64)
    return made, lock


def main(given: str) -> None:
    """Run the daemon, or a command in one of its forks."""
    task = json.loads(given)
    root, settings = task["root"], json.load(sys.stdin)
    born = identity()  # before libraries set variables
    listener, lock = listening(root)
    load(settings)
    server = Server(listener, lock, root, task["idle"], settings, born)
    print(json.dumps(server.status()), flush=True)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    command = server.run()
    if command is not None:
        command.run()
    if not server.is_orphan():
        Path(listener.getsockname()).unlink()
    sys.exit(0)
