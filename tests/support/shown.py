"""A server in its own thread on a free port, and pages of it in Chromium whose console errors fail the test."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import uvicorn

from sqlrun.serve.access import token
from sqlrun.serve.app import application
from sqlrun.serve.live import Watcher
from sqlrun.serve.site import Site
from tests.support import served

SECONDS = 15.0


class Uvicorn(uvicorn.Server):
    """Server in a thread, which gets no signals: it ends event streams itself before it shuts down."""

    async def shutdown(self, sockets: Any = None) -> None:
        self.config.app.stop()  # type: ignore[union-attr]
        await super().shutdown(sockets)


@dataclass
class Server:
    """A running server; `late` is added to the clock that determines the age of ticks."""

    warehouse: Any
    site: Site
    watcher: Watcher
    port: int = 0
    late: timedelta = timedelta()
    thread: threading.Thread | None = None
    running: Uvicorn | None = None

    def start(self) -> None:
        self.site.stopping.clear()
        config = uvicorn.Config(
            application(self.site), host="127.0.0.1", port=self.port, ws="none", log_level="warning",
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        self.running = Uvicorn(config)
        self.thread = threading.Thread(target=self.running.run, daemon=True)
        self.thread.start()
        end = time.monotonic() + SECONDS
        while not self.running.started:
            assert time.monotonic() < end, "the server never started"
            time.sleep(0.01)
        self.port = self.running.servers[0].sockets[0].getsockname()[1]

    def stop(self) -> None:
        assert self.running and self.thread
        self.running.should_exit = True
        self.thread.join(SECONDS)
        assert not self.thread.is_alive()

    def address(
        self, path: str = "/", *owns: str, operator: bool = False, claim: str = "restaurants", **more: str
    ) -> str:
        """Return a page's address, with a token behind its #."""
        values = dict(more)
        if owns or operator:
            values["token"] = token(served.SECRET, {claim: list(owns)}, operator, time.time(), served.VALID)
        return f"http://127.0.0.1:{self.port}{path}#" + "&".join(f"{k}={quote(v)}" for k, v in values.items())


@contextmanager
def server(warehouse: Any, **options: Any) -> Iterator[Server]:
    """Serve a warehouse's ticks, from the current one on."""
    made: Server
    clock = options.pop("clock", None) or (lambda: served.as_of_tick(warehouse.tick) + made.late)
    site, watcher = served.site(warehouse, clock=clock, **options)
    site.hosts = None
    made = Server(warehouse, site, watcher)
    watcher.look()
    watcher.start()
    made.start()
    try:
        yield made
    finally:
        made.stop()
        watcher.stop()


@dataclass
class Pages:
    """Pages of one browser: `complaints` are their log messages, `asked` their requests."""

    chromium: Any
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def open(self, address: str, size: tuple[int, int] = (1280, 800), **options: Any) -> Any:
        context = self.chromium.new_context(viewport={"width": size[0], "height": size[1]}, **LOCALE, **options)
        opened = context.new_page()
        opened.set_default_timeout(1000 * SECONDS)
        opened.on("console", lambda message: self.complaints.append(message.text))
        opened.on("pageerror", lambda error: self.complaints.append(str(error)))
        opened.on("request", lambda request: self.asked.append(request.url))
        opened.on(
            "response", lambda answer: answer.status >= 500 and self.complaints.append(f"{answer.status} {answer.url}")
        )
        opened.goto(address)
        return opened


LOCALE: Mapping[str, str] = {"locale": "en-GB"}


def faults(opened: Any, *, preload: bool = True) -> list[str]:
    """Return axe's findings that are serious or worse, by WCAG 2.2 AA and good practice.

    With `preload` axe reads the page's styles by requests, which a page from disk can't send.
    """
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(opened, options={"preload": preload}).response["violations"]
    return [
        f"{each['id']}: {node['html']} {node['failureSummary']}"
        for each in found
        if each["impact"] in ("serious", "critical", "moderate")
        for node in each["nodes"]
    ]
