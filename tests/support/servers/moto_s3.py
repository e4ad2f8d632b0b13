"""An S3 server in this process, with one bucket. It checks no signature. Shell: sockets, threads."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

import boto3
from moto.server import ThreadedMotoServer

BUCKET = "lake"
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "testtest"}
REGION = "us-east-1"


@contextmanager
def running() -> Iterator[str]:
    """Run the server, and return its endpoint."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        # Servers of one process share their buckets.
        urlopen(Request(f"{endpoint}/moto-api/reset", method="POST")).close()
        client(endpoint).create_bucket(Bucket=BUCKET)
        yield endpoint
    finally:
        server.stop()


def client(endpoint: str) -> Any:
    """Return a client of the server."""
    return boto3.client(
        "s3", endpoint_url=endpoint, region_name=REGION, aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
    )  # fmt: skip
