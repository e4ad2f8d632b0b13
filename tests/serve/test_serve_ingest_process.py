"""Lines over a socket: a server that dies, hostile connections, and a mart that shows what was sent."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support import ingested, served, shops
from tests.support.ingested import PATH, SENDER, STEPS, Process, process
from tests.support.waiting import HUNG

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return ingested.project(tmp_path / "project")


def send(port: int, body: bytes | Iterator[bytes], **headers: str) -> tuple[int, Any]:
    """Return the status and the JSON of an answer. Raises: OSError, HTTPException if there is none."""
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        asked.request("POST", PATH, body, {**SENDER, "Content-Type": "application/x-ndjson", **named})
        answer = asked.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        asked.close()


def sqlrun(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "sqlrun", "--project-dir", str(root), *arguments],
        env={**os.environ, "PYTHONPATH": str(served.ROOT)}, cwd=served.ROOT, capture_output=True, text=True,
        timeout=HUNG, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


SALES = [shops.sale(f"s{n}", amount=f"{n}.10") for n in range(3)]
BODY = "".join(f"{json.dumps(sale)}\n" for sale in SALES).encode()


@pytest.mark.parametrize("step", STEPS)
def test_lines_of_a_server_that_died_before_its_answer_land_once(root: Path, step: str) -> None:
    with process(root, step) as dying:
        with pytest.raises((http.client.HTTPException, OSError)):
            send(dying.port, BODY, Idempotency_Key="k")
        assert dying.running.wait(20) == -signal.SIGKILL
    with process(root) as next_one:
        status, answer = send(next_one.port, BODY, Idempotency_Key="k")
        assert (status, answer["lines"]) == (202, 3)
        assert send(next_one.port, BODY + b"{}", Idempotency_Key="k")[0] == 422
    sqlrun(root, "build", "--skip-tests")

    assert ingested.hidden(root) == []
    shown = sqlrun(root, "show", "by_shop", "--output", "json")
    assert '"n":3' in shown.replace(" ", "") and "3.30" in shown


def test_a_mart_shows_lines_that_were_sent_before_and_after_a_kill(root: Path) -> None:
    """Answered lines are durable without a shutdown; builds run beside the server."""
    with process(root) as first:
        assert send(first.port, BODY)[0] == 202
        first.running.kill()
        first.running.wait(20)
        sqlrun(root, "build", "--skip-tests")
    with process(root) as second:
        more = json.dumps(shops.sale("s9", "bob", "5.00")).encode()
        assert send(second.port, b'{"id": "bad", "shop": 17, "amount": "x"}\n' + more)[0] == 202
        sqlrun(root, "build", "--skip-tests")
    shown = sqlrun(root, "show", "by_shop", "--output", "json").replace(" ", "")

    assert "3.30" in shown and "5.00" in shown and '"bob"' in shown
    assert "bad" in sqlrun(root, "show", "stg_sales__quarantine", "--output", "json")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Process, Path]]:
    root = ingested.project(tmp_path_factory.mktemp("hostile") / "project")
    with process(root, "", "--ingest-body", "1") as made:
        yield made, root


def opened(port: int, head: str) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", port), timeout=25)
    text = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {SENDER['Authorization']}\r\n"
    found.sendall(f"{text}Content-Type: application/x-ndjson\r\n{head}\r\n".encode())
    return found


def test_fifty_megabytes_are_refused_and_the_sender_reads_why(running: tuple[Process, Path]) -> None:
    made, root = running
    piece = b'{"a":"' + b"x" * 1_000_000 + b'"}\n'

    assert send(made.port, piece * 50)[0] == 413
    assert send(made.port, iter([piece] * 50))[0] == 413
    assert ingested.files(root) == []


def test_a_head_and_a_large_body_in_one_piece_are_taken(running: tuple[Process, Path]) -> None:
    """The limit of a head doesn't count the body behind it."""
    made, _ = running
    body = b'{"a":"' + b"x" * 900_000 + b'"}\n'
    with opened(made.port, f"Connection: close\r\nContent-Length: {len(body)}\r\n") as first:
        first.sendall(body)
        assert first.makefile("rb").readline().split()[1] == b"202"
    whole = b"".join(
        [f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {SENDER['Authorization']}\r\n".encode(),
         b"Content-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n" % len(body), body]
    )  # fmt: skip
    with socket.create_connection(("127.0.0.1", made.port), timeout=25) as second:
        second.sendall(whole)
        assert second.makefile("rb").readline().split()[1] == b"202"


@pytest.mark.parametrize("end", [b"", b"1\r\n{\r\n"], ids=["silent", "chunks without end"])
def test_a_body_that_never_ends_is_dropped(running: tuple[Process, Path], end: bytes) -> None:
    made, root = running
    before = ingested.files(root)
    began = time.monotonic()
    with opened(made.port, "Transfer-Encoding: chunked\r\n") as endless:
        endless.settimeout(0.2)
        dropped = False
        while not dropped and time.monotonic() < began + 25:
            with suppress(TimeoutError):
                try:
                    endless.sendall(end)
                    dropped = not endless.recv(1000)
                except ConnectionError:
                    dropped = True

    assert dropped
    assert ingested.files(root) == before
    assert send(made.port, b'{"a":1}')[0] == 202


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 8\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 8\r\nContent-Length: 9\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: x\r\n",
        "Content-Length: 99999999999999999999999999\r\n",
        "Transfer-Encoding: gzip, chunked\r\nContent-Encoding: gzip\r\n",
    ],
)
def test_a_length_that_has_two_meanings_is_refused(running: tuple[Process, Path], head: str) -> None:
    made, root = running
    before = ingested.files(root)
    with opened(made.port, head) as asked:
        with suppress(OSError):
            asked.sendall(b"0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n")
        with suppress(ConnectionError):
            answers = asked.makefile("rb").read()
            assert answers.startswith(b"HTTP/1.1 4")
            assert b"HTTP/1.1 2" not in answers

    assert ingested.files(root) == before


def test_a_sender_that_leaves_before_the_end_writes_nothing(running: tuple[Process, Path]) -> None:
    made, root = running
    before = ingested.files(root)
    with opened(made.port, "Content-Length: 100\r\n") as leaving:
        leaving.sendall(b'{"a":1}\n')
    assert send(made.port, b'{"b":1}')[0] == 202

    assert len(ingested.files(root)) == len(before) + 1
