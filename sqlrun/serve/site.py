"""The state of a server: shown tick, keys, limits, metrics; and requests to it. Shell: the tick's files."""

from __future__ import annotations

import asyncio
import functools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlrun.runtime.rate_limits import Limits
from sqlrun.serve.access import Caller, Gatekeeper
from sqlrun.serve.answers import (
    LEAST_PACKED,
    NEVER,
    OF_TICK,
    Answer,
    Headers,
    mark_of,
    matches,
    packed,
    packing,
    problem,
)
from sqlrun.serve.ingest.intake import Intake
from sqlrun.serve.keys import Keys
from sqlrun.serve.live import Live
from sqlrun.serve.metrics import Metrics
from sqlrun.serve.offer import Offer
from sqlrun.serve.operator import Operations
from sqlrun.serve.proxies import Proxies
from sqlrun.serve.snapshot import Board, Reader, Snapshot
from sqlrun.serve.static import PAGES

# Number of recent ticks that cursors of marts can continue in.
KEPT_TICKS = 4


@dataclass
class Site:
    """One server.

    `proxies` are trusted to report callers' addresses. `hosts` are the valid names in Host headers; None: any.
    `intake` takes lines for sources; None without `--ingest`. `waiting` has the caller of each open stream of events.
    `recent` are the snapshots that cursors refer to, by mark.
    """

    live: Live
    offered: Offer
    reader: Reader
    keys: Keys
    gatekeeper: Gatekeeper
    limits: Limits
    metrics: Metrics
    hosts: frozenset[str] | None
    log: Callable[[Mapping[str, Any]], None]
    operations: Operations
    intake: Intake | None = None
    proxies: Proxies = field(default_factory=Proxies)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: dict[asyncio.Event, str] = field(default_factory=dict)
    recent: OrderedDict[str, Snapshot] = field(default_factory=OrderedDict)

    @functools.cached_property
    def pages(self) -> frozenset[str]:
        """Return the addresses of the pages."""
        return frozenset((*PAGES, *(f"/{board.api}" for board in self.offered.boards)))

    @property
    def open_here(self) -> bool:
        """Return whether every caller is an operator: there is no key, which only loopback allows."""
        return not self.keys.by_id

    def wake(self) -> None:
        """Wake up the listeners to events. Call it in the loop's thread."""
        for waiting in list(self.waiting):
            waiting.set()

    def stop(self) -> None:
        """End all streams of events, and let no request wait longer than needed. Call it in the loop's thread."""
        self.stopping.set()
        self.wake()
        if self.intake is not None:
            self.intake.hurry()

    def remember(self, snapshot: Snapshot) -> None:
        """Retain a tick for the cursors that refer to it."""
        # Only its marts: dashboards always answer from the newest tick.
        self.recent[snapshot.mark] = replace(snapshot, boards={})
        while len(self.recent) > KEPT_TICKS:
            self.recent.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to a route. `snapshot` is read once, so that all of an answer comes from one tick.

    `accepts` is the `Accept-Encoding` header, `has` the `If-None-Match` header.
    """

    site: Site
    caller: Caller
    path: Mapping[str, str]
    values: Mapping[str, Any]
    snapshot: Snapshot | None
    accepts: bytes | None
    has: bytes | None

    def of_tick(self, snapshot: Snapshot) -> Headers:
        """Return the headers with an answer's tick and its age."""
        live = self.site.live
        return (
            *OF_TICK,
            (b"sqlrun-tick", str(snapshot.published.tick).encode()),
            (b"sqlrun-as-of", snapshot.published.as_of.isoformat().encode()),
            (b"sqlrun-age", str(live.age(snapshot)).encode()),
            (b"sqlrun-stale", b"true" if live.stale(snapshot) else b"false"),
        )

    def prepared(self, snapshot: Snapshot, board: Board, column: str, row: int) -> Answer:
        """Return a prepared answer of a tick, in a compression that the caller accepts; compress it once."""
        tag = f'W/"{snapshot.mark}"'.encode()
        headers = (*self.of_tick(snapshot), (b"etag", tag))
        if matches(self.has, tag):
            return Answer(304, headers=headers)
        how = packing(self.accepts)
        body = board.packed.get((column, row, how)) if how else None
        if body is None:
            plain = board.trend(row) if column == "hours" else board.body(column, row)
            if not how or len(plain) < LEAST_PACKED:
                return Answer(200, plain, headers=headers)
            body = board.packed[(column, row, how)] = packed(plain, how)
        return Answer(200, body, headers=(*headers, (b"content-encoding", how.encode())))

    def made(self, body: bytes, snapshot: Snapshot | None = None) -> Answer:
        """Return an answer with a body that depends on the caller; without a snapshot it isn't cacheable."""
        if snapshot is None:
            return Answer(200, body, headers=NEVER)
        tag = f'W/"{mark_of(body)}"'.encode()
        headers = (*self.of_tick(snapshot), (b"etag", tag))
        if matches(self.has, tag):
            return Answer(304, headers=headers)
        how = packing(self.accepts)
        if how and len(body) >= LEAST_PACKED:
            return Answer(200, packed(body, how), headers=(*headers, (b"content-encoding", how.encode())))
        return Answer(200, body, headers=headers)


def nothing_yet(site: Site) -> Answer:
    """Return the answer for a server without a tick: none is published yet, or none could be read."""
    why = "no tick could be read yet" if site.live.problem else "no tick is published yet; run `sqlrun build`"
    return problem(503, why, ((b"retry-after", b"5"),))
