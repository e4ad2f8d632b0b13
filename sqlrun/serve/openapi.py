"""The API's OpenAPI 3.1 description, generated from its routes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sqlrun.dashboards.nouns import Dashboard, Ranked
from sqlrun.serve.access import INGEST_ROUTE
from sqlrun.serve.dashboard import known_fields
from sqlrun.source_api import NUMBERS
from sqlrun.version import __version__

if TYPE_CHECKING:
    from sqlrun.serve.route import Route

Schema = dict[str, Any]


def _text(**more: Any) -> Schema:
    return {"type": "string", **more}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _object(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _with(schema: Schema, **fields: Schema) -> Schema:
    """Return an object's schema with fields that an answer may lack."""
    return {**schema, "properties": {**schema["properties"], **fields}}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


TIME = _text(format="date-time")
DECIMAL = _text(pattern=r"^-?[0-9]+(\.[0-9]+)?$", description="An exact decimal.")
COUNT: Schema = {"type": "integer"}
NUMBER: Schema = {"type": ["number", "string", "null"], "description": "A decimal is a text, so that no digit is lost."}
SHARE: Schema = {"type": ["number", "null"], "description": "How much more than before, as a share: 0.25 is +25 %."}
COMPLETE: Schema = {
    "type": "boolean",
    "description": "False if lines of a source are recorded as lost that may belong here.",
}
COMPLETE_TO = _text(
    format="date-time",
    description="When the last transaction of the source's database was committed that the tick has as a whole.",
)
MAYBE: Schema = {"type": ["string", "null"]}
DASHBOARDS = _object(dashboards=_list({"type": "object"}))
ROWS = _with(
    _object(mart=_text(), tick=COUNT, as_of=TIME, rows=_list({"type": "object"}), next=MAYBE), complete_to=COMPLETE_TO
)
NONE_YET: Schema = {"type": ["integer", "null"]}
# What became of lines, by `source_api.NUMBERS`: of one tick, and of all recent ticks.
LINES = _object(
    source=_text(), model=_text(), tick=COUNT, since_tick=COUNT, newest_landed=MAYBE,
    **dict.fromkeys((f"{every}{name}" for every in ("", "all_") for name in NUMBERS), NONE_YET),
)  # fmt: skip
LOSS = _object(
    source=_text(), part=_text(), tick=COUNT, lines=NONE_YET, what=_text(), by=_text(), at=_text(), of_all=COUNT
)
OPERATIONS = _object(rows=_list({"anyOf": [LINES, LOSS, {"type": "object"}]}))
FRESH = _object(
    tick=NONE_YET, as_of=MAYBE, published_at=MAYBE, age_seconds=NONE_YET, stale={"type": "boolean"}
)  # fmt: skip
LOSSES: Schema = {
    "type": "object",
    "additionalProperties": COUNT,
    "description": "For operators: the number of recorded losses that a window may lack lines of, by its hours.",
}
HEALTH: Schema = {
    "type": "object",
    "properties": {
        "status": _text(enum=["ok", "stale", "unavailable"]),
        **FRESH["properties"],
        "problem": MAYBE,
        "losses": LOSSES,
    },
    "required": ["status"],
}
PROBLEM = _object(title=_text(), status=COUNT, detail=_text())
PROBLEMS: Schema = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
REFUSALS = {
    400: "A parameter is unknown or wrong.",
    401: "The token is missing or invalid.",
    403: "The token lacks the scope.",
    404: "Not found, or not visible with this token.",
    405: "Only GET and HEAD are supported.",
    410: "The tick of the cursor is no longer available.",
    413: "The request has a body.",
    414: "The address is too long.",
    421: "The Host header doesn't name this server.",
    429: "Too many requests; Retry-After has the seconds to wait.",
    431: "The headers are too long.",
    503: "No tick is available yet, or the warehouse can't be read.",
}
ACCEPTED = _object(lines=COUNT, file=_text())
INGEST_REFUSALS = {
    400: "The body isn't JSON lines (the detail has the line's number), or a header or the query is wrong.",
    401: "The token is missing, invalid, or not for ingest.",
    404: "No such source, or the token isn't for it.",
    405: "Only POST is supported.",
    413: "The body has too many bytes or lines.",
    414: "The address is too long.",
    415: "The body is compressed, or its Content-Type isn't JSON.",
    421: REFUSALS[421],
    422: "An earlier request with this Idempotency-Key had another body.",
    429: REFUSALS[429],
    431: REFUSALS[431],
    503: "The lines can't be written at the moment; nothing was written.",
    507: "The disk is full; nothing was written.",
}


class Shapes:
    """JSON Schemas of one dashboard's answers."""

    def __init__(self, board: Dashboard) -> None:
        self.board = board
        self.entity = _object(id=_text(), **dict.fromkeys(known_fields(board), MAYBE))

    def entities(self) -> Schema:
        """Return the schema of a page of entities."""
        return _object(tick=COUNT, as_of=TIME, **{self.board.entity.plural: _list(self.entity)}, next=MAYBE)

    def window(self) -> Schema:
        """Return the schema of a window."""
        board = self.board
        fields = {board.entity.name: self.entity, "tick": COUNT, "as_of": TIME, "hours": COUNT, "complete": COMPLETE}
        fields |= {measure.name: NUMBER for measure in board.measures}
        fields |= {ranked.name: _list(_item(ranked)) for ranked in board.lists}
        compared = dict.fromkeys(board.compare if board.trend else (), self.compared())
        return _with(_object(**fields, **compared), complete_to=COMPLETE_TO)

    def compared(self) -> Schema:
        """Return the schema of a comparison."""
        fields = {"from": TIME, "to": TIME, **{measure.name: NUMBER for measure in self.board.trend}}
        return _or_null(_object(**fields, **{f"{measure.name}_change": SHARE for measure in self.board.trend}))

    def trend(self) -> Schema:
        """Return the schema of an entity's hours."""
        fields = {"tick": COUNT, "as_of": TIME, "from": TIME, self.board.entity.name: self.entity}
        lists = {measure.name: _list(NUMBER) for measure in self.board.trend}
        return _object(**fields, hour_at=_list(TIME), **lists)

    def items(self) -> Schema:
        """Return the schema of a ranked list. It omits the items, whose field has the list's name."""
        return _object(**{self.board.entity.name: self.entity}, tick=COUNT, as_of=TIME, hours=COUNT)


def _item(ranked: Ranked) -> Schema:
    fields: Schema = {ranked.item: {"type": ["string", "integer"]}, ranked.value: NUMBER}
    fields |= {ranked.label: MAYBE} if ranked.label else {}
    return _object(**fields | ({ranked.money: NUMBER} if ranked.money else {}))


def description(routes: Iterable[Route], takes_lines: bool = False) -> Mapping[str, Any]:
    """Return the OpenAPI description of routes; each path has one operation, a GET.

    `takes_lines`: it also has the route for lines, a POST.
    """
    paths: Schema = {route.path: {"get": _operation(route)} for route in routes}
    purpose = "Published ticks, read only."
    if takes_lines:
        paths |= {INGEST_ROUTE: {"post": _ingest()}}
        purpose = "Published ticks, read only, and a route that takes lines for sources."
    return {
        "openapi": "3.1.0",
        "info": {"title": "sqlrun serve", "version": __version__, "description": purpose},
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "ingest": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            },
            "schemas": {"Problem": PROBLEM},
        },
    }


def _in_path(path: str) -> list[Schema]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _text(minLength=1, maxLength=200)}
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _ingest() -> Schema:
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "schema": _text(minLength=1, maxLength=255),
        "description": "The same key and body again write nothing, and get the first answer.",
    }
    line: Schema = {"type": "object"}
    accepted = {
        "description": "The lines are durable in a file of the source.",
        "content": {"application/json": {"schema": ACCEPTED}},
    }
    return {
        "operationId": "ingest",
        "summary": "Write JSON lines to a source.",
        "parameters": [*_in_path(INGEST_ROUTE), key],
        "requestBody": {
            "required": True,
            "content": {
                "application/x-ndjson": {"schema": _text()},
                "application/json": {"schema": {"oneOf": [line, _list(line)]}},
            },
        },
        "responses": {
            "202": accepted,
            **{str(status): {"description": text, "content": PROBLEMS} for status, text in INGEST_REFUSALS.items()},
        },
        "security": [{"ingest": []}],
    }


def _operation(route: Route) -> Schema:
    inside = _in_path(route.path)
    asked = [
        {"name": name, "in": "query", "required": False, "schema": kind.schema()}
        for name, kind in route.parameters.items()
    ]
    answers: Schema = {"200": {"description": route.summary, "content": {route.media: {"schema": dict(route.shape)}}}}
    answers["304"] = {"description": "The caller has this tick's answer."}
    answers |= {str(status): {"description": text, "content": PROBLEMS} for status, text in REFUSALS.items()}
    if route.name == "health":
        answers["503"] = {"description": REFUSALS[503], "content": answers["200"]["content"]}
    return {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [*inside, *asked],
        "responses": answers,
        "security": [] if route.public else [{"token": []}],
    }
