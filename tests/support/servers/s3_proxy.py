"""A proxy between a client and an S3 server that delays requests and loses answers. Shell: sockets, threads."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Headers of one connection, not of the request: the other side has its own.
OWN = {"connection", "transfer-encoding", "content-length", "keep-alive", "date", "server", "expect"}
# The server's answers here need no more than that.
LONGEST = 60


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked for; `conditional`: only if there is no such object."""

    method: str
    path: str
    conditional: bool

    @property
    def is_commit(self) -> bool:
        return self.method == "PUT" and "/_delta_log/0" in self.path and self.path.partition("?")[0].endswith(".json")


@dataclass(frozen=True, slots=True)
class Fault:
    """What becomes of a request: `seconds` late, without `forward` the server never sees it.

    `status` replaces the server's answer, 0 by none at all: the connection ends. `unconditional`: the server is asked
    without If-None-Match, as if it didn't know the header.
    """

    seconds: float = 0.0
    forward: bool = True
    status: int | None = None
    unconditional: bool = False


SOUND = Fault()


class Proxy:
    """The proxy: `fault` decides about each request, `seen` has all of them with the status of the server's answer."""

    def __init__(self, upstream: str, port: int = 0) -> None:
        self._upstream = upstream.removeprefix("http://")
        self.fault: Callable[[Request], Fault] = lambda request: SOUND
        self.seen: list[tuple[Request, int]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def serve(self) -> None:
        """Answer requests until the process ends."""
        self._server.serve_forever()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def forwarded(self, handler: BaseHTTPRequestHandler, body: bytes, unconditional: bool) -> Any:
        """Return the server's answer: status, headers and body."""
        # A client's date is signed.
        dropped = OWN - {"date"} | ({"if-none-match"} if unconditional else set())
        headers = {name: value for name, value in handler.headers.items() if name.lower() not in dropped}
        if body or handler.command in ("PUT", "POST"):
            headers["Content-Length"] = str(len(body))
        connection = http.client.HTTPConnection(self._upstream, timeout=LONGEST)
        try:
            connection.request(handler.command, handler.path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except (ConnectionError, TimeoutError):
                    self.close_connection = True

            def forward(self) -> None:
                body = self._body()
                request = Request(self.command, self.path, self.headers.get("If-None-Match") == "*")
                fault = proxy.fault(request)
                time.sleep(fault.seconds)
                status, headers, content = 0, [], b""
                if fault.forward:
                    status, headers, content = proxy.forwarded(self, body, fault.unconditional)
                proxy.seen.append((request, status))
                if fault.status == 0:
                    self.close_connection = True
                    return
                if fault.status is not None:
                    status, headers, content = fault.status, [("Content-Type", "application/xml")], _error(fault.status)
                self._answer(status, headers, content)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward

            def _body(self) -> bytes:
                if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = []
                while size := int(self.rfile.readline().partition(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)

            def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
                self.send_response(status)
                length = str(len(content))
                for name, value in headers:
                    if name.lower() not in OWN:
                        self.send_header(name, value)
                    elif name.lower() == "content-length" and self.command == "HEAD":
                        length = value
                self.send_header("Content-Length", length)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler


def _error(status: int) -> bytes:
    code = {409: "ConditionalRequestConflict", 412: "PreconditionFailed", 500: "InternalError", 503: "SlowDown"}
    text = f"<Code>{code[status]}</Code><Message>made up by a test</Message>"
    return f'<?xml version="1.0" encoding="UTF-8"?><Error>{text}</Error>'.encode()


@contextmanager
def before(upstream: str) -> Iterator[Proxy]:
    """Run a proxy before a server."""
    proxy = Proxy(upstream)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
