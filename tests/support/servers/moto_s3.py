"""An S3 server in this process, with one bucket. It checks no signature. Shell: sockets, threads.

moto's own server looks for an object and writes it in two steps, so that two conditional uploads may both succeed. This
one answers one request after the other.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.server import MotoRequestHandler
from werkzeug.serving import make_server

BUCKET = "lake"
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "testtest"}
REGION = "us-east-1"


@contextmanager
def running() -> Iterator[str]:
    """Run the server, and return its endpoint."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app, one_at_a_time = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def answer(environ: Any, start_response: Callable[..., Any]) -> Iterable[bytes]:
        with one_at_a_time:
            return list(app(environ, start_response))

    server = make_server("127.0.0.1", 0, answer, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        # Servers of one process share their buckets.
        urlopen(Request(f"{endpoint}/moto-api/reset", method="POST")).close()
        client(endpoint).create_bucket(Bucket=BUCKET)
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def client(endpoint: str) -> Any:
    """Return a client of the server."""
    return boto3.client(
        "s3", endpoint_url=endpoint, region_name=REGION, aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
    )  # fmt: skip
