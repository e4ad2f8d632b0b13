"""The queue of one source: requests that arrive together become one file. Shell: threads, the clock.

A source gets a burst of files as fast as the disk allows, and then one file every few moments on average. Requests in
between wait and share the next file. So the number of files is bounded, and the number of requests isn't.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from sqlrun.serve.ingest.writer import Full, Outcome, Request, Unwritable, Writer, wrote

# Files of a source that needn't wait, after a time without any.
BURST = 60
# Maximum size of a group. It becomes one file, which the landing reads in one piece.
MOST_REQUESTS = 5000
MOST_BYTES = 32 * 1024 * 1024


@dataclass(slots=True)
class Pace:
    """A bucket of files: `BURST` at once, and one every `every` seconds on average; 0: without limit."""

    every: float
    left: float = BURST
    since: float = 0.0

    def delay(self, now: float) -> float:
        """Return the seconds until the next file; `now` is monotonic."""
        if not self.every:
            return 0.0
        self.left = min(float(BURST), self.left + (now - self.since) / self.every)
        self.since = now
        return max(0.0, (1 - self.left) * self.every)

    def spend(self) -> None:
        """Count a file."""
        self.left -= 1


class Door:
    """The queue of one source's folder. All methods run in the server's loop."""

    def __init__(self, writer: Writer, threads: Executor, every: float, filed: Callable[[], None]) -> None:
        """`filed` is called for each file."""
        self.writer = writer
        self._threads, self._filed = threads, filed
        self._pace = Pace(every, since=time.monotonic())
        self._queue: deque[tuple[Request, asyncio.Future[Outcome]]] = deque()
        self._some, self._stopping = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def put(self, request: Request) -> Outcome:
        """Return a request's outcome once it is durable. Raises: Full, Unwritable."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._queue.append((request, answer))
        self._some.set()
        return await answer

    def hurry(self) -> None:
        """Write waiting requests at once: the server stops."""
        self._stopping.set()
        self._some.set()

    async def stop(self) -> None:
        """Write waiting requests, and close the folder."""
        self.hurry()
        if self._task is not None:
            await self._task
        await asyncio.get_running_loop().run_in_executor(self._threads, self.writer.close)

    async def _run(self) -> None:
        while True:
            if not self._queue:
                if self._stopping.is_set():
                    return
                self._some.clear()
                await self._some.wait()
                continue
            await self._until_next_file()
            await self._write(self._group())

    async def _until_next_file(self) -> None:
        delay = self._pace.delay(time.monotonic())
        if delay:
            try:
                await asyncio.wait_for(self._stopping.wait(), delay)
            except asyncio.TimeoutError:
                self._pace.delay(time.monotonic())

    def _group(self) -> list[tuple[Request, asyncio.Future[Outcome]]]:
        found, size = [self._queue.popleft()], 0
        while self._queue and len(found) < MOST_REQUESTS and size < MOST_BYTES:
            found.append(self._queue.popleft())
            size += len(found[-1][0].data)
        return found

    async def _write(self, group: list[tuple[Request, asyncio.Future[Outcome]]]) -> None:
        loop, requests = asyncio.get_running_loop(), [request for request, _ in group]
        try:
            outcomes = await loop.run_in_executor(self._threads, self.writer.write, requests)
        except (Full, Unwritable) as error:
            _fail(group, error)
        except Exception as error:  # of any kind: the next group gets its try, and no request waits forever
            _fail(group, Unwritable(f"{self.writer.folder}: {type(error).__name__}"))
        else:
            if wrote(outcomes):
                self._pace.spend()
                self._filed()
            for (_, answer), outcome in zip(group, outcomes, strict=True):
                if not answer.done():
                    answer.set_result(outcome)


def _fail(group: list[tuple[Request, asyncio.Future[Outcome]]], error: Exception) -> None:
    for _, answer in group:
        if not answer.done():
            answer.set_exception(error)
