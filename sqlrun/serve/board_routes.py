"""The routes of declared dashboards: entities, windows, hours, lists, declarations. Shell: the tick's files."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from functools import partial
from typing import Any

from sqlrun.dashboards.names import in_english
from sqlrun.dashboards.nouns import Dashboard, Measure, Ranked
from sqlrun.serve import dashboard, openapi
from sqlrun.serve.answers import NOT_FOUND, Answer, as_json
from sqlrun.serve.dashboard import iso
from sqlrun.serve.parameters import Kind, Number, Text
from sqlrun.serve.reading import read_files
from sqlrun.serve.route import Route
from sqlrun.serve.site import Ask, nothing_yet
from sqlrun.serve.snapshot import Board, Snapshot

MOST_ENTITIES = 1000
# Maximum number of characters in a key; a cursor is a key too.
LONGEST_KEY = 1000


async def entities(board: Dashboard, ask: Ask) -> Answer:
    """Return a page of the entities that the caller may see, in the order of their keys."""
    if ask.snapshot is None:
        return nothing_yet(ask.site)
    snapshot, held = ask.snapshot, ask.snapshot.boards[board.api]
    ids, after, limit = held.ids, ask.values["cursor"], ask.values["limit"]
    if ask.caller.operator:
        first = bisect.bisect_right(ids, after) if after else 0
        rows = list(range(first, min(first + limit + 1, len(ids))))
    else:
        mine = sorted(one for one in ask.caller.owned(board.entity.plural) if one in held.rows and one > after)
        rows = [held.rows[one] for one in mine[: limit + 1]]
    listed = b",".join(held.body("known", row) for row in rows[:limit])
    following = as_json(ids[rows[limit - 1]] if len(rows) > limit else None)
    head = as_json({"tick": snapshot.published.tick, "as_of": iso(snapshot.published.as_of)})[:-1]
    name = board.entity.plural.encode()
    return ask.made(head + b',"' + name + b'":[' + listed + b'],"next":' + following + b"}", snapshot)


async def windows(board: Dashboard, ask: Ask) -> Answer:
    """Return one window of one entity."""
    if ask.snapshot is None:
        return nothing_yet(ask.site)
    held = ask.snapshot.boards[board.api]
    row = _row(ask, held)
    return NOT_FOUND if row is None else ask.prepared(ask.snapshot, held, f"window_{ask.values['hours']}", row)


async def hours(board: Dashboard, ask: Ask) -> Answer:
    """Return the hours of one entity."""
    if ask.snapshot is None:
        return nothing_yet(ask.site)
    held = ask.snapshot.boards[board.api]
    row = _row(ask, held)
    return NOT_FOUND if row is None else ask.prepared(ask.snapshot, held, "hours", row)


async def items(board: Dashboard, ask: Ask) -> Answer:
    """Return all items of an entity's ranked list, computed on demand."""
    if ask.snapshot is None:
        return nothing_yet(ask.site)
    held = ask.snapshot.boards[board.api]
    ranked = next((r for r in board.lists if r.everything and r.name == ask.path["list"]), None)
    row = _row(ask, held)
    if row is None or ranked is None or ranked.everything is None:
        return NOT_FOUND
    needed = {ranked.everything.slots.table, *([ranked.everything.names] if ranked.everything.names else [])}
    if not needed <= held.tables.keys():
        return NOT_FOUND
    return await read_files(_items, ask, ask.snapshot, held, ranked, row)


def _items(ask: Ask, snapshot: Snapshot, held: Board, ranked: Ranked, row: int) -> Answer:
    board, width = held.declared, ask.values["hours"]
    tables = dashboard.behind(ranked, held.tables, snapshot.published.as_of, width)
    sql = dashboard.items_sql(board, ranked, tables, held.ids[row], snapshot.published.as_of, width)
    found = ask.site.reader.engine.query(sql, tuple(tables.values()))["body"].to_pylist()
    facts = {"tick": snapshot.published.tick, "as_of": iso(snapshot.published.as_of), "hours": width}
    known = b'{"' + board.entity.name.encode() + b'":' + held.body("known", row) + b","
    head = known + as_json(facts)[1:-1] + b"," + as_json(ranked.name) + b":["
    return ask.made(head + ",".join(found).encode() + b"]}", snapshot)


def _row(ask: Ask, held: Board) -> int | None:
    """Return an entity's row; None if it is unknown or the caller may not see it.

    Both lookups always run, so that the time of an answer doesn't reveal which keys exist.
    """
    entity = held.declared.entity
    wanted = ask.path[entity.name]
    row, allowed = held.rows.get(wanted), ask.caller.may_see(entity.plural, wanted)
    return row if allowed else None


def routes(board: Dashboard) -> tuple[Route, ...]:
    """Return the routes of one dashboard."""
    name, api = board.entity.name, board.api
    one = f"/api/v1/{api}/{{{name}}}"
    width = {"hours": Number(board.default_width, among=board.widths)}
    shapes = openapi.Shapes(board)
    paged: dict[str, Kind] = {"limit": Number(100, 1, MOST_ENTITIES), "cursor": Text(most=LONGEST_KEY)}
    labels = in_english(board.title)
    found = [
        Route(f"/api/v1/{api}", api, f"{labels}: whose numbers the token may see.",
              partial(entities, board), shapes.entities(), paged),
        Route(f"{one}/windows", f"{api}_windows", f"{labels}: one window.",
              partial(windows, board), shapes.window(), width, wide=name),
    ]  # fmt: skip
    if board.trend:
        summary = f"{labels}: hour by hour, of the last {dashboard.TREND_HOURS} hours."
        found.append(Route(f"{one}/hours", f"{api}_hours", summary, partial(hours, board), shapes.trend(), wide=name))
    if any(ranked.everything for ranked in board.lists):
        path, summary = f"{one}/lists/{{list}}", f"{labels}: a ranked list, added up on demand."
        found.append(Route(path, f"{api}_lists", summary, partial(items, board), shapes.items(), width, wide=name))
    return tuple(found)


def listing(boards: tuple[Dashboard, ...]) -> Route:
    """Return the route with the dashboards' declarations for pages; it contains no figure and no key."""
    body = as_json({"dashboards": [described(board) for board in boards]})

    async def declared(ask: Ask) -> Answer:
        return Answer(200, body, headers=((b"cache-control", b"no-cache"),))

    summary = "The dashboards: their measures, lists and words; needs no token."
    return Route("/api/v1/dashboards", "dashboards", summary, declared, openapi.DASHBOARDS, public=True)


def described(board: Dashboard) -> Mapping[str, Any]:
    """Return a dashboard's declaration for its page."""
    entity = board.entity
    return {
        "api": board.api,
        "title": dict(board.title),
        "entity": {
            "name": entity.name,
            "plural": entity.plural,
            "noun": dict(entity.noun),
            "place": dashboard.place_key(board) if entity.place else None,
        },
        "windows": board.widths,
        "measures": [_measure(measure) for measure in board.measures],
        "lists": [_ranked(ranked) for ranked in board.lists],
        "compare": board.compare,
    }


def _measure(measure: Measure) -> Mapping[str, Any]:
    return {
        "name": measure.name,
        "label": dict(measure.label),
        "format": measure.format,
        "one": dict(measure.one),
        "many": dict(measure.many),
        "trend": measure.in_trend,
        "compared": measure.in_trend,
        "ratios": [{"value": r.value, "per": r.per, "label": dict(r.label)} for r in measure.ratios],
    }


def _ranked(ranked: Ranked) -> Mapping[str, Any]:
    return {
        "name": ranked.name,
        "title": dict(ranked.title),
        "empty": dict(ranked.empty),
        "item": ranked.item,
        "label": ranked.label or None,
        "value": ranked.value,
        "money": (ranked.everything.money if ranked.everything else ranked.money) or None,
        "all": ranked.everything is not None,
    }
