"""A signal ends a build after its tick or its grace period, a second one at once; readers keep a whole tick."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from unittest import mock

import pytest

from sqlrun.engine_api import TableSpec
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.pipeline import prepare_to_build
from sqlrun.publish.ledger import Ledger
from sqlrun.report.build_display import BuildDisplay
from sqlrun.report.console import Console
from sqlrun.run.session import Session, times_of
from sqlrun.runtime import stopping
from sqlrun.simulate.orders import events
from tests.support.printed import until
from tests.support.projects import ROOT, copy_project
from tests.support.script import SETTINGS, to_minute
from tests.support.waiting import HUNG

pytestmark = [pytest.mark.slow, pytest.mark.long]
BUILD = [sys.executable, "-u", "-m", "sqlrun", "build", "--profile", "duckdb", "--skip-tests", "--verbose"]


def started(root: Path, *options: str) -> subprocess.Popen[str]:
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    return subprocess.Popen(
        [*BUILD, *options], cwd=root, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = copy_project(tmp_path)
    now = datetime.now(timezone.utc)
    lines = events(SETTINGS, to_minute(now - timedelta(days=1)), to_minute(now))
    (made / "data" / "orders" / "0000.jsonl").write_text("".join(line + "\n" for line in lines))
    return made


def tick_of(root: Path) -> int:
    published = Ledger(str(root / "warehouse" / "duckdb"), "").read().published
    return published.tick if published else 0


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_build_between_ticks_ends_at_once(root: Path, sent: signal.Signals) -> None:
    process = started(root, "--every", "1h")
    assert len(list(until(process, "Next tick at"))) > 5

    process.send_signal(sent)
    out, _ = process.communicate(timeout=20)

    assert process.returncode == 0, out
    assert f"{sent.name}: stopping after this tick" in out
    assert tick_of(root) == 1


def test_a_signal_lets_the_tick_finish(root: Path) -> None:
    profile = root / "profiles" / "duckdb.yml"
    profile.write_text(profile.read_text() + "stop_grace: 60\n")
    process = started(root, "--every", "1h")
    list(until(process, "START"))

    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=HUNG)

    assert process.returncode == 0, out
    assert "Done. PASS" in out
    assert "Next tick at" not in out
    assert tick_of(root) == 1


def test_a_second_signal_ends_the_build_at_once_and_the_next_one_starts_clean(root: Path) -> None:
    process = started(root, "--every", "1h")
    list(until(process, "START"))

    process.send_signal(signal.SIGINT)
    list(until(process, "SIGINT"))
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=HUNG)

    assert process.returncode == 130, out
    assert "Traceback" not in out
    assert tick_of(root) == 0
    again = started(root)
    said, _ = again.communicate(timeout=HUNG)
    assert again.returncode == 0, said


def test_a_swallowed_second_signal_ends_the_build_at_the_next_step(root: Path) -> None:
    """If a callback of DuckDB or delta-rs loses the interrupt, the next step raises it again."""
    prepared, target = prepare_to_build(root, "duckdb")
    names = tuple(name for name in prepared.graph.order if not name.startswith("source:"))
    session = Session(
        root, prepared, target, names, BuildDisplay(Console(quiet=True)), lambda: datetime.now(timezone.utc), False
    )
    real = DuckDBEngine.create

    def swallows(engine: DuckDBEngine, table: TableSpec) -> None:
        real(engine, table)
        if table.name == "restaurants":
            for _ in range(2):
                with contextlib.suppress(KeyboardInterrupt):
                    signal.raise_signal(signal.SIGINT)

    options = dict.fromkeys(("as_of", "every", "replay", "wait", "full_refresh", "env", "accept_lost_files"))
    with mock.patch.object(DuckDBEngine, "create", swallows), mock.patch.object(stopping, "PATIENCE", 60):
        code = session.run(asked := {**options, "step": "5m"}, times_of(asked))

    assert code == 130
    assert tick_of(root) == 0
