"""The declaration of an API route, for the router, validation of parameters and OpenAPI. Pure."""

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
    """One path. `public`: no token is needed. `operator`: the token needs the scope `operator`.

    `shape` is the JSON Schema of the answer. `wide` is the path parameter that may contain slashes, as keys do.
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
