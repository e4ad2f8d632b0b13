"""HTTP responses: body, ETag and compression. Pure."""

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
# A smaller body fits in one network packet, so compression would cost time and save nothing.
LEAST_PACKED = 1200
JSON = b"application/json"
PROBLEM = b"application/problem+json"
# Only the browser of a token's owner may cache an answer, and it must revalidate it each time.
OF_TICK: Headers = ((b"cache-control", b"private, no-cache"), (b"vary", b"authorization, accept-encoding"))
NEVER: Headers = ((b"cache-control", b"no-store"), (b"vary", b"authorization"))


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete response. It is an ASGI application that sends itself."""

    status: int
    body: bytes = b""
    kind: bytes = JSON
    headers: Headers = NEVER

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; for HEAD and status 304 without a body."""
        length = str(len(self.body)).encode()
        headers = [*self.headers, (b"content-type", self.kind), (b"content-length", length)]
        if self.status == 304:
            headers = [pair for pair in self.headers if pair[0] != b"content-encoding"]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        bare = scope["method"] == "HEAD" or self.status == 304
        await send({"type": "http.response.body", "body": b"" if bare else self.body})


def as_json(value: object) -> bytes:
    """Return a value as JSON; times and decimals become texts."""
    return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":")).encode()


def problem(status: int, detail: str, headers: Headers = ()) -> Answer:
    """Return an error response in the form of RFC 9457."""
    body = {"title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return Answer(status, as_json(body), PROBLEM, (*NEVER, *headers))


# The same bytes for another owner's key, an unknown key and an unknown path, so that a caller can't distinguish them.
NOT_FOUND = problem(404, "not found, or not visible to you")


def mark_of(body: bytes) -> str:
    """Return the ETag of an answer that depends on the caller: a hash of its bytes."""
    return sha256(body).hexdigest()[:20]


def matches(asked: bytes | None, tag: bytes) -> bool:
    """Return whether an `If-None-Match` header has this ETag, by the weak comparison of RFC 9110.

    >>> matches(b'W/"1", "2"', b'W/"2"'), matches(b"*", b'"2"'), matches(None, b'"2"')
    (True, True, False)
    """
    if asked is None:
        return False
    wanted = tag.removeprefix(b"W/")
    return any(one.strip() == b"*" or one.strip().removeprefix(b"W/") == wanted for one in asked.split(b","))


def packing(accepted: bytes | None) -> str:
    """Return the compression for an `Accept-Encoding` header: `br`, `gzip` or "" for none.

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
    """Return the compressed body; the same bytes for the same body."""
    if how == "br":
        import brotli

        return bytes(brotli.compress(body, quality=4))
    return gzip.compress(body, 5, mtime=0)
