"""The ASGI application: the gate, the API's routes, the pages. Shell: the clock, error output."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route as Path_

from sqlrun.dashboards.manifest import manifests
from sqlrun.serve.answers import NOT_FOUND, Answer, problem
from sqlrun.serve.gate import CALLER, CHALLENGE, ROUTE, Gate
from sqlrun.serve.parameters import Wrong, read
from sqlrun.serve.route import Route
from sqlrun.serve.routes import routes
from sqlrun.serve.site import Ask, Site
from sqlrun.serve.static import PAGES, Files

KEYS_EVERY = 1.0


def application(site: Site, background: Callable[[], None] = lambda: None) -> Gate:
    """Return the ASGI application. `background` is called once at startup, in the server's loop."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        site.live.listeners.append(lambda: _call(loop, site))
        _notify(site)
        background()
        turning = asyncio.create_task(_turning(site))
        yield
        turning.cancel()
        site.stop()
        if site.intake is not None:
            await site.intake.stop()

    listed: list[Any] = [
        Path_(_pattern(route), _endpoint(site, route), methods=["GET"])
        for route in routes(site.offered, site.intake is not None)
    ]
    files = Files.read(manifests(site.offered.boards))
    pages = {**{f"/{board.api}": PAGES["/"] for board in site.offered.boards}, **PAGES}
    listed += [Path_(path, _file(files, path, name), methods=["GET"]) for path, name in pages.items()]
    listed += [Path_("/static/{name:path}", _file(files, "/static/{name}"), methods=["GET"])]
    handlers: Any = {HTTPException: _refused}
    inner = Starlette(routes=listed, exception_handlers=handlers, lifespan=lifespan)
    inner.router.redirect_slashes = False
    return Gate(site, inner)


def _pattern(route: Route) -> str:
    """Return a route's path in the router's syntax."""
    return route.path.replace(f"{{{route.wide}}}", f"{{{route.wide}:path}}") if route.wide else route.path


async def _turning(site: Site) -> None:
    """Replace the keys when their file changes, which revokes the keys that it no longer lists."""
    while True:
        await asyncio.sleep(KEYS_EVERY)
        if site.keys.refresh():
            site.gatekeeper.use(site.keys.by_id)
            if site.intake is not None:
                site.intake.gatekeeper.use(site.keys.by_id)


def _call(loop: asyncio.AbstractEventLoop, site: Site) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(_notify, site)


def _notify(site: Site) -> None:
    """Notify the listeners of a new tick."""
    if site.live.snapshot is not None:
        site.remember(site.live.snapshot)
    site.wake()


def _endpoint(site: Site, route: Route) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Any:
        scope = request.scope
        scope[ROUTE] = route.path
        caller = scope[CALLER]
        if not route.public and not caller.operator:
            if not caller.id:
                return problem(401, "a token is needed: `Authorization: Bearer TOKEN`", CHALLENGE)
            if route.operator:
                return problem(403, "this is for operators")
        try:
            values = read(scope["query_string"], route.parameters)
            headers = dict(scope["headers"])
            accepts, has = headers.get(b"accept-encoding"), headers.get(b"if-none-match")
            return await route.handle(Ask(site, caller, scope["path_params"], values, site.live.snapshot, accepts, has))
        except Wrong as error:
            return problem(400, str(error))
        except Exception as error:
            return _broken(error)

    return endpoint


def _file(files: Files, route: str, page: str = "") -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Answer:
        request.scope[ROUTE] = route
        headers = dict(request.scope["headers"])
        name = page or request.path_params["name"]
        return files.answer(name, headers.get(b"accept-encoding"), headers.get(b"if-none-match"))

    return endpoint


async def _refused(_: Request, error: Exception) -> Answer:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return NOT_FOUND if status == 404 else problem(status, "this request can't be answered")


def _broken(error: Exception) -> Answer:
    """Log where the server failed, and return an error without that detail."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    sys.stderr.write(f"sqlrun serve: {type(error).__name__} at {where}\n")
    return problem(500, "internal error; see the server's log")


__all__ = ["application"]
