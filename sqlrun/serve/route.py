"""A route of the API as it is declared: the router, the check of parameters and OpenAPI read it. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlrun.serve.parameters import Kind

if TYPE_CHECKING:
    from sqlrun.serve.site import Ask

Handler = Callable[["Ask"], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Route:
    """One path. `public` needs no token; `operator` needs the scope. `shape` is the answer as JSON Schema.

    `wide` names the part of the path that may hold slashes, as keys do.
    """

    path: str
    name: str
    summary: str
    handle: Handler
    shape: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Kind] = field(default_factory=dict)
    public: bool = False
    operator: bool = False
    media: str = "application/json"
    wide: str = ""
