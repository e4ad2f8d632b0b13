"""An emulator of a cloud's object store, behind a proxy that adds what it lacks. Shell: processes, files."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.servers.process import Process, free_port, listens

ROOT = Path(__file__).parents[3]


class Emulator(ABC):
    """Two processes: the emulator at `upstream`, and a module's proxy at `port`."""

    def __init__(self, folder: Path, module: str) -> None:
        self.folder, self.upstream, self.port = folder, free_port(), free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self._process = Process(self.command(), folder / "emulator.log")
        # In a process of its own: delta-rs holds Python's lock while it waits for some answers.
        proxy: Sequence[str] = [sys.executable, "-m", module, str(self.upstream), str(self.port)]
        self._proxy = Process(["env", f"PYTHONPATH={ROOT}", *proxy], folder / "proxy.log")

    @abstractmethod
    def command(self) -> list[str]:
        """Return the emulator's command line."""

    @abstractmethod
    def prepare(self) -> None:
        """Create the bucket in the running emulator."""

    @property
    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Return the variables that clients read."""

    def start(self) -> None:
        """Start the emulator, and create the bucket."""
        self._process.start(lambda: listens(self.upstream))
        self._proxy.start(lambda: listens(self.port))
        self.prepare()

    def stop(self) -> None:
        """Stop the emulator."""
        self._proxy.stop()
        self._process.stop()


def shared(name: str, emulator: Callable[[Path], Emulator]) -> None:
    """Start an emulator of this process, with its variables in the environment; none in a process started by one."""
    mark = f"SQLRUN_TEST_{name.upper()}"
    if mark in os.environ:
        return
    folder = Path(tempfile.mkdtemp(prefix=f"sqlrun-{name}-"))
    server = emulator(folder)
    server.start()
    os.environ |= {**server.environment, mark: "1"}
    pid = os.getpid()

    def stop() -> None:
        if os.getpid() == pid:
            server.stop()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
