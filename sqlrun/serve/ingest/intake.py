"""The door for JSON lines: `POST /api/v1/ingest/{group}/{name}`, with a token for that source. Shell: the clock, log.

A request is checked without its body first: method, token, rate, source, headers. Only then is the body read.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import assert_never

from sqlrun.runtime.rate_limits import Limits
from sqlrun.serve.access import INGEST_ROUTE, SOURCES, Caller, Gatekeeper, Refused
from sqlrun.serve.answers import NEVER, NOT_FOUND, Answer, Headers, Receive, Scope, Send, as_json, problem
from sqlrun.serve.ingest import lines
from sqlrun.serve.ingest.door import Door
from sqlrun.serve.ingest.writer import Accepted, Conflict, Full, Request, Unwritable
from sqlrun.serve.metrics import Metrics

PREFIX = INGEST_ROUTE.partition("{")[0]
LINES = frozenset((b"application/x-ndjson", b"application/ndjson", b"application/jsonl", b"application/x-jsonlines"))
DOCUMENT = b"application/json"
KEY = re.compile(rb"[\x20-\x7e]{1,255}")
CLOSE: Headers = ((b"connection", b"close"),)
CHALLENGE: Headers = ((b"www-authenticate", b"Bearer"),)
SOON: Headers = ((b"retry-after", b"1"),)
LATER: Headers = ((b"retry-after", b"30"),)
# Bodies in memory, of all requests together: being read, or waiting for their file.
MOST_IN_MEMORY = 128 * 1024 * 1024
# A rejected body is read up to this size, because a caller that still sends wouldn't see the answer.
MOST_IGNORED = 64 * 1024 * 1024
# A body up to this size is parsed at once; a larger one in a thread, so that other requests needn't wait.
PARSED_AT_ONCE = 16 * 1024


class Rejected(Exception):
    """A request that isn't accepted: its answer, and the reason's word for the metrics."""

    def __init__(self, why: str, status: int, detail: str, headers: Headers = ()) -> None:
        self.why, self.answer = why, problem(status, detail, headers)
        super().__init__(why)


@dataclass
class Intake:
    """The sources that take lines, by `group.name`. Sources of one folder share a door."""

    doors: Mapping[str, Door]
    gatekeeper: Gatekeeper
    limits: Limits
    metrics: Metrics
    most_bytes: int
    threads: ThreadPoolExecutor
    in_memory: int = 0
    # One body at a time becomes Python's values, which need many times its size.
    parsing: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "sqlrun-ingest-parse"))
    _last_warning: str = ""

    def check(self, scope: Scope, caller: Caller | None) -> Answer | Post | Ignoring:
        """Return what answers a request of a caller, None for one without a token."""
        try:
            return self._post(scope, caller)
        except Rejected as error:
            return self.rejected(scope, error, read=caller is not None)

    def caller(self, header: bytes | None, now: float) -> Caller | None:
        """Return the caller of an `Authorization` header; None without one. Raises: Refused."""
        if header is None:
            return None
        kind, _, token = header.strip().partition(b" ")
        if kind.lower() != b"bearer" or not token.isascii():
            raise Refused("the token must be given as `Authorization: Bearer TOKEN`")
        return self.gatekeeper.caller(token.strip().decode("ascii"), now)

    def refused(self, error: Refused) -> Answer:
        """Return the answer to an invalid token."""
        self.metrics.refused("token")
        return problem(401, str(error), (*CHALLENGE, *CLOSE))

    def rejected(self, scope: Scope, error: Rejected, *, read: bool) -> Answer | Ignoring:
        """Count a rejection and return its answer; `read`: after the rest of the body."""
        self.metrics.refused(error.why)
        # A sender that asks first gets the answer instead of the permission to send the body.
        asks = any(name == b"expect" for name, _ in scope["headers"])
        closing = Answer(error.answer.status, error.answer.body, error.answer.kind, (*error.answer.headers, *CLOSE))
        return Ignoring(closing) if read and not asks else closing

    def _post(self, scope: Scope, caller: Caller | None) -> Post:
        if scope["method"] != "POST":
            raise Rejected("method", 405, "only POST is supported here", ((b"allow", b"POST"),))
        if caller is None:
            message = "a token for ingest is needed: `Authorization: Bearer TOKEN`"
            raise Rejected("token", 401, message, CHALLENGE)
        if wait := self.limits.wait(caller.id, time.monotonic()):
            raise Rejected("rate", 429, "too many requests", ((b"retry-after", str(wait).encode()),))
        group, _, name = scope["path"].removeprefix(PREFIX).partition("/")
        source = f"{group}.{name}"
        # Both are looked up, so that the time of an answer doesn't reveal which sources exist.
        door, allowed = self.doors.get(source), source in caller.owned(SOURCES)
        if door is None or not allowed:
            raise _Unknown
        if scope["query_string"]:
            raise Rejected("query", 400, "this route takes no parameter")
        given = _headers(scope["headers"])
        if given.get(b"content-encoding", b"identity").lower() != b"identity":
            raise Rejected("encoding", 415, "the body must not be compressed: send it without Content-Encoding")
        if int(given.get(b"content-length", b"0")) > self.most_bytes:
            raise self.too_large()
        return Post(self, door, source, _only_lines(given.get(b"content-type", b"")), _key(given))

    def too_large(self) -> Rejected:
        """Return the rejection of a body that is too large."""
        return Rejected("size", 413, f"the body has more than {self.most_bytes:,} bytes; send several")

    def warn(self, reason: str) -> None:
        """Write to the server's log why lines can't be written, once for each reason."""
        if reason != self._last_warning:
            self._last_warning = reason
            sys.stderr.write(f"sqlrun serve: no lines are accepted: {reason}\n")

    def hurry(self) -> None:
        """Write waiting requests at once: the server stops."""
        for door in self.doors.values():
            door.hurry()

    async def stop(self) -> None:
        """Write waiting requests, and close the folders."""
        for door in {id(door): door for door in self.doors.values()}.values():
            await door.stop()
        self.threads.shutdown()
        self.parsing.shutdown()


class _Unknown(Rejected):
    """A source that doesn't exist, or isn't the token's: the same bytes, also as those of an unknown path."""

    def __init__(self) -> None:
        super().__init__("source", 404, "")
        self.answer = NOT_FOUND


@dataclass(frozen=True, slots=True)
class Ignoring:
    """An answer after a body that is read and ignored. It is an ASGI application."""

    answer: Answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the rest of the body, up to a size, then answer."""
        left = MOST_IGNORED
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if message["type"] != "http.request" or not message.get("more_body"):
                break
        await self.answer(scope, receive, send)


@dataclass(frozen=True, slots=True)
class Post:
    """One accepted head of a request. It is an ASGI application that reads the body and answers."""

    intake: Intake
    door: Door
    source: str
    only_lines: bool
    key: bytes | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read and check the body, write its lines, answer."""
        taken, more = 0, True
        chunks: list[bytes] = []
        try:
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    self.intake.metrics.refused("incomplete")
                    return
                more = bool(message.get("more_body"))
                chunks.append(message.get("body", b""))
                taken += len(chunks[-1])
                self.intake.in_memory += len(chunks[-1])
                if taken > self.intake.most_bytes:
                    raise self.intake.too_large()
                if self.intake.in_memory > MOST_IN_MEMORY:
                    raise Rejected("busy", 503, "too many bodies are waiting; try again", SOON)
            body = b"".join(chunks)
            chunks.clear()
            answer: Answer | Ignoring = await self._answer(body)
        except Rejected as error:
            chunks.clear()
            answer = self.intake.rejected(scope, error, read=more)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            sys.stderr.write(f"sqlrun serve: {type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}\n")
            answer = problem(500, "internal error; see the server's log", CLOSE)
        finally:
            self.intake.in_memory -= taken
        await answer(scope, receive, send)

    async def _answer(self, body: bytes) -> Answer:
        found = await self._parsed(body)
        request = Request(found.data, found.count, sha256(body).digest(), self.key)
        metrics = self.intake.metrics
        try:
            outcome = await self.door.put(request)
        except Full:
            self.intake.warn(f"the disk of {self.door.writer.folder} is full")
            raise Rejected("full", 507, "the server's disk is full; nothing was written", LATER) from None
        except Unwritable as error:
            self.intake.warn(str(error))
            raise Rejected("unwritable", 503, "the lines can't be written at the moment", LATER) from None
        match outcome:
            case Conflict():
                raise Rejected("key", 422, "an earlier request with this Idempotency-Key had another body")
            case Accepted(count, file, again):
                metrics.accepted(self.source, count, len(found.data), again=again)
                headers = ((b"idempotent-replayed", b"true"),) if again else ()
                return Answer(202, as_json({"lines": count, "file": file}), headers=(*NEVER, *headers))
            case _:
                assert_never(outcome)

    async def _parsed(self, body: bytes) -> lines.Lines:
        try:
            if len(body) <= PARSED_AT_ONCE:
                return lines.read(body, only_lines=self.only_lines)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self.intake.parsing, lambda: lines.read(body, only_lines=self.only_lines))
        except lines.Wrong as error:
            raise Rejected("lines", 400, f"{error}. Nothing was written") from None
        except lines.TooMany:
            raise Rejected("size", 413, f"the body has more than {lines.MOST_LINES:,} lines; send several") from None


def _headers(pairs: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the headers. Raises: Rejected if one that matters here is repeated, since its meaning would be unclear."""
    found: dict[bytes, bytes] = {}
    for name, value in pairs:
        if name in found and name in (b"content-type", b"content-encoding", b"idempotency-key", b"authorization"):
            raise Rejected("header", 400, f"the header {name.decode()} is given twice")
        found[name] = value.strip()
    return found


def _only_lines(kind: bytes) -> bool:
    """Return whether a content type is one of JSON lines; False for JSON. Raises: Rejected for another one."""
    name, _, parameters = kind.lower().partition(b";")
    charset = parameters.replace(b" ", b"").replace(b'"', b"").removeprefix(b"charset=")
    name = name.strip()
    known = name in LINES or name == DOCUMENT or (name.startswith(b"application/") and name.endswith(b"+json"))
    if not known or charset not in (b"", b"utf-8", b"utf8"):
        message = "the Content-Type must be application/x-ndjson or application/json, in UTF-8"
        raise Rejected("type", 415, message)
    return name in LINES


def _key(given: Mapping[bytes, bytes]) -> bytes | None:
    key = given.get(b"idempotency-key")
    if key is None:
        return None
    if not KEY.fullmatch(key):
        raise Rejected("key", 400, "the Idempotency-Key must have 1 to 255 printable ASCII characters")
    return sha256(key).digest()
