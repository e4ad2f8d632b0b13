"""Checks of every request before its route: size, host, method, token, rate limit. Shell: the clock, the log."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from sqlrun.serve.access import ANYBODY_HERE, INGEST_ROUTE, Caller, Refused
from sqlrun.serve.answers import Answer, Headers, Message, Receive, Scope, Send, problem
from sqlrun.serve.ingest.intake import PREFIX, Ignoring, Intake, Post
from sqlrun.serve.proxies import FORWARDED
from sqlrun.serve.site import Site

LONGEST_TARGET = 4096
LONGEST_HEADERS = 32_768
LOGGED_PATH = 200
SECURITY: Headers = (
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
CALLER = "sqlrun.caller"
ROUTE = "sqlrun.route"
ADDRESS = "sqlrun.address"
CLOSE: Headers = ((b"connection", b"close"),)
CHALLENGE: Headers = ((b"www-authenticate", b"Bearer"),)
ANONYMOUS = Caller("", {})


class Gate:
    """The outermost ASGI application."""

    def __init__(self, site: Site, inner: Any) -> None:
        self.site, self.inner = site, inner
        self._warned = False

    def stop(self) -> None:
        """End the streams of events, before the server waits for open requests."""
        self.site.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reject a request or pass it on; count and log it either way."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        started = time.perf_counter()
        status, length = 500, 0

        async def sending(message: Message) -> None:
            nonlocal status, length
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *SECURITY]
            else:
                length += len(message.get("body", b""))
            await send(message)

        try:
            await (self._refusal(scope) or self.inner)(scope, receive, sending)
        finally:
            self._note(scope, status, length, time.perf_counter() - started)

    def _refusal(self, scope: Scope) -> Answer | Post | Ignoring | None:
        """Return the answer that rejects a request, or None; an unexpected error counts as a bad request."""
        try:
            return self.refusal(scope)
        except Exception as error:
            sys.stderr.write(f"sqlrun serve: {type(error).__name__} in the gate\n")
            return problem(400, "this request can't be read", CLOSE)

    def refusal(self, scope: Scope) -> Answer | Post | Ignoring | None:
        """Return what answers a request before the routes; None if it may pass. Set the caller and address in `scope`.

        It is an answer that rejects the request, or the door for lines.
        """
        headers = scope["headers"]
        if len(scope["raw_path"]) + len(scope["query_string"]) > LONGEST_TARGET:
            return problem(414, "the address is too long", CLOSE)
        if sum(len(name) + len(value) for name, value in headers) > LONGEST_HEADERS:
            return problem(431, "the headers are too long", CLOSE)
        given: dict[bytes, bytes] = dict(headers)
        if self.site.hosts is not None and _host(given.get(b"host", b"")) not in self.site.hosts:
            return problem(421, "the Host header doesn't name this server; `--allow-host` adds a name", CLOSE)
        intake = self.site.intake
        if intake is not None and scope["path"].startswith(PREFIX):
            return self._ingest(scope, given, intake)
        if scope["method"] not in ("GET", "HEAD"):
            return problem(405, "only GET and HEAD are supported", ((b"allow", b"GET, HEAD"), *CLOSE))
        if given.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in given:
            return problem(413, "a request must not have a body", CLOSE)
        address = scope[ADDRESS] = self._address(scope, given)
        try:
            scope[CALLER] = self._caller(given.get(b"authorization"))
        except Refused as error:
            return self._limited(address) or problem(401, str(error), CHALLENGE)
        # Pages and their files have no limit: they are in memory, and all users behind a proxy may load them at once.
        is_page = scope["path"] in self.site.pages or scope["path"].startswith("/static/")
        return None if is_page else self._limited(scope[CALLER].id or address)

    def _ingest(self, scope: Scope, given: Mapping[bytes, bytes], intake: Intake) -> Answer | Post | Ignoring:
        """Return what answers a request that sends lines. Cookies are no token, and no answer allows another origin."""
        scope[ROUTE], address = INGEST_ROUTE, self._address(scope, given)
        scope[ADDRESS] = address
        try:
            caller = intake.caller(given.get(b"authorization"), time.time())
        except Refused as error:
            return self._limited(address) or intake.refused(error)
        if caller is None and (limited := self._limited(address)):
            return limited
        scope[CALLER] = caller or ANONYMOUS
        return intake.check(scope, caller)

    def _address(self, scope: Scope, given: Mapping[bytes, bytes]) -> str:
        """Return the address of a request's caller; warn once about an undeclared proxy."""
        peer = str((scope.get("client") or ("",))[0])
        if FORWARDED in given and not self.site.proxies.trusts(peer) and not self._warned:
            self._warned = True
            sys.stderr.write(
                f"sqlrun serve: {peer} sends X-Forwarded-For. If it is your proxy, `--trusted-proxy {peer}` "
                "distinguishes its callers. Without it, callers without a token share one limit.\n"
            )
        return self.site.proxies.address(peer, scope["headers"])

    def _caller(self, header: bytes | None) -> Caller:
        if header is None:
            return ANYBODY_HERE if self.site.open_here else ANONYMOUS
        kind, _, token = header.strip().partition(b" ")
        if kind.lower() != b"bearer" or not token.isascii():
            raise Refused("the token must be given as `Authorization: Bearer TOKEN`")
        return self.site.gatekeeper.caller(token.strip().decode("ascii"), time.time())

    def _limited(self, who: str) -> Answer | None:
        wait = self.site.limits.wait(who, time.monotonic())
        return problem(429, "too many requests", ((b"retry-after", str(wait).encode()),)) if wait else None

    def _note(self, scope: Scope, status: int, length: int, seconds: float) -> None:
        route = scope.get(ROUTE, "")
        self.site.metrics.answered(route, status, seconds)
        caller = scope.get(CALLER, ANONYMOUS)
        self.site.log(
            {
                "at": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
                "method": scope["method"],
                # Without the query, which may contain a caller's input.
                "path": scope["path"][:LOGGED_PATH],
                "status": status,
                "bytes": length,
                "ms": round(seconds * 1000, 2),
                "caller": caller.id or None,
                "address": scope.get(ADDRESS) or (scope.get("client") or (None,))[0],
            }
        )


def _host(header: bytes) -> str:
    """Return the name in a Host header, without its port.

    >>> _host(b"localhost:8000"), _host(b"[::1]:80"), _host(b"Example.com")
    ('localhost', '[::1]', 'example.com')
    """
    text = header.decode("latin-1").strip().lower()
    if text.startswith("["):
        return text.partition("]")[0] + "]"
    return text.partition(":")[0]
