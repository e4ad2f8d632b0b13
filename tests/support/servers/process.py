"""A server as a process of its own, stopped by its process id. Shell: processes, ports."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

# Ports above are those of outgoing connections: one of them could take a stopped server's port.
PORTS = range(20_000, 32_000)
# Seconds in which a server has to answer, and to end.
LONGEST = 120.0
# The JVM's options for a short life on a busy machine.
SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.net.preferIPv4Stack=true")


class StartError(Exception):
    """The server ended, or didn't answer in time; the message has the end of its output."""


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on."""
    # Not the tests' own seed: parallel workers that draw alike would draw the same ports.
    for port in random.SystemRandom().sample(PORTS, 100):
        with closing(socket.socket()) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise StartError("no free port")


def listens(port: int) -> bool:
    """Return whether a process takes connections at a port of 127.0.0.1."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def tied(command: Sequence[str]) -> list[str]:
    """Return the command as one that dies with this process, where the system can do that."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *command] if setpriv else list(command)


class Process:
    """A process with its output in a file; it can be started again after it ended."""

    def __init__(self, command: Sequence[str], output: Path) -> None:
        self.command = command
        self.output = output
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Return the id of the running process."""
        assert self._running is not None, "the server isn't running"
        return self._running.pid

    @property
    def running(self) -> bool:
        return self._running is not None and self._running.poll() is None

    def start(self, answers: Callable[[], bool]) -> None:
        """Start the process, and return as soon as it answers."""
        assert not self.running, "the server runs already"
        with self.output.open("ab") as output:
            self._running = subprocess.Popen(
                tied(self.command), stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.output.parent
            )
        end = time.monotonic() + LONGEST
        while not answers():
            if self._running.poll() is not None:
                code, self._running = self._running.returncode, None
                raise StartError(f"{self.command[0]} ended with {code}:\n{self.last_output()}")
            if time.monotonic() > end:
                self.kill()
                raise StartError(f"{self.command[0]} didn't answer in {LONGEST:.0f} seconds:\n{self.last_output()}")
            time.sleep(0.02)

    def last_output(self) -> str:
        """Return the end of the process's output."""
        return self.output.read_text(errors="replace")[-4000:]

    def stop(self) -> None:
        """End the process: ask, and kill it if it doesn't end."""
        if self._running is None:
            return
        self._running.terminate()
        # A paused process ends only after it goes on.
        self.resume()
        try:
            self._running.wait(LONGEST / 4)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait(LONGEST)
        self._running = None

    def kill(self) -> None:
        """End the process as `kill -9` does."""
        if self._running is not None:
            self._running.kill()
            self._running.wait(LONGEST)
            self._running = None

    def pause(self) -> None:
        """Suspend the process, and return after each of its threads has stopped."""
        self.send(signal.SIGSTOP)
        end = time.monotonic() + LONGEST
        # The signal waits for a core: until then the process still answers.
        while self.running and not self.paused():
            assert time.monotonic() < end, "the server doesn't stop"
            time.sleep(0.001)

    def resume(self) -> None:
        """Resume the suspended process."""
        self.send(signal.SIGCONT)

    def paused(self) -> bool:
        """Return whether all threads of the process are stopped (`man 5 proc`, field 3 of `stat`)."""
        stats = Path(f"/proc/{self.pid}/task").glob("*/stat")
        try:
            return all(stat.read_text().rpartition(")")[2].split()[0] in "Tt" for stat in stats)
        except OSError:  # a thread that ended meanwhile
            return False

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it still runs."""
        if self.running:
            os.kill(self.pid, number)
