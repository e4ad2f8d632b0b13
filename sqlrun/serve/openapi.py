"""The API's description in OpenAPI 3.1, written from its routes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

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


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


TIME = _text(format="date-time")
MONEY = _text(pattern=r"^-?[0-9]+(\.[0-9]+)?$", description="An exact decimal, in the restaurant's currency.")
COUNT: Schema = {"type": "integer"}
SHARE: Schema = {"type": ["number", "null"], "description": "How much more than before, as a share: 0.25 is +25 %."}
MAYBE: Schema = {"type": ["string", "null"]}
RESTAURANT = _object(id=_text(), name=MAYBE, city=MAYBE, currency=MAYBE, time_zone=MAYBE)
COMPARED = _or_null(
    _object(
        **{"from": TIME}, to=TIME, n_orders=COUNT, total_sales=MONEY, n_orders_change=SHARE, total_sales_change=SHARE
    )
)
DISH = _object(dish_rank=COUNT, dish_id=_text(), dish_name=MAYBE, quantity=COUNT)
WINDOW = _object(
    restaurant=RESTAURANT, tick=COUNT, as_of=TIME, hours=COUNT, n_orders=COUNT, total_sales=MONEY,
    top_dishes=_list(DISH), before=COMPARED, last_week=COMPARED,
)  # fmt: skip
TREND = _object(
    **{"from": TIME}, restaurant=RESTAURANT, tick=COUNT, as_of=TIME,
    hour_at=_list(TIME), n_orders=_list(COUNT), total_sales=_list(MONEY),
)  # fmt: skip
RESTAURANTS = _object(tick=COUNT, as_of=TIME, restaurants=_list(RESTAURANT), next=MAYBE)
ROWS = _object(mart=_text(), tick=COUNT, as_of=TIME, rows=_list({"type": "object"}), next=MAYBE)
OPERATIONS = _object(rows=_list({"type": "object"}))
NONE_YET: Schema = {"type": ["integer", "null"]}
FRESH = _object(
    tick=NONE_YET, as_of=MAYBE, published_at=MAYBE, age_seconds=NONE_YET, stale={"type": "boolean"}
)  # fmt: skip
HEALTH: Schema = {
    "type": "object",
    "properties": {"status": _text(enum=["ok", "stale", "unavailable"]), **FRESH["properties"], "problem": MAYBE},
    "required": ["status"],
}
PROBLEM = _object(title=_text(), status=COUNT, detail=_text())
REFUSALS = {
    400: "A parameter is unknown or wrong.",
    401: "There is no token, or it isn't believed.",
    403: "The token lacks the scope.",
    404: "There is nothing here that the token may see.",
    405: "Only GET and HEAD are answered.",
    410: "The tick of the cursor isn't at hand any more.",
    413: "A body was sent.",
    414: "The address is too long.",
    421: "The host isn't one of this server's.",
    429: "Too many requests; Retry-After tells when to come again.",
    431: "The headers are too long.",
    503: "No tick can be shown yet, or the warehouse is away.",
}


def description(routes: Iterable[Route]) -> Mapping[str, Any]:
    """Describe routes; each path has one operation, a GET."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "sqlrun serve", "version": __version__, "description": "Published ticks, read only."},
        "paths": {route.path: {"get": _operation(route)} for route in routes},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
            "schemas": {"Problem": PROBLEM},
        },
    }


def _operation(route: Route) -> Schema:
    inside = [
        {"name": name, "in": "path", "required": True, "schema": _text(minLength=1, maxLength=200)}
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]
    asked = [
        {"name": name, "in": "query", "required": False, "schema": kind.schema()}
        for name, kind in route.parameters.items()
    ]
    told = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    answers: Schema = {"200": {"description": route.summary, "content": {route.media: {"schema": dict(route.shape)}}}}
    answers["304"] = {"description": "The caller has this tick's answer."}
    answers |= {str(status): {"description": text, "content": told} for status, text in REFUSALS.items()}
    if route.name == "health":
        answers["503"] = {"description": REFUSALS[503], "content": answers["200"]["content"]}
    return {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [*inside, *asked],
        "responses": answers,
        "security": [] if route.public else [{"token": []}],
    }
