"""`kill -9` of a Spark build and its JVM, five times in one warehouse: one more build, and each line counts once.

And of builds whose tables go from engine to engine.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import sqlrun
from sqlrun.errors import UsageError
from tests.crash.lives import BUILD
from tests.crash.project import World
from tests.support.projects import READER, ROOT, Site
from tests.support.waiting import HUNG

pytestmark = [pytest.mark.spark, pytest.mark.slow]
KILLED = -signal.SIGKILL
STRUCK, ALTERNATING = "tests.crash.struck", "tests.crash.alternating"


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> World:
    """The shops with fewer models: each costs Spark a second in each of six builds."""
    made = World(tmp_path / "shops", getattr(request, "param", "spark"))
    for name in ("fct_best", "log_refunds", "mart_places"):
        for ending in (".sql", ".yml"):
            (made.root / "models" / f"{name}{ending}").unlink()
    made.site = Site(made.root, READER)
    return made


def build(world: World, *command: str) -> tuple[int, str]:
    """Build in a process group of its own, to its end or to its death; give the exit code and what was said."""
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    with subprocess.Popen(
        [sys.executable, "-m", *command, *BUILD, world.as_of], cwd=world.root, env=environment,
        start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        try:
            # The JVM has the same pipe: it ends when both are dead.
            said, _ = process.communicate(timeout=HUNG)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, said


def dies(world: World, *command: str) -> None:
    world.arrive()
    code, said = build(world, *command)
    assert code == KILLED, f"the point was never reached:\n{said}"


@pytest.mark.long
def test_builds_are_killed_at_each_boundary_one_after_the_other(world: World) -> None:
    """Each finds what the one before has left: a batch without its mark, a published tick without receipts, a seed."""
    dies(world, STRUCK, "after Spark's batch")
    with pytest.raises(UsageError, match="nothing is published"):
        sqlrun.published("stg_lines", world.warehouse)
    dies(world, STRUCK, "after the tick is published")
    world.check()
    first, rows = world.published(), world.site.everything()

    # The next build once was refused for ever: "tick 2 was already written to names".
    for point in ("after Spark's seed", "after Spark's merge", "after the tables are synced"):
        dies(world, STRUCK, point)
        assert world.published() == first
        assert world.site.everything() == rows
        assert sqlrun.published("stg_lines", world.warehouse).num_rows == len(world.site.rows("stg_lines"))

    code, said = build(world, "sqlrun")
    assert code == 0, said
    assert world.published() > first
    world.check()


@pytest.mark.long
@pytest.mark.parametrize("world", ["auto"], indirect=True)
def test_builds_whose_engines_alternate_are_killed(world: World) -> None:
    """After a merge of either engine; the next build takes back what both have written, and goes on by both."""
    world.arrive()
    code, said = build(world, "sqlrun")
    assert code == 0, said
    first, rows = world.published(), world.site.everything()

    for seed, point in (("1", "after Spark's merge"), ("2", "after a merge")):
        dies(world, ALTERNATING, seed, point)
        assert world.published() == first
        assert world.site.everything() == rows

    code, said = build(world, ALTERNATING, "3", "")
    assert code == 0, said
    assert "Spark maintains" in said and "in this tick" in said
    assert world.published() > first
    world.check()
