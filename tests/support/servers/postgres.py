"""A Postgres server with logical decoding, and its changes as files by Debezium's embedded engine. Shell: processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import jars
from tests.support.servers.process import SMALL, Process, free_port
from tests.support.waiting import HUNG

PROGRAMS = Path("/usr/lib/postgresql")
USER = "postgres"
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "wal_level": "logical",
    "fsync": "off",
    "shared_buffers": "32MB",
    # When a transaction was committed can be asked for later.
    "track_commit_timestamp": "on",
}
# What a session prints after its statements.
DONE = "-- done"
ENGINE = Path(__file__).with_name("ChangeEngine.java")


def programs() -> Path:
    """Return the folder of Postgres's programs; a test is skipped without them."""
    found = sorted(PROGRAMS.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if not found:
        pytest.skip("no Postgres on this machine: `apt-get install postgresql` has one")
    return found[-1].parent


class Postgres:
    """A server with one database, `shop`. It refuses to run as root, so that its folder is the user's `postgres`."""

    def __init__(self, output: Path) -> None:
        self._programs, self.port = programs(), free_port()
        # The temporary folders of tests can't be entered by another user.
        self.folder = Path(tempfile.mkdtemp(prefix="sqlrun-postgres-"))
        self._as = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.getuid() == 0 else []
        if self._as:
            shutil.chown(self.folder, USER, USER)
        self._process = Process([], output)

    def start(self) -> None:
        """Start the server, and make its database at first."""
        data = self.folder / "data"
        if not data.exists():
            self._run("initdb", "-D", str(data), "-U", USER, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        server = [str(self._programs / "postgres"), "-D", str(data), "-p", str(self.port), "-k", str(self.folder)]
        self._process.command = [*self._as, *server, *(f"-c{name}={value}" for name, value in SETTINGS.items())]
        self._process.start(self._answers)
        if self.rows("select 1 as n from pg_database where datname = 'shop'", "postgres") == []:
            self.run("create database shop", "postgres")

    def stop(self) -> None:
        """End the server and delete its data."""
        self._process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, statements: str, database: str = "shop") -> str:
        """Run statements, each in a transaction of its own unless they say otherwise; return what they print."""
        return self._run("psql", *self._place(database), "-v", "ON_ERROR_STOP=1", "-qAt", text=statements)

    def rows(self, query: str, database: str = "shop") -> list[dict[str, Any]]:
        """Return the rows of a query."""
        found: list[dict[str, Any]] = json.loads(
            self.run(f"select coalesce(json_agg(q), '[]') from ({query}) as q", database)
        )
        return found

    def session(self) -> Session:
        """Return a session whose transactions stay open until it ends them."""
        return Session([str(self._programs / "psql"), *self._place("shop"), "-v", "ON_ERROR_STOP=1", "-qAt"])

    def _place(self, database: str) -> tuple[str, ...]:
        return ("-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", database)

    def _answers(self) -> bool:
        ready = [str(self._programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port), "-q"]
        return subprocess.run(ready, check=False, stdin=subprocess.DEVNULL).returncode == 0

    def _run(self, program: str, *arguments: str, text: str = "") -> str:
        return subprocess.run(
            [*self._as, str(self._programs / program), *arguments], input=text, capture_output=True, text=True,
            check=True, cwd=self.folder, timeout=HUNG,
        ).stdout  # fmt: skip


class Session:
    """A client of a server: statements run in it one after the other, and a transaction stays open between them."""

    def __init__(self, command: list[str]) -> None:
        self._client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, statements: str) -> list[str]:
        """Run statements, and return the lines that they print when they are done."""
        assert self._client.stdin is not None and self._client.stdout is not None
        self._client.stdin.write(f"{statements};\n\\echo {DONE}\n")
        self._client.stdin.flush()
        lines = []
        while (line := self._client.stdout.readline().rstrip("\n")) != DONE:
            assert self._client.poll() is None, f"the session ended after {lines}"
            lines.append(line)
        return lines

    def close(self) -> None:
        """End the session; an open transaction is rolled back."""
        assert self._client.stdin is not None and self._client.stdout is not None
        self._client.stdin.close()
        self._client.wait(60)
        self._client.stdout.close()


def streamed(offsets: Path) -> bool:
    """Return whether a file of Debezium's offsets has one of a change after the snapshot."""
    return offsets.exists() and b"lsn_proc" in offsets.read_bytes()


class ChangeEngine:
    """Debezium's embedded engine: it writes the changes of a database to files of JSON lines in a folder."""

    def __init__(self, postgres: Postgres, folder: Path, output: Path) -> None:
        library = jars.needed(jars.DEBEZIUM)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._postgres = folder, postgres
        command = [jars.java(), *SMALL, "-Xmx256m", "-cp", f"{library}/*", str(ENGINE)]
        self._process = Process([*command, str(postgres.port), str(folder), f"{output}.offsets"], output)
        self._output, self._offsets = output, Path(f"{output}.offsets")

    def start(self) -> None:
        """Start the engine, and return when it streams."""
        before = self._streams()
        self._process.start(lambda: self._streams() > before)

    def kill(self) -> None:
        """End the engine as `kill -9` does: what it isn't sure of, it sends again."""
        self._process.kill()

    def lose(self) -> None:
        """End the engine, and drop its slot and its offsets: what changes until it starts again never comes."""
        self.kill()
        dropped = "select pg_drop_replication_slot(slot_name) from pg_replication_slots where not active"
        end = time.monotonic() + HUNG
        while self._postgres.rows("select slot_name from pg_replication_slots"):
            assert time.monotonic() < end, "the slot stays in use"
            self._postgres.run(dropped)
        self._offsets.unlink()

    def streamed(self) -> bool:
        """Return whether a change after the snapshot is marked as done; after a kill before, it takes another one."""
        return streamed(self._offsets)

    def _streams(self) -> int:
        return self._output.read_text(errors="replace").count("Processing messages") if self._output.exists() else 0
