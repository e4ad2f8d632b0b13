"""Full or read-only disks, closed folders, clocks that jump: a clear error, then all is right again."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import sqlrun
from sqlrun.project import Profile
from sqlrun.report.build_display import BuildDisplay
from sqlrun.report.console import Console
from sqlrun.run.session import Session, times_of
from tests.crash.lives import BUILD, Life, Lives, build
from tests.crash.project import World
from tests.support.script import FIVE, START
from tests.support.whole import differences

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked"), pytest.mark.long]
PAGES = 4096


@pytest.fixture
def world(lives: Lives, tmp_path: Path) -> World:
    made = World(tmp_path / "shops")
    made.arrive()
    assert build(lives, made.root, made.as_of).code == 0
    return made


def mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mount needs root: {done.stderr.strip()}")


@pytest.fixture
def small(lives: Lives, tmp_path: Path) -> Iterator[World]:
    """Yield a warehouse on its own disk of 8 MB."""
    made = World(tmp_path / "shops")
    Path(made.warehouse).mkdir(exist_ok=True)
    mount("-t", "tmpfs", "-o", "size=8m", "tmpfs", made.warehouse)
    try:
        made.arrive()
        assert build(lives, made.root, made.as_of).code == 0
        yield made
    finally:
        subprocess.run(["umount", made.warehouse], check=True)


def is_refused(life: Life, *words: str) -> None:
    """Require an error with these words, without a Python traceback.

    If a disk rejects a file, a thread of delta-rs prints two lines that it "panicked", which sqlrun can't prevent.
    """
    assert life.code in (1, 2), life.said
    assert "Traceback" not in life.said, life.said
    assert any(word in life.said for word in words), life.said


def test_a_full_disk_is_reported(lives: Lives, small: World) -> None:
    """The disk gets larger until a tick fits: wherever it was full, readers saw nothing, and the next build works."""
    ballast = Path(small.warehouse) / "ballast"
    small.arrive()
    failed, room, rows = 0, 0, small.site.everything()
    while True:
        ballast.unlink(missing_ok=True)
        free = shutil.disk_usage(small.warehouse).free
        ballast.write_bytes(b"x" * max(0, free - room))
        before = small.published()
        life = build(lives, small.root, small.as_of)
        if life.code == 0:
            break
        failed += 1
        is_refused(life, "No space left", "os error 28", "Errno 28")
        assert small.published() == before
        assert small.site.everything() == rows
        room += 12 * PAGES
        assert room < 4_000_000
    assert failed > 2
    small.check()
    ballast.unlink()
    small.arrive()
    assert build(lives, small.root, small.as_of).code == 0
    small.check()


def test_a_read_only_warehouse_is_reported(lives: Lives, small: World) -> None:
    """Readers keep reading."""
    mount("-o", "remount,ro", small.warehouse)
    small.arrive()
    for command in ((*BUILD, small.as_of), ("rollback", "--to", "1"), ("vacuum",)):
        is_refused(lives.live(small.root, *command), "Read-only file system")
    assert sqlrun.published("stg_lines", small.warehouse).num_rows == 12
    shown = lives.live(small.root, "show", "fct_slots")
    assert shown.code == 0, shown.said

    mount("-o", "remount,rw", small.warehouse)
    assert build(lives, small.root, small.as_of).code == 0
    small.check()


@pytest.fixture(scope="module")
def lasting(lives: Lives, tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(tmp_path_factory.mktemp("lasting") / "shops")
    made.arrive()
    assert build(lives, made.root, made.as_of).code == 0
    return made


@contextmanager
def closed(folder: Path) -> Iterator[None]:
    modes = {f: f.stat().st_mode for f in (folder, *(f for f in folder.rglob("*") if f.is_dir()))}
    for one in modes:
        one.chmod(0o555)
    try:
        yield
    finally:
        for one, mode in modes.items():
            one.chmod(mode)


@pytest.mark.parametrize("where", ["fct_slots", "stg_lines", "_sqlrun/ledger", "_sqlrun/checkpoints", "_sqlrun"])
def test_a_closed_folder_is_reported(lives: Lives, lasting: World, where: str) -> None:
    """The error names the path; nothing is published."""
    world = lasting
    world.arrive()
    before = world.published()
    with closed(Path(world.warehouse) / where):
        life = lives.live(world.root, *BUILD, world.as_of, plain=True)
        is_refused(life, "Permission denied", "os error 13")
        assert where.rpartition("/")[2] in life.said
        assert world.published() == before

    assert build(lives, world.root, world.as_of).code == 0
    world.check()


def test_another_users_lock_file_is_reported(lives: Lives, world: World) -> None:
    file = Path(world.warehouse) / "_sqlrun" / "lock"
    file.chmod(0o444)

    life = lives.live(world.root, *BUILD, world.as_of, plain=True)

    is_refused(life, f"the lock file {file} can't be written: Permission denied")


def test_an_impossible_warehouse_is_reported(lives: Lives, tmp_path: Path) -> None:
    world = World(tmp_path / "shops")
    shutil.rmtree(world.warehouse)
    world.arrive()
    (world.root / "warehouse").write_text("a file")

    is_refused(lives.live(world.root, *BUILD, world.as_of), "can't be written")


def test_a_skipped_day_of_ticks_is_harmless(lives: Lives, world: World) -> None:
    """All windows have moved past all rows, and late rows fill them again."""
    world.number += 287
    world.arrive()

    assert build(lives, world.root, world.as_of).code == 0

    world.check()


def ticked(world: World, clock: datetime) -> str:
    """Build by the clock, and return the output."""
    said = io.StringIO()
    options: dict[str, Any] = dict.fromkeys(
        ("as_of", "every", "replay", "wait", "full_refresh", "accept_lost_files", "env")
    ) | {"step": "5m"}
    prepared = world.site.prepared
    names = tuple(n for n in prepared.graph.order if not n.startswith("source:"))
    target = Profile("here", "duckdb", world.warehouse, 2, {})
    console = Console(out=said, err=said, environ={})
    assert (
        Session(world.root, prepared, target, names, BuildDisplay(console), lambda: clock, False).run(
            options, times_of(options)
        )
        == 0
    ), said.getvalue()
    published = world.ledger.read().published
    assert published is not None
    assert differences(world.site, published.as_of) == {}
    return said.getvalue()


def test_a_clock_that_jumps_ahead_and_back_stops_no_tick(world: World) -> None:
    """A tick's time never goes back: it waits for the clock, with a warning."""
    ahead = START + timedelta(days=365)
    assert "The clock says" not in ticked(world, ahead)
    assert world.site.rows("mart_hour") == []

    world.arrive()
    said = ticked(world, START + 2 * FIVE)

    assert "The clock says 2026-03-10 12:10, the published tick 2027-03-10 12:00" in said
    published = world.ledger.read().published
    assert published is not None and published.as_of == ahead
    assert len(world.site.rows("stg_lines")) == world.lines
    assert "The clock says" not in ticked(world, ahead + FIVE)


def test_after_a_wrong_clock_a_rollback_helps(lives: Lives, world: World) -> None:
    ticked(world, START + timedelta(days=365))
    world.arrive()

    assert lives.live(world.root, "rollback", "--to", "1").code == 0
    assert "The clock says" not in ticked(world, START + 2 * FIVE)
    world.check()
