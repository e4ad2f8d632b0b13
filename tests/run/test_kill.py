"""A process killed during a build: the next build is right, and no line is lost or counted twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.publish.reader import find, query
from sqlrun.simulate.orders import events
from tests.support.projects import ROOT, Site, copy_project
from tests.support.script import FIVE, SETTINGS, START, to_minute
from tests.support.waiting import HUNG
from tests.support.whole import differences

pytestmark = [pytest.mark.slow, pytest.mark.long]
BUILD = [sys.executable, "-m", "sqlrun", "build", "--profile", "duckdb", "--skip-tests", "--quiet"]


def lines_for(number: int) -> list[str]:
    end = START + number * FIVE
    return events(SETTINGS, to_minute(end - FIVE), to_minute(end))


def build(root: Path, number: int, killed_after: float | None) -> int:
    """Run a build as its own process, killed after some seconds; return its exit code."""
    as_of = (START + number * FIVE).strftime("%Y-%m-%dT%H:%M")
    process = subprocess.Popen(
        [*BUILD, "--as-of", as_of], cwd=root, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    )
    if killed_after is not None:
        time.sleep(killed_after)
        process.send_signal(signal.SIGKILL)
    return process.wait(timeout=HUNG)


def test_a_killed_build_leaves_no_trace(tmp_path: Path) -> None:
    """Kill -9 at random moments, six times; then one build returns the oracle's rows."""
    root = copy_project(tmp_path)
    chance = random.Random(7)
    written = events(SETTINGS, to_minute(START - timedelta(days=1)), to_minute(START))
    (root / "data" / "orders" / "0000.jsonl").write_text("".join(line + "\n" for line in written))
    assert build(root, 0, None) == 0
    killed = 0

    for number in range(1, 7):
        fresh = lines_for(number)
        written += fresh
        (root / "data" / "orders" / f"{number:04}.jsonl").write_text("".join(line + "\n" for line in fresh))
        killed += build(root, number, chance.uniform(0.6, 3.0)) == -signal.SIGKILL

    assert killed, "no build was cut short: make the delays shorter"
    assert build(root, 7, None) == 0
    site = Site(root, DuckDBEngine())
    site.warehouse = str(root / "warehouse" / "duckdb")
    site.ledger = type(site.ledger)(site.warehouse, site.prepared.project.name)
    assert differences(site, START + 7 * FIVE) == {}
    published = site.ledger.read().published
    assert published is not None
    queue = find(published, site.warehouse, "stg_order_events__quarantine")
    quarantined = query('select count(*) as n from "stg_order_events__quarantine"', [queue]).to_pylist()[0]["n"]
    assert len(site.rows("stg_order_events")) + quarantined == len(written)
