"""A Spark build killed in the middle of a tick, JVM and all: the next build is right, nothing is counted twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from sqlrun.engines.duckdb import DuckDBEngine
from sqlrun.ledger import Ledger
from sqlrun.readers import find, query
from sqlrun.simulate_orders import events
from tests.projects import ROOT, Site, copy_project
from tests.script import FIVE, SETTINGS, START, to_minute
from tests.whole import differences

pytestmark = [pytest.mark.spark, pytest.mark.slow]
BUILD = [sys.executable, "-u", "-m", "sqlrun", "build", "--skip-tests"]


def write(root: Path, name: str, lines: list[str]) -> list[str]:
    (root / "data" / "orders" / name).write_text("".join(line + "\n" for line in lines))
    return lines


def build(root: Path, number: int, killed_at: str = "") -> int:
    """Run a build as a process group of its own; with `killed_at`, kill all of it when it says these words."""
    as_of = (START + number * FIVE).strftime("%Y-%m-%dT%H:%M")
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    with subprocess.Popen(
        [*BUILD, "--as-of", as_of], cwd=root, env=environment, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if killed_at and killed_at in line:
                os.killpg(process.pid, signal.SIGKILL)
                break
        code = process.wait(timeout=120)
    assert code in (0, -signal.SIGKILL), "".join(said)
    return code


def test_a_killed_spark_build_leaves_no_trace(tmp_path: Path) -> None:
    root = copy_project(tmp_path)
    written = write(root, "0.jsonl", events(SETTINGS, to_minute(START - timedelta(hours=6)), to_minute(START)))
    assert build(root, 0) == 0
    written += write(root, "1.jsonl", events(SETTINGS, to_minute(START), to_minute(START + FIVE)))
    assert build(root, 1, "OK merge model stg_orders") == -signal.SIGKILL
    warehouse = str(root / "warehouse" / "local")
    published = Ledger(warehouse, "").read().published
    assert published is not None
    assert published.tick == 1

    assert build(root, 2) == 0

    site = Site(root, DuckDBEngine())
    site.warehouse, site.ledger = warehouse, Ledger(warehouse, site.prepared.nouns.name)
    assert differences(site, START + 2 * FIVE) == {}
    published = site.ledger.read().published
    assert published is not None
    set_aside = find(published, warehouse, "stg_order_events__quarantine")
    quarantined = query('select count(*) as n from "stg_order_events__quarantine"', [set_aside]).to_pylist()[0]["n"]
    assert len(site.rows("stg_order_events")) + quarantined == len(written)
