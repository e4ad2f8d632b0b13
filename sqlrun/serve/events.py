"""Server-sent events: one for each new tick, until the token expires. Shell: open connections.

An event announces a tick and contains none of its data; listeners then request the data with their token.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass

from sqlrun.serve.answers import Answer, Receive, Scope, Send, as_json, problem
from sqlrun.serve.dashboard import iso
from sqlrun.serve.site import Ask
from sqlrun.serve.snapshot import Snapshot

# Seconds between comments, which prevent proxies from closing a silent stream.
COMMENT_EVERY = 15.0
MOST_STREAMS = 2000
MOST_OF_ONE = 20
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"vary", b"authorization"),
    (b"x-accel-buffering", b"no"),
]


@dataclass(frozen=True, slots=True)
class Events:
    """One open stream. It is an ASGI application that runs until the caller disconnects or the token expires."""

    ask: Ask

    @staticmethod
    def open(ask: Ask) -> Answer | Events:
        """Return a stream, or an error if there are too many."""
        listening = list(ask.site.waiting.values())
        if len(listening) >= MOST_STREAMS:
            return problem(503, "too many streams are open", ((b"retry-after", b"30"),))
        if listening.count(ask.caller.id) >= MOST_OF_ONE:
            return problem(429, "too many streams of one token", ((b"retry-after", b"30"),))
        return Events(ask)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the current tick immediately, then each new one."""
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        news = asyncio.Event()
        self.ask.site.waiting[news] = self.ask.caller.id
        left = asyncio.create_task(_until_left(receive))
        try:
            await self._send_ticks(send, news, left)
        finally:
            self.ask.site.waiting.pop(news, None)
            left.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await left

    async def _send_ticks(self, send: Send, news: asyncio.Event, left: asyncio.Task[None]) -> None:
        site, caller = self.ask.site, self.ask.caller
        sent = ""
        while not left.done() and not site.stopping.is_set() and time.time() < caller.until:
            news.clear()
            snapshot = site.live.snapshot
            body = b": nothing new\n\n"
            if snapshot is not None and snapshot.mark != sent:
                sent, body = snapshot.mark, _event(snapshot)
            await send({"type": "http.response.body", "body": body, "more_body": True})
            woken = asyncio.create_task(news.wait())
            wait = max(0.0, min(COMMENT_EVERY, caller.until - time.time()))
            await asyncio.wait({woken, left}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            woken.cancel()
        if not left.done():
            await send({"type": "http.response.body", "body": b""})


def _event(snapshot: Snapshot) -> bytes:
    data = as_json({"tick": snapshot.published.tick, "as_of": iso(snapshot.published.as_of)})
    return b"event: tick\nid: " + snapshot.mark.encode() + b"\nretry: 2000\ndata: " + data + b"\n\n"


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
