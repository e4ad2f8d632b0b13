"""A proxy before an object store that loses, delays and cuts requests and answers. Shell: threads, the network.

What a client sees of a store by a bad network: a request that never arrives, an answer that is lost after the store
did what was asked, 500 and 503 before and after, an answer that is cut off, a list in another order.
"""

from __future__ import annotations

import contextlib
import http.client
import random
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ERROR = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>on purpose</Message></Error>'
LISTED = re.compile(rb"<Contents>.*?</Contents>", re.DOTALL)
# Headers of a connection, not of what is sent on it.
HOPS = {"connection", "transfer-encoding", "keep-alive", "expect", "content-length"}


@dataclass(frozen=True)
class Faults:
    """How often something happens to a request, as fractions; `delay` is the longest, `latency` that of each, in s."""

    lost: float = 0.0
    unanswered: float = 0.0
    refused: float = 0.0
    refused_after: float = 0.0
    cut: float = 0.0
    delayed: float = 0.0
    delay: float = 0.05
    latency: float = 0.0
    shuffled: bool = False


NONE = Faults()
ALL = Faults(0.03, 0.06, 0.03, 0.06, 0.03, 0.1, shuffled=True)


class Unreliable:
    """The proxy. `happened` counts its faults and `asked` the requests by method; `faults` may change at any time."""

    def __init__(self, port: int, faults: Faults = NONE, seed: int = 1) -> None:
        self.upstream, self.faults = port, faults
        self.happened, self.asked = Counter[str](), Counter[str]()
        # Picks the requests that faults happen to, by method and path.
        self.picks: Callable[[str, str], bool] = lambda method, path: True
        # Answers in the store's place: a status and the code of an error.
        self.refusal: Callable[[str, str], tuple[int, str] | None] = lambda method, path: None
        self._chance, self._lock = random.Random(seed), threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    @property
    def port(self) -> int:
        assert self._server is not None, "the proxy isn't running"
        return int(self._server.server_address[1])

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Unreliable:
        proxy = self

        class Handler(_Handler):
            def answer(self) -> None:
                proxy.carry(self)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def drawn(self, method: str, path: str) -> str:
        """Draw what happens to a request; "" for nothing."""
        with self._lock:
            self.asked[method] += 1
            if not self.picks(method, path):
                return ""
            faults, number = self.faults, self._chance.random()
            for kind in ("lost", "unanswered", "refused", "refused_after", "cut", "delayed"):
                number -= getattr(faults, kind)
                if number < 0:
                    self.happened[kind] += 1
                    return kind
            return ""

    def carry(self, request: _Handler) -> None:
        """Carry a request to the store and its answer back, or not."""
        body = request.body()
        if (refused := self.refusal(request.command, request.path)) is not None:
            return request.send(refused[0], [], ERROR % refused[1].encode())
        kind = self.drawn(request.command, request.path)
        time.sleep(self.faults.latency + (self._chance.random() * self.faults.delay if kind == "delayed" else 0))
        match kind:
            case "lost":
                return request.hang_up()
            case "refused":
                return request.send(503, [], ERROR % b"SlowDown")
        status, headers, data = self._asked(request, body)
        match kind:
            case "unanswered":
                return request.hang_up()
            case "refused_after":
                return request.send(500, [], ERROR % b"InternalError")
            case "cut" if data:
                request.send(status, headers, data, len(data) // 2)
                return request.hang_up()
        if self.faults.shuffled and request.command == "GET" and b"<Contents>" in data:
            data = self._shuffled(data)
        request.send(status, headers, data)

    def _asked(self, request: _Handler, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.upstream, timeout=30)
        try:
            connection.putrequest(request.command, request.path, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers.items():
                if name.lower() not in HOPS:
                    connection.putheader(name, value)
            if body or request.command in ("PUT", "POST"):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            data = answer.read()
            if request.command == "HEAD":
                data = b""
            return answer.status, answer.getheaders(), data
        finally:
            connection.close()

    def _shuffled(self, data: bytes) -> bytes:
        found = LISTED.findall(data)
        start, end = data.index(b"<Contents>"), data.rindex(b"</Contents>") + len(b"</Contents>")
        with self._lock:
            self._chance.shuffle(found)
        return data[:start] + b"".join(found) + data[end:] if b"".join(found) != data[start:end] else data


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def body(self) -> bytes:
        """Read the request's body."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def send(self, status: int, headers: list[tuple[str, str]], data: bytes, until: int | None = None) -> None:
        """Send an answer, or its first bytes."""
        self.send_response_only(status)
        length = str(len(data))
        for name, value in headers:
            if self.command == "HEAD" and name.lower() == "content-length":
                length = value
            if name.lower() not in HOPS:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[:until])
        self.wfile.flush()

    def hang_up(self) -> None:
        """Close the connection without another word."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        """Print nothing."""
