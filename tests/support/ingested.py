"""A server that takes lines for the project of `shops.py`, in this process or in one of its own that dies at a step.

`python -m tests.support.ingested STEP ARGUMENTS` runs sqlrun, and kills it without warning at that step of a group.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from sqlrun import project_files
from sqlrun.publish.ledger import Ledger
from sqlrun.runtime.rate_limits import Limits
from sqlrun.serve.access import Gatekeeper, ingest_token
from sqlrun.serve.ingest import writer
from sqlrun.serve.ingest.key_record import KeyRecord
from sqlrun.serve.ingest.opening import Settings, opened
from sqlrun.serve.keys import Keys
from sqlrun.serve.live import Live
from sqlrun.serve.metrics import Metrics
from sqlrun.serve.offer import offer
from sqlrun.serve.operator import Operations
from sqlrun.serve.site import Site
from sqlrun.serve.snapshot import Reader
from tests.support import served, shops
from tests.support.served import SECRET, VALID
from tests.support.waiting import HUNG

PATH = "/api/v1/ingest/shops/sales"
NDJSON, JSON = {"Content-Type": "application/x-ndjson"}, {"Content-Type": "application/json"}
PLAIN = Settings(rate=0, most_bytes=1024 * 1024, every=0)
STEPS = ("lines are written", "keys are recorded", "file is published")


def now() -> datetime:
    return datetime.now(timezone.utc)


def bearer(*sources: str, seconds: float = VALID) -> dict[str, str]:
    """Return the headers of a token to send lines to sources."""
    return {"Authorization": f"Bearer {ingest_token(SECRET, sources, time.time(), seconds)}"}


SENDER = bearer("shops.sales")


def site(root: Path, settings: Settings = PLAIN, clock: Callable[[], datetime] = now) -> Site:
    """Return a server of a project without a tick, which takes lines."""
    project, metrics, keys = project_files.project(root), Metrics(), Keys(None)
    keys.by_id = {"": SECRET}
    offered = offer(project, required=False)
    return Site(
        Live(clock, timedelta(minutes=15)), offered, Reader(str(root / "warehouse"), offered), keys,
        Gatekeeper(keys.by_id, offered.claims), Limits(0, 0), metrics, frozenset({"testserver"}), lambda _: None,
        Operations(Ledger(str(root / "warehouse"), project.name), project),
        opened(root, project, keys.by_id, metrics, clock, settings),
    )  # fmt: skip


@contextmanager
def client(root: Path, settings: Settings = PLAIN, **options: Any) -> Iterator[TestClient]:
    """Yield a client of a new server."""
    with served.client(site(root, settings, **options)) as asked:
        yield asked


def files(root: Path) -> list[Path]:
    """Return the files that lines were written to, oldest first."""
    return sorted((root / "data" / "orders").glob("*.jsonl"))


def lines(root: Path) -> list[str]:
    """Return all lines of the source."""
    return [line for file in files(root) for line in file.read_text(encoding="utf-8").split("\n")[:-1]]


def hidden(root: Path) -> list[str]:
    """Return the names of lines' files in the hidden folder, also of temporary ones."""
    return sorted(p.name for p in (root / "data" / "orders" / writer.HIDDEN).iterdir() if "jsonl" in p.name)


@dataclass
class Process:
    """A server in a process of its own."""

    port: int
    running: subprocess.Popen[str]

    def kill(self) -> None:
        self.running.kill()
        self.running.communicate()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def process(root: Path, step: str = "", *options: str) -> Iterator[Process]:
    """Yield a running server; with a `step`, its first group kills it there."""
    port = free_port()
    module = ["tests.support.ingested", step] if step else ["sqlrun"]
    arguments = ["--project-dir", str(root), "serve", "--ingest", "--no-access-log", "--port", str(port), *options]
    env = {**os.environ, "SQLRUN_SERVE_KEY": SECRET.key.decode(), "PYTHONPATH": str(served.ROOT)}
    started = subprocess.Popen(
        [sys.executable, "-m", *module, *arguments], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, cwd=served.ROOT,
    )  # fmt: skip
    made = Process(port, started)
    try:
        end = time.monotonic() + HUNG
        while not _listens(port):
            assert started.poll() is None and time.monotonic() < end, started.communicate()
            time.sleep(0.02)
        yield made
    finally:
        made.kill()


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return not one.connect_ex(("127.0.0.1", port))


def project(folder: Path) -> Path:
    """Write the project."""
    return shops.project(folder)


def _dying(step: str) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def before(place: Any, name: str) -> None:
        made = getattr(place, name)

        def replaced(*values: Any, **named: Any) -> None:
            die()

        setattr(place, name, replaced)
        assert made is not getattr(place, name)

    match step:
        case "lines are written":
            before(KeyRecord, "add")
        case "keys are recorded":
            before(writer.Writer, "_publish")
        case "file is published":
            # A group's outcomes are looked at after it, and before its answers.
            from sqlrun.serve.ingest import door

            before(door, "wrote")
        case _:
            raise AssertionError(step)


if __name__ == "__main__":
    from sqlrun.cli.main import main

    _dying(sys.argv[1])
    main(sys.argv[2:])
