"""The routes of the API: what each takes, who may ask, what it answers. Shell: the tick's files.

A route is declared once; the router, the check of parameters and the OpenAPI description are made from it.
"""

from __future__ import annotations

import bisect
from typing import Any

from anyio import CapacityLimiter, to_thread

from sqlrun.errors import EngineError, SqlrunError
from sqlrun.serve import marts, openapi
from sqlrun.serve.answers import NEVER, NOT_FOUND, Answer, as_json, problem
from sqlrun.serve.dashboard import iso
from sqlrun.serve.events import Events
from sqlrun.serve.offer import Mart, Offer
from sqlrun.serve.parameters import Kind, Number, Text, Wrong
from sqlrun.serve.route import Route
from sqlrun.serve.site import Ask, nothing_yet
from sqlrun.serve.snapshot import Snapshot

LIMIT = Number(100, 1, marts.MOST_ROWS)
CURSOR = Text(most=120)
# Marts are read from files: so many at once, and so many may wait.
READING = 2
MOST_WAITING = 32


async def restaurants(ask: Ask) -> Answer:
    """List the restaurants that the caller may see, by id."""
    snapshot = ask.snapshot
    if snapshot is None or not _has_dashboard(ask):
        return _no_dashboard(ask)
    ids, after, limit = snapshot.ids, ask.values["cursor"], ask.values["limit"]
    if ask.caller.operator:
        first = bisect.bisect_right(ids, after) if after else 0
        rows = list(range(first, min(first + limit + 1, len(ids))))
    else:
        mine = sorted(one for one in ask.caller.owns if one in snapshot.rows and one > after)
        rows = [snapshot.rows[one] for one in mine[: limit + 1]]
    listed = b",".join(snapshot.body("known", row) for row in rows[:limit])
    following = as_json(ids[rows[limit - 1]] if len(rows) > limit else None)
    told = as_json({"tick": snapshot.published.tick, "as_of": iso(snapshot.published.as_of)})[:-1]
    return ask.made(told + b',"restaurants":[' + listed + b'],"next":' + following + b"}", snapshot)


async def windows(ask: Ask) -> Answer:
    """Return one window of one restaurant."""
    snapshot = ask.snapshot
    if snapshot is None or not _has_dashboard(ask):
        return _no_dashboard(ask)
    row = _row(ask, snapshot)
    return NOT_FOUND if row is None else ask.prepared(snapshot, f"window_{ask.values['hours']}", row)


async def hours(ask: Ask) -> Answer:
    """Return the hours of one restaurant."""
    snapshot = ask.snapshot
    if snapshot is None or not _has_dashboard(ask):
        return _no_dashboard(ask)
    row = _row(ask, snapshot)
    return NOT_FOUND if row is None else ask.prepared(snapshot, "hours", row)


def _row(ask: Ask, snapshot: Snapshot) -> int | None:
    """Find a restaurant; both questions are asked whatever the answer to the first, so that they take as long."""
    wanted = ask.path["restaurant"]
    row, allowed = snapshot.rows.get(wanted), ask.caller.may_see(wanted)
    return row if allowed else None


def _has_dashboard(ask: Ask) -> bool:
    return not ask.site.offered.missing


def _no_dashboard(ask: Ask) -> Answer:
    if ask.site.offered.missing:
        missing = ", ".join(ask.site.offered.missing)
        return problem(404, f"this project has no dashboard: no exposure serves {missing}")
    return nothing_yet(ask.site)


_reading = CapacityLimiter(READING)


async def mart(ask: Ask) -> Answer:
    """Return rows of a mart, page by page in one tick."""
    found = ask.site.offered.marts.get(ask.path["mart"])
    if found is None or (not found.owned_by and not ask.caller.operator):
        return NOT_FOUND
    snapshot, offset = ask.snapshot, 0
    if snapshot is None:
        return nothing_yet(ask.site)
    if wrong := [key for key in _keys(ask.site.offered) if ask.values[key] and key not in found.keys]:
        raise Wrong(f"{found.name} can't be asked by `{wrong[0]}`")
    if ask.values["cursor"]:
        mark, offset = marts.position(ask.values["cursor"])
        kept = ask.site.recent.get(mark)
        if kept is None:
            return problem(410, "the tick of this cursor isn't at hand any more; begin anew")
        snapshot = kept
    if _reading.statistics().tasks_waiting >= MOST_WAITING:
        return problem(503, "too many marts are being read; ask again", ((b"retry-after", b"1"),))
    try:
        return await to_thread.run_sync(_page, ask, found, snapshot, offset, limiter=_reading)
    except EngineError:
        return problem(503, "the warehouse can't be read just now", ((b"retry-after", b"5"),))


def _page(ask: Ask, found: Mart, snapshot: Snapshot, offset: int) -> Answer:
    table, limit = snapshot.marts[found.name], ask.values["limit"]
    keys = {key: ask.values[key] for key in found.keys if ask.values.get(key)}
    owns = None if ask.caller.operator else ask.caller.owns
    sql = marts.rows_sql(table, found, owns, keys, offset, limit + 1)
    rows = ask.site.reader.engine.query(sql, (table,))["body"].to_pylist()
    following = marts.cursor(snapshot.mark, offset + limit) if len(rows) > limit else None
    told = {"mart": found.name, "tick": snapshot.published.tick, "as_of": iso(snapshot.published.as_of)}
    head = as_json({**told, "next": following})[:-1]
    return ask.made(head + b',"rows":[' + ",".join(rows[:limit]).encode() + b"]}", snapshot)


async def health(ask: Ask) -> Answer:
    """Return whether there is a tick to show; to who has a token also which, and to operators what is wrong."""
    live, snapshot = ask.site.live, ask.snapshot
    stale = snapshot is not None and live.stale(snapshot)
    told: dict[str, Any] = {"status": "unavailable" if snapshot is None else "stale" if stale else "ok"}
    if ask.caller.id:
        told |= _fresh(ask, snapshot)
    if ask.caller.operator:
        told["problem"] = live.problem or None
        told["keys_problem"] = ask.site.keys.problem or None
    return Answer(503 if snapshot is None else 200, as_json(told), headers=NEVER)


async def freshness(ask: Ask) -> Answer:
    """Return which tick is shown, since when, and how old it is."""
    if ask.snapshot is None:
        return nothing_yet(ask.site)
    return ask.made(as_json(_fresh(ask, ask.snapshot)))


def _fresh(ask: Ask, snapshot: Snapshot | None) -> dict[str, Any]:
    if snapshot is None:
        return {"tick": None, "as_of": None, "published_at": None, "age_seconds": None, "stale": True}
    return {
        "tick": snapshot.published.tick,
        "as_of": iso(snapshot.published.as_of),
        "published_at": iso(snapshot.published_at),
        "age_seconds": ask.site.live.age(snapshot),
        "stale": ask.site.live.stale(snapshot),
    }


async def events(ask: Ask) -> Any:
    """Stream each new tick."""
    return Events.open(ask)


async def operations(ask: Ask) -> Answer:
    """Return what the books say: one of the views of operators."""
    view = ask.path["view"]
    if view not in ask.site.operations.views:
        return NOT_FOUND
    try:
        return ask.made(as_json({"rows": await ask.site.operations.read(view)}))
    except SqlrunError:
        return problem(503, "the books can't be read just now", ((b"retry-after", b"5"),))


async def metrics(ask: Ask) -> Answer:
    """Return the server's own counts."""
    site, snapshot = ask.site, ask.snapshot
    if snapshot is not None:
        site.metrics.tick.set(snapshot.published.tick)
        site.metrics.age.set(site.live.age(snapshot))
    site.metrics.stale.set(snapshot is None or site.live.stale(snapshot))
    site.metrics.listeners.set(len(site.waiting))
    return Answer(200, site.metrics.text(), b"text/plain; version=0.0.4; charset=utf-8")


def _keys(offered: Offer) -> list[str]:
    return sorted({key for found in offered.marts.values() for key in found.keys})


def routes(offered: Offer) -> tuple[Route, ...]:
    """List the routes of a server; those that describe them come last."""
    widths = offered.widths
    keys: dict[str, Kind] = {key: Text() for key in _keys(offered)}
    paged: dict[str, Kind] = {"limit": LIMIT, "cursor": CURSOR}
    width = Number(24 if 24 in widths else widths[0], among=widths)
    one = "/api/v1/restaurants/{restaurant}"
    found = (
        Route(
            "/api/v1/restaurants",
            "restaurants",
            "The restaurants that the token may see.",
            restaurants,
            openapi.RESTAURANTS,
            paged,
        ),
        Route(
            f"{one}/windows",
            "windows",
            "Orders, sales and best dishes of one window.",
            windows,
            openapi.WINDOW,
            {"hours": width},
        ),
        Route(f"{one}/hours", "hours", "Orders and sales, hour by hour, of the last 168 hours.", hours, openapi.TREND),
        Route(
            "/api/v1/marts/{mart}",
            "mart",
            "Rows of a mart that an exposure serves.",
            mart,
            openapi.ROWS,
            {**keys, **paged},
        ),
        Route(
            "/api/v1/health", "health", "Whether a tick is shown; needs no token.", health, openapi.HEALTH, public=True
        ),
        Route("/api/v1/freshness", "freshness", "Which tick is shown, and how old it is.", freshness, openapi.FRESH),
        Route("/api/v1/ticks/events", "events", "One event for each new tick.", events, media="text/event-stream"),
        Route(
            "/api/v1/operator/{view}",
            "operations",
            "Ticks, sources, models, checks or quarantine, as kept beside the ledger; for operators.",
            operations,
            openapi.OPERATIONS,
            operator=True,
        ),
        Route("/metrics", "metrics", "Prometheus metrics; for operators.", metrics, operator=True, media="text/plain"),
    )
    described = as_json(openapi.description(found))

    async def description(ask: Ask) -> Answer:
        return Answer(200, described, headers=((b"cache-control", b"no-cache"),))

    return (
        *found,
        Route("/openapi.json", "openapi", "This description.", description, {"type": "object"}, public=True),
    )
