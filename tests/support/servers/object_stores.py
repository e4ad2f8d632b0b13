"""An S3-compatible server, versitygw, built by Go into the user's cache. Shell: processes, files, the network.

`python -m tests.support.servers.object_stores` builds it.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.support.servers.jars import LONGEST, cached
from tests.support.servers.process import Process, free_port

VERSION = "1.8.0"
MODULE = f"github.com/versity/versitygw/cmd/versitygw@v{VERSION}"
KEYS = ("testkey12", "testsecret12")
BUCKET = "lake"


def built() -> tuple[Path, str]:
    """Return the server's program, which the first caller builds, and why it can't be built."""
    found = cached(f"versitygw-{VERSION}") / "versitygw"
    if found.exists():
        return found, ""
    go = shutil.which("go")
    if go is None:
        return found, "no versitygw, nor Go to build it: `apt-get install golang`"
    found.parent.mkdir(parents=True, exist_ok=True)
    with (found.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            folder = found.parent / "built"
            environment = {**os.environ, "GOBIN": str(folder)}
            try:
                subprocess.run(
                    [go, "install", MODULE], env=environment, capture_output=True, text=True, timeout=LONGEST,
                    check=True, stdin=subprocess.DEVNULL,
                )  # fmt: skip
            except (OSError, subprocess.SubprocessError) as error:
                return found, f"versitygw can't be built: {getattr(error, 'stderr', '') or error}"[-400:]
            (folder / "versitygw").rename(found)
    return found, ""


def program() -> Path:
    """Return the server's program; a test is skipped where there is none."""
    found, why = built()
    if why:
        pytest.skip(why)
    return found


class S3:
    """A server with one bucket, its objects in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        (folder / "data" / BUCKET).mkdir(parents=True, exist_ok=True)
        (folder / "about").mkdir(exist_ok=True)
        command = [
            str(program()), "--port", f"127.0.0.1:{self.port}", "--access", KEYS[0], "--secret", KEYS[1], "posix",
            "--sidecar", str(folder / "about"), str(folder / "data"),
        ]  # fmt: skip
        self._process = Process(command, folder / "versitygw.log")

    @property
    def endpoint(self) -> str:
        """Return the server's address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that clients read."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEYS[0], "AWS_SECRET_ACCESS_KEY": KEYS[1],
        }  # fmt: skip

    def start(self) -> None:
        """Start the server."""
        self._process.start(self._answers)

    def stop(self) -> None:
        """Stop the server; its objects stay."""
        self._process.stop()

    def warehouse(self, root: Path) -> str:
        """Return the warehouse of a test's folder, with a blank and a letter outside ASCII in its prefix."""
        return f"s3://{BUCKET}/wär häuser/{str(root).strip('/')}/warehouse"

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


@cache
def shared() -> S3:
    """Return a server of this process, started at the first call, with its variables in the environment."""
    if "SQLRUN_TEST_S3" in os.environ:  # of the process that started this one
        return _running(int(os.environ["SQLRUN_TEST_S3"]))
    folder = Path(tempfile.mkdtemp(prefix="sqlrun-s3-"))
    server = S3(folder)
    server.start()
    os.environ |= {**server.environment, "SQLRUN_TEST_S3": str(server.port)}
    pid = os.getpid()

    def stop() -> None:
        if os.getpid() == pid:
            server.stop()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return server


def _running(port: int) -> S3:
    server = S3.__new__(S3)
    server.port = port
    return server


if __name__ == "__main__":
    print(built()[1] or "versitygw is built.")
