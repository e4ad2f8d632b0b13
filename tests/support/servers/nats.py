"""A NATS server with JetStream, built by Go into the user's cache. Shell: processes, files, the network."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from tests.support.servers.go_programs import program
from tests.support.servers.process import Process, free_port, listens

VERSION = "2.15.2"
MODULE = "github.com/nats-io/nats-server/v2"


class Nats:
    """A server with its streams in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        folder.mkdir(parents=True, exist_ok=True)
        command = [
            str(program(MODULE, VERSION)),
            "-js",
            "-a",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-sd",
            str(folder / "streams"),
        ]
        self._process = Process(command, folder / "nats.log")

    @property
    def url(self) -> str:
        """Return the URL that a client is given."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server."""
        self._process.start(lambda: listens(self.port))

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
