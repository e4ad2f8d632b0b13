"""A NATS server with JetStream, built by Go into the user's cache. Shell: processes, files, the network."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.servers.jars import LONGEST, cached
from tests.support.servers.process import Process, free_port

VERSION = "2.15.2"
MODULE = f"github.com/nats-io/nats-server/v2@v{VERSION}"


def program() -> Path:
    """Return the server's program, which the first caller builds; a test is skipped where that can't be done."""
    found = cached(f"nats-server-{VERSION}") / "nats-server"
    if found.exists():
        return found
    go = shutil.which("go")
    if go is None:
        pytest.skip("no NATS server, nor Go to build one: `apt-get install golang`")
    found.parent.mkdir(parents=True, exist_ok=True)
    with (found.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            built = found.parent / "built"
            done = subprocess.run(
                [go, "install", MODULE], env={**os.environ, "GOBIN": str(built)}, capture_output=True, text=True,
                timeout=LONGEST, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            if done.returncode:
                pytest.skip(f"the NATS server can't be built: {done.stderr[-300:]}")
            (built / "nats-server").rename(found)
    return found


class Nats:
    """A server with its streams in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        folder.mkdir(parents=True, exist_ok=True)
        command = [str(program()), "-js", "-a", "127.0.0.1", "-p", str(self.port), "-sd", str(folder / "streams")]
        self._process = Process(command, folder / "nats.log")

    @property
    def url(self) -> str:
        """Return the URL that a client is given."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server."""
        self._process.start(self._answers)

    def stop(self) -> None:
        """Stop the server; its streams stay."""
        self._process.stop()

    def publish(self, stream: str, messages: Sequence[bytes]) -> None:
        """Create a stream, if it isn't there, and publish messages to it."""
        asyncio.run(self._publish(stream, messages))

    async def _publish(self, stream: str, messages: Sequence[bytes]) -> None:
        import nats

        client = await nats.connect(self.url)
        await client.jetstream().add_stream(name=stream, subjects=[stream])
        for message in messages:
            await client.jetstream().publish(stream, message)
        await client.close()

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True
