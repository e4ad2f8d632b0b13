"""`sqlrun serve` as a process: its start, events of new ticks, key rotation and stop."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import served
from tests.support.served import SECRET, Warehouse, bearer, orders
from tests.support.waiting import HUNG, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    project = served.project(tmp_path / "project")
    (tmp_path / "project" / "profiles").mkdir()
    (tmp_path / "project" / "profiles" / "local.yml").write_text("engine: duckdb\nwarehouse: warehouse\n")
    return Warehouse(tmp_path / "project" / "warehouse", project)


@pytest.fixture
def port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def process(warehouse: Warehouse, port: int) -> Iterator[subprocess.Popen[str]]:
    root = warehouse.folder.parent
    arguments = [sys.executable, "-m", "sqlrun", "--project-dir", str(root), "serve", "--port", str(port)]
    env = {**os.environ, "SQLRUN_SERVE_KEY": SECRET.key.decode(), "PYTHONPATH": str(served.ROOT)}
    started = subprocess.Popen(arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    yield started
    if started.poll() is None:
        started.kill()
    started.communicate()


def ask(port: int, path: str, headers: dict[str, str]) -> Any:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    return urllib.request.urlopen(request, timeout=20)


def listens(port: int) -> bool:
    with socket.socket() as one:
        return not one.connect_ex(("127.0.0.1", port))


@pytest.mark.long
def test_a_tick_is_announced_and_shown_within_two_seconds_of_its_publishing(
    warehouse: Warehouse, process: subprocess.Popen[str], port: int
) -> None:
    """The server starts before the first tick, and shows it without a restart."""
    wait_until(lambda: listens(port), "the server never listens")
    owner = bearer("r0002")
    with pytest.raises(urllib.error.HTTPError) as early:
        ask(port, "/api/v1/restaurants/r0002/windows", owner)
    assert early.value.code == 503
    early.value.close()
    stream = ask(port, "/api/v1/ticks/events", owner)
    for tick in (1, 2):
        warehouse.publish()
        published = time.monotonic()
        line = ""
        while not line.startswith("data:"):
            line = stream.readline().decode()
        seconds = time.monotonic() - published
        with ask(port, "/api/v1/restaurants/r0002/windows", owner) as answer:
            found = json.load(answer)

        assert json.loads(line.partition(":")[2])["tick"] == found["tick"] == tick
        assert found["n_orders"] == orders(1, tick)
        assert seconds < 2
    stream.close()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_at_once_and_without_a_traceback_though_a_client_listens(
    warehouse: Warehouse, process: subprocess.Popen[str], port: int, how: signal.Signals
) -> None:
    warehouse.publish()
    wait_until(lambda: listens(port), "the server never listens")
    stream = ask(port, "/api/v1/ticks/events", bearer("r0002"))
    stream.readline()
    process.send_signal(how)
    began = time.monotonic()
    output, _ = process.communicate(timeout=20)
    stream.close()

    assert time.monotonic() - began < 15
    assert process.returncode in (0, -signal.SIGTERM)
    assert "Traceback" not in output
    assert "Aborted" not in output
    assert SECRET.key.decode() not in output


@pytest.mark.long
def test_a_port_that_is_taken_is_reported(warehouse: Warehouse, port: int) -> None:
    warehouse.publish()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        arguments = [sys.executable, "-m", "sqlrun", "--project-dir", str(warehouse.folder.parent), "serve"]
        env = {**os.environ, "PYTHONPATH": str(served.ROOT)}
        done = subprocess.run(
            [*arguments, "--port", str(port)], env=env, capture_output=True, text=True, timeout=HUNG, check=False
        )

    assert done.returncode == 2
    assert f"port {port} of 127.0.0.1 can't be listened on" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
