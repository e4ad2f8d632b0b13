"""The routes of marts, ticks and operators: parameters, permissions and answers. Shell: the tick's files.

Each route has one declaration, for the router, validation of parameters and the OpenAPI description. Routes of
dashboards are in `board_routes.py`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from sqlrun.errors import SqlrunError
from sqlrun.publish.table_state import committed_until
from sqlrun.serve import board_routes, marts, openapi
from sqlrun.serve.answers import NEVER, NOT_FOUND, Answer, as_json, problem
from sqlrun.serve.dashboard import iso
from sqlrun.serve.events import Events
from sqlrun.serve.offer import Mart, Offer
from sqlrun.serve.parameters import Kind, Number, Text, Wrong
from sqlrun.serve.reading import read_files
from sqlrun.serve.route import Route
from sqlrun.serve.site import Ask, nothing_yet
from sqlrun.serve.snapshot import Snapshot

LIMIT = Number(100, 1, marts.MOST_ROWS)
CURSOR = Text(most=120)


async def mart(ask: Ask) -> Answer:
    """Return a page of a mart's rows; all pages come from the tick of the first one."""
    found = ask.site.offered.marts.get(ask.path["mart"])
    if found is None or (not found.owned_by and not ask.caller.operator):
        return NOT_FOUND
    snapshot, offset = ask.snapshot, 0
    if snapshot is None:
        return nothing_yet(ask.site)
    if wrong := [key for key in _keys(ask.site.offered) if ask.values[key] and key not in found.keys]:
        raise Wrong(f"{found.name} can't be filtered by `{wrong[0]}`")
    if ask.values["cursor"]:
        mark, offset = marts.position(ask.values["cursor"])
        kept = ask.site.recent.get(mark)
        if kept is None:
            return problem(410, "the tick of this cursor is no longer available; start again without a cursor")
        snapshot = kept
    return await read_files(_page, ask, found, snapshot, offset)


def _page(ask: Ask, found: Mart, snapshot: Snapshot, offset: int) -> Answer:
    table, limit = snapshot.marts[found.name], ask.values["limit"]
    keys = {key: ask.values[key] for key in found.keys if ask.values.get(key)}
    owns = None if ask.caller.operator else ask.caller.owned(found.claim)
    sql = marts.rows_sql(table, found, owns, keys, offset, limit + 1)
    rows = ask.site.reader.engine.query(sql, (table,))["body"].to_pylist()
    following = marts.cursor(snapshot.mark, offset + limit) if len(rows) > limit else None
    facts = {"mart": found.name, "tick": snapshot.published.tick, "as_of": iso(snapshot.published.as_of)}
    if (until := committed_until(snapshot.published.tables, [found.name])) is not None:
        facts["complete_to"] = iso(until)
    head = as_json({**facts, "next": following})[:-1]
    return ask.made(head + b',"rows":[' + ",".join(rows[:limit]).encode() + b"]}", snapshot)


async def health(ask: Ask) -> Answer:
    """Return whether there is a tick to show; with a token also its freshness, and for operators the problems."""
    live, snapshot = ask.site.live, ask.snapshot
    stale = snapshot is not None and live.stale(snapshot)
    body: dict[str, Any] = {"status": "unavailable" if snapshot is None else "stale" if stale else "ok"}
    if ask.caller.id:
        body |= _fresh(ask, snapshot)
    if ask.caller.operator:
        body["problem"] = live.problem or None
        body["keys_problem"] = ask.site.keys.problem or None
        body["losses"] = {} if snapshot is None else {str(hours): n for hours, n in snapshot.losses.items()}
    return Answer(503 if snapshot is None else 200, as_json(body), headers=NEVER)


async def freshness(ask: Ask) -> Answer:
    """Return the shown tick, the time of its publishing, and its age."""
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
    """Return a stream of events, one for each new tick."""
    return Events.open(ask)


async def operations(ask: Ask) -> Answer:
    """Return one of the operators' views."""
    view = ask.path["view"]
    if view not in ask.site.operations.views:
        return NOT_FOUND
    try:
        return ask.made(as_json({"rows": await ask.site.operations.read(view)}))
    except SqlrunError:
        return problem(503, "the system tables can't be read at the moment", ((b"retry-after", b"5"),))


async def metrics(ask: Ask) -> Answer:
    """Return the server's metrics."""
    site, snapshot = ask.site, ask.snapshot
    if snapshot is not None:
        site.metrics.tick.set(snapshot.published.tick)
        site.metrics.age.set(site.live.age(snapshot))
    site.metrics.stale.set(snapshot is None or site.live.stale(snapshot))
    site.metrics.listeners.set(len(site.waiting))
    # The other metrics don't depend on the warehouse's files, and are answered without them.
    with suppress(SqlrunError):
        site.metrics.accounted(await site.operations.counted())
    return Answer(200, site.metrics.text(), b"text/plain; version=0.0.4; charset=utf-8")


def _keys(offered: Offer) -> list[str]:
    return sorted({key for found in offered.marts.values() for key in found.keys})


def routes(offered: Offer, takes_lines: bool = False) -> tuple[Route, ...]:
    """Return the routes of a server that answer GET; the last one is the OpenAPI description.

    `takes_lines`: the description has the route for lines too, which `ingest/intake.py` answers.
    """
    keys: dict[str, Kind] = {key: Text() for key in _keys(offered)}
    paged: dict[str, Kind] = {"limit": LIMIT, "cursor": CURSOR}
    found = (
        board_routes.listing(offered.boards),
        *(route for board in offered.boards for route in board_routes.routes(board)),
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
            "Ticks, sources, lines, losses, models, checks or quarantine, from the system tables; for operators.",
            operations,
            openapi.OPERATIONS,
            operator=True,
        ),
        Route("/metrics", "metrics", "Prometheus metrics; for operators.", metrics, operator=True, media="text/plain"),
    )
    described = as_json(openapi.description(found, takes_lines))

    async def description(ask: Ask) -> Answer:
        return Answer(200, described, headers=((b"cache-control", b"no-cache"),))

    return (
        *found,
        Route("/openapi.json", "openapi", "This description.", description, {"type": "object"}, public=True),
    )
