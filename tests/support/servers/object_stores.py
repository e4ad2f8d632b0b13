"""An S3-compatible server, versitygw, built by Go into the user's cache. Shell: processes, files, the network.

`python -m tests.support.servers.object_stores` builds it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from tests.support.servers import go_programs
from tests.support.servers.process import Process, free_port, listens

VERSION = "1.8.0"
MODULE = "github.com/versity/versitygw/cmd/versitygw"
KEYS = ("testkey12", "testsecret12")
BUCKET = "lake"


def program() -> Path:
    """Return the server's program; a test is skipped where there is none."""
    return go_programs.program(MODULE, VERSION)


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
        self._process.start(lambda: listens(self.port))

    def stop(self) -> None:
        """Stop the server; its objects stay."""
        self._process.stop()

    def warehouse(self, root: Path) -> str:
        """Return the warehouse of a test's folder, with a blank and a letter outside ASCII in its prefix."""
        return f"s3://{BUCKET}/wär häuser/{str(root).strip('/')}/warehouse"


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
    print(go_programs.built(MODULE, VERSION)[1] or "versitygw is built.")
