"""The reference project, whose ticks run in processes of their own, on a cluster or by Spark Connect."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.publish.reader import find, query
from sqlrun.simulate.orders import events
from tests.support.projects import ROOT, Site, copy_project
from tests.support.script import FIVE, SETTINGS, START, to_minute
from tests.support.whole import differences

BUILD = (sys.executable, "-m", "sqlrun", "build", "--profile", "cluster", "--skip-tests", "--quiet")
NOTHING: Mapping[str, str] = MappingProxyType({})
# Seconds of a build.
LONGEST = 600


class Day:
    """A project whose ticks run on the cluster, each in a process of its own."""

    def __init__(
        self, folder: Path, settings: Mapping[str, str], warehouse: str = "", variables: Mapping[str, str] = NOTHING
    ) -> None:
        """`warehouse`: a URL; `variables`: those of its store."""
        self.root = copy_project(folder)
        self.written, self.environment = 0, {**_environment(), **variables}
        self.warehouse = warehouse or str(self.root / "warehouse" / "cluster")
        profile = {"engine": "spark", "warehouse": self.warehouse, "threads": 2, "settings": settings}
        (self.root / "profiles" / "cluster.yml").write_text(json.dumps(profile))

    def land(self, number: int, since: timedelta = FIVE) -> None:
        """Write the lines of a tick."""
        end = START + number * FIVE
        lines = events(SETTINGS, to_minute(end - since), to_minute(end))
        self.written += len(lines)
        (self.root / "data" / "orders" / f"{number:04}.jsonl").write_text("".join(line + "\n" for line in lines))

    def build(
        self, number: int, meanwhile: Callable[[subprocess.Popen[bytes]], None] | None = None, select: str = ""
    ) -> int:
        """Run a tick, of all models by default; return its exit code."""
        command = [*BUILD, "--as-of", (START + number * FIVE).strftime("%Y-%m-%dT%H:%M")]
        command += ["--select", select] if select else []
        output = self.root / f"build{number}.log"
        with output.open("wb") as to:
            process = subprocess.Popen(
                command, cwd=self.root, env=self.environment, start_new_session=True, stdout=to, stderr=to
            )
        try:
            if meanwhile is not None:
                meanwhile(process)
            return process.wait(LONGEST)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def debug(self, **profile: str) -> list[str]:
        """Return the lines of `sqlrun debug` with other keys of the profile; all that it tries must work."""
        file = self.root / "profiles" / "cluster.yml"
        (self.root / "profiles" / "debugged.yml").write_text(json.dumps(json.loads(file.read_text()) | profile))
        command = [sys.executable, "-m", "sqlrun", "debug", "--profile", "debugged"]
        done = subprocess.run(
            command, cwd=self.root, env=self.environment, capture_output=True, text=True, timeout=LONGEST
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    def check(self, number: int) -> None:
        """Compare all tables with their queries on DuckDB, and the rows with the lines."""
        site = Site(self.root, DuckDBEngine())
        site.warehouse = self.warehouse
        site.ledger = type(site.ledger)(site.warehouse, site.prepared.project.name)
        assert differences(site, START + number * FIVE) == {}
        published = site.ledger.read().published
        assert published is not None
        queue = find(published, site.warehouse, "stg_order_events__quarantine")
        quarantined = query('select count(*) as n from "stg_order_events__quarantine"', [queue]).to_pylist()[0]["n"]
        assert len(site.rows("stg_order_events")) + quarantined == self.written


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
