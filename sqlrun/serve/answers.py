"""Answers as bytes: a body, its mark, what of it is packed for whom. Pure."""

from __future__ import annotations

import gzip
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from typing import Any

Headers = tuple[tuple[bytes, bytes], ...]
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
# One network packet holds less; packing it would only cost time.
LEAST_PACKED = 1200
JSON = b"application/json"
PROBLEM = b"application/problem+json"
# What a token's owner is told may be kept by their browser alone, and asked for again each time.
OF_TICK: Headers = ((b"cache-control", b"private, no-cache"), (b"vary", b"authorization, accept-encoding"))
NEVER: Headers = ((b"cache-control", b"no-store"), (b"vary", b"authorization"))


@dataclass(frozen=True, slots=True)
class Answer:
    """One whole answer. It is an ASGI application that says itself."""

    status: int
    body: bytes = b""
    kind: bytes = JSON
    headers: Headers = NEVER

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; without the body for HEAD."""
        length = str(len(self.body)).encode()
        headers = [*self.headers, (b"content-type", self.kind), (b"content-length", length)]
        if self.status == 304:
            headers = [pair for pair in self.headers if pair[0] != b"content-encoding"]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        bare = scope["method"] == "HEAD" or self.status == 304
        await send({"type": "http.response.body", "body": b"" if bare else self.body})


def as_json(value: object) -> bytes:
    """Write a value as JSON; times and decimals as texts."""
    return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":")).encode()


def problem(status: int, detail: str, headers: Headers = ()) -> Answer:
    """Return what is wrong, in the form of RFC 9457."""
    told = {"title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return Answer(status, as_json(told), PROBLEM, (*NEVER, *headers))


# The same bytes for what is another's, what is nobody's and what is no path.
NOT_FOUND = problem(404, "there is nothing here that you may see")


def mark_of(body: bytes) -> str:
    """Return the mark of an answer that depends on who asks: of its own bytes."""
    return sha256(body).hexdigest()[:20]


def matches(asked: bytes | None, tag: bytes) -> bool:
    """Return whether a caller has an answer of this mark already (RFC 9110: weak comparison).

    >>> matches(b'W/"1", "2"', b'W/"2"'), matches(b"*", b'"2"'), matches(None, b'"2"')
    (True, True, False)
    """
    if asked is None:
        return False
    wanted = tag.removeprefix(b"W/")
    return any(one.strip() == b"*" or one.strip().removeprefix(b"W/") == wanted for one in asked.split(b","))


def packing(accepted: bytes | None) -> str:
    """Choose how a caller likes bodies packed: `br`, `gzip` or "" for not at all.

    >>> packing(b"gzip, br"), packing(b"gzip;q=0.5"), packing(b"br;q=0"), packing(None)
    ('br', 'gzip', '', '')
    """
    if not accepted:
        return ""
    wanted = set()
    for one in accepted.lower().split(b","):
        name, _, rest = one.strip().partition(b";")
        if rest.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000"):
            wanted.add(name.strip())
    return "br" if b"br" in wanted else "gzip" if b"gzip" in wanted else ""


def packed(body: bytes, how: str) -> bytes:
    """Pack a body; the same bytes for the same body."""
    if how == "br":
        import brotli

        return bytes(brotli.compress(body, quality=4))
    return gzip.compress(body, 5, mtime=0)
