"""A schema registry in a thread, which answers as a test wants: redirects, errors, passwords. Shell: the network."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

UNKNOWN = 404, {"error_code": 40403, "message": "Schema not found"}


@dataclass
class Fake:
    """Answers by path, each an HTTP status and JSON or bytes; a list is answered one after the other."""

    answers: dict[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)  # the path and the header Authorization
    url: str = ""

    def schema(self, number: int, text: str, **more: Any) -> None:
        """Have it answer with a schema."""
        self.answers[f"/schemas/ids/{number}"] = 200, {"schema": text, **more}


@contextmanager
def running(context: ssl.SSLContext | None = None) -> Iterator[Fake]:
    """Start a registry; it answers that a schema doesn't exist until it is given answers."""
    fake = Fake()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fake.asked.append((self.path, self.headers.get("Authorization", "")))
            found = fake.answers.get(self.path, UNKNOWN)
            if isinstance(found, list):
                found = found.pop(0) if len(found) > 1 else found[0]
            status, body = found
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **fake.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    fake.url = f"http{'s' if context else ''}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
