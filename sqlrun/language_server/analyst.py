"""The server's end of the worker: one look or rename at a time, the newest texts next. Shell: processes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sqlrun.language_server import frames
from sqlrun.language_server.findings import Finding
from sqlrun.language_server.index import Index

# A look that takes longer is given up, with its process.
MOST_SECONDS = 120.0
# Time without a further edit before a project is looked at.
QUIET_SECONDS = 0.15

Texts = Callable[[], Mapping[str, str]]
Publish = Callable[[str, tuple[Finding, ...]], None]


class Analyst:
    """Keeps the index of each project; `publish` gets the root and the findings of each look."""

    def __init__(self, publish: Publish, log: Callable[[str], None]) -> None:
        self.indexes: dict[str, Index] = {}
        self._publish, self._log = publish, log
        self._wanted: dict[str, Texts] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._running: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    def want(self, root: str, texts: Texts) -> None:
        """Look at a project soon, with the texts that there are then."""
        self._wanted[root] = texts
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while self._wanted:
            await asyncio.sleep(QUIET_SECONDS)
            root, texts = next(iter(self._wanted.items()))
            del self._wanted[root]
            try:
                async with self._lock:
                    await asyncio.wait_for(self._look(root, texts()), MOST_SECONDS)
            except Exception as error:
                self._log(f"the look at {root} ended: {error!r}")
                self.stop()

    async def rename(
        self, root: str, texts: Mapping[str, str], cursor: tuple[str, int, int], name: str
    ) -> tuple[Mapping[str, list[Any]], str]:
        """Return the edits by file that rename a column, and why there are none, after the look that is running."""
        message = {"do": "rename", "root": root, "texts": dict(texts), "cursor": cursor, "name": name}
        # An editor may cancel its request: the answer is still read, since the next one follows it.
        answer = await asyncio.shield(asyncio.ensure_future(self._asked(message)))
        return answer["edits"], answer["why"]

    async def _asked(self, message: Mapping[str, Any]) -> Any:
        async with self._lock:
            try:
                return await asyncio.wait_for(self._answered(message), MOST_SECONDS)
            except Exception as error:
                self._log(f"the rename in {message['root']} ended: {error!r}")
                self.stop()
                return {"edits": {}, "why": "the process that checks the project has ended. Try again"}

    async def _answered(self, message: Mapping[str, Any]) -> Any:
        await self._send(message)
        return await self._answer()

    async def _send(self, message: Mapping[str, Any]) -> None:
        if self._process is None:
            # The worker is new: it knows of nothing that was sent.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "sqlrun.language_server.worker",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
        assert self._process.stdin is not None
        self._process.stdin.write(frames.packed(message))
        await self._process.stdin.drain()

    async def _answer(self) -> Any:
        assert self._process is not None and self._process.stdout is not None
        head = await self._process.stdout.readexactly(frames.HEAD)
        return json.loads(await self._process.stdout.readexactly(int.from_bytes(head, "big")))

    async def _look(self, root: str, texts: Mapping[str, str]) -> None:
        await self._send({"do": "look", "root": root, "texts": dict(texts)})
        while True:
            message = await self._answer()
            index = self.indexes.get(root, Index())
            if message["do"] == "done":
                findings, templates, origins = frames.heard(message)
                self.indexes[root] = replace(index, templates=templates, origins=origins)
                self._publish(root, findings)
                return
            self.indexes[root] = index.with_nouns(frames.nouns(message["nouns"]), message["gone"])
            await asyncio.sleep(0)  # editors' requests come first

    def stop(self) -> None:
        """End the worker."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
