"""`kill -9` at each step boundary of a build, a rollback and a maintenance run: one more build makes all right."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.crash import points
from tests.crash.lives import BUILD, Life, Lives, build
from tests.crash.project import World

pytestmark = [pytest.mark.slow, pytest.mark.long]
KILLED = -signal.SIGKILL


@pytest.fixture(scope="module")
def world(lives: Lives, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return a warehouse with two ticks; each test continues after the one before, as in a warehouse's life."""
    made = World(tmp_path_factory.mktemp("world") / "shops")
    for _ in range(2):
        made.arrive()
        succeeds(build(lives, made.root, made.as_of))
    made.check()
    return made


def succeeds(life: Life) -> None:
    assert life.code == 0, life.said


def dies(life: Life) -> None:
    assert life.code == KILLED, f"the point was never reached:\n{life.said}"


def is_right_after_one_build(lives: Lives, world: World, before: int) -> None:
    """Require that no reader has seen a wrong tick, and that one build returns the whole queries' result."""
    if world.published() != before:
        world.check()
    succeeds(build(lives, world.root, world.as_of))
    assert world.published() > before
    world.check()


@pytest.mark.parametrize("point", points.VACUUM)
def test_a_killed_maintenance_is_harmless(lives: Lives, world: World, point: str) -> None:
    """Maintenance changes no row: neither readers nor the next build see a difference."""
    if "a table" in point:  # one table has to be unused
        succeeds(lives.live(world.root, *BUILD, world.as_of, "--full-refresh", "--select", "log_refunds"))

    dies(lives.live(world.root, "vacuum", "--keep-ticks", "1", point=point))

    world.check()
    world.arrive()
    succeeds(build(lives, world.root, world.as_of))
    world.check()


@pytest.mark.parametrize("point", points.TICK)
def test_a_killed_tick_is_harmless(lives: Lives, world: World, point: str) -> None:
    before = world.published()
    world.arrive()

    dies(build(lives, world.root, world.as_of, point))

    is_right_after_one_build(lives, world, before)


@pytest.mark.parametrize("point", points.RESTORED)
def test_a_killed_recovery_is_harmless(lives: Lives, world: World, point: str) -> None:
    before = world.published()
    world.arrive()
    dies(build(lives, world.root, world.as_of, "after the tables are synced"))
    assert world.published() == before

    dies(build(lives, world.root, world.as_of, point))

    is_right_after_one_build(lives, world, before)


@pytest.mark.parametrize("point", [*points.CREATED, "in the plan of a batch", "before the pin", "after a merge"])
def test_a_killed_first_tick_is_harmless(lives: Lives, tmp_path: Path, point: str) -> None:
    world = World(tmp_path / "shops")
    world.arrive()

    dies(build(lives, world.root, world.as_of, point))

    is_right_after_one_build(lives, world, 0)


@pytest.mark.parametrize("point", points.ROLLBACK)
def test_a_killed_rollback_is_harmless(lives: Lives, world: World, point: str) -> None:
    """The next build lands every line again, whether readers saw the old tick for a moment or not."""
    earlier = world.ledger.newest(2)[1].tick

    dies(lives.live(world.root, "rollback", "--to", str(earlier), point=point))

    world.arrive()
    succeeds(build(lives, world.root, world.as_of))
    world.check()


def test_every_crash_point_has_a_test() -> None:
    struck = points.TICK | points.RESTORED | points.CREATED | points.ROLLBACK | points.VACUUM
    assert struck == points.KILLED
