"""One writer: a suspended build that lost the warehouse to another one wakes up and writes nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from sqlrun.engines.duckdb import landing as duckdb_landing
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import LockedError
from sqlrun.publish.ledger import Ledger
from sqlrun.sources import batches
from sqlrun.storage.lock import require
from tests.crash.lives import BUILD, Life, Lives, build
from tests.crash.project import World
from tests.support.projects import Site
from tests.support.script import FIVE, START

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked"), pytest.mark.long]
LOCKED = 75
BUILDS = (
    "before the ledger is read", "in the plan of a batch", "before a batch is committed", "before the pin",
    "before the pin's row is committed", "after the pin", "in a merge", "after the tables are synced",
    "before the published row is committed",
)  # fmt: skip
OTHERS = (
    "before a table is restored", "before the rollback's pin", "before the rollback is published",
    "before files are put together", "before a table is deleted", "before the vacuum is published",
)  # fmt: skip


@pytest.fixture(scope="module")
def built(lives: Lives, tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(tmp_path_factory.mktemp("world") / "shops")
    for _ in range(2):
        made.arrive()
        assert build(lives, made.root, made.as_of).code == 0
    return made


def committed(world: World) -> set[str]:
    """Return everything that counts: commits of all tables and the ledger, and landed batches."""
    found = Path(world.warehouse).rglob("*.json")
    return {f.as_posix() for f in found if f.parent.name in ("_delta_log", "batches")}


def stopped(lives: Lives, world: World, point: str) -> Life:
    """Suspend the command to which the point belongs there."""
    if "rollback" in point:
        to = str(world.ledger.newest(2)[1].tick)
        life = lives.live(world.root, "rollback", "--to", to, point=point, sent="SIGSTOP")
    elif point.endswith("deleted") or "vacuum" in point or "together" in point:
        if "a table" in point:  # one table has to be unused
            again = lives.live(world.root, *BUILD, world.as_of, "--full-refresh", "--select", "log_refunds")
            assert again.code == 0, again.said
        life = lives.live(world.root, "vacuum", "--keep-ticks", "1", point=point, sent="SIGSTOP")
    else:
        world.arrive()
        if "restored" in point:
            assert build(lives, world.root, world.as_of, "after the tables are synced").code == -signal.SIGKILL
        life = build(lives, world.root, world.as_of, point, "SIGSTOP")
    assert life.code is None, life.said
    return life


@pytest.mark.parametrize("point", [*BUILDS, *OTHERS])
def test_a_build_that_wakes_up_too_late_writes_nothing(lives: Lives, built: World, point: str) -> None:
    """The test deletes the lock file while the first build is suspended: on one machine nothing else passes a lock."""
    world = built
    first = stopped(lives, world, point)
    (Path(world.warehouse) / "_sqlrun" / "lock").unlink()
    world.arrive()
    second = build(lives, world.root, world.as_of)
    assert second.code == 0, second.said
    world.check()
    tick, there = world.published(), committed(world)

    woken = lives.wake(first)

    assert woken.code in (1, 2, LOCKED), woken.said
    assert "Traceback" not in woken.said
    why = ("another build", "another writer", "stopped without publishing", "ticks only go forward")
    assert any(words in woken.said for words in why), woken.said
    # The next of these tests starts with a build on this state.
    assert committed(world) == there
    assert world.published() == tick
    world.check()


def test_a_build_that_wakes_up_during_another_one_stops(lives: Lives, built: World) -> None:
    """The second build has pinned its tick and is suspended, the first one is about to publish."""
    first = stopped(lives, built, "after the tables are synced")
    before = built.published()
    (Path(built.warehouse) / "_sqlrun" / "lock").unlink()
    second = build(lives, built.root, built.as_of, "after the pin", "SIGSTOP")

    woken = lives.wake(first)
    assert woken.code == LOCKED, woken.said
    assert built.published() == before

    ended = lives.wake(second)
    assert ended.code == 0, ended.said
    built.check()


def overtaking(site: Site, owner: Any, name: str, number: int) -> Any:
    """Make another build run its whole tick at the first call of a function."""
    real: Callable[..., Any] = getattr(owner, name)
    done: list[bool] = []

    def instead(*args: Any, **named: Any) -> Any:
        if not done:
            done.append(True)
            other = Site(site.root, DuckDBEngine())
            assert other.tick(START + number * FIVE).published
            other.engine.close()
        return real(*args, **named)

    return mock.patch.object(owner, name, instead)


@pytest.mark.parametrize(
    ("name", "owner"),
    [("plan", batches), ("commit", duckdb_landing), ("pin", Ledger), ("publish", Ledger), ("write", None)],
)
def test_without_a_lock_one_of_two_builds_publishes(built: World, name: str, owner: Any) -> None:
    """Without a working lock (a file system between machines), numbers and versions decide: one build publishes."""
    world = built
    mine = Site(world.root, DuckDBEngine())
    world.arrive()
    # One table at a time: a second thread of this build would disturb the other one, and neither would publish.
    names = ("stg_lines", "stg_sales")
    with overtaking(mine, mine.engine if owner is None else owner, name, world.number), suppress(LockedError):
        assert not mine.tick(START + world.number * FIVE, names).published
    world.check()
    tick = world.published()

    world.arrive()
    assert mine.tick(START + world.number * FIVE).tick > tick
    world.check()
    mine.engine.close()


def test_of_two_concurrent_builds_one_ends_with_a_message(lives: Lives, built: World) -> None:
    """The message names host, pid and start, and comes at once."""
    for _ in range(2):
        built.arrive()
        pids = [lives.begin(built.root, *BUILD, built.as_of) for _ in range(2)]
        ended = {pid: lives.wait(pid) for pid in pids}
        lost = [pid for pid in pids if ended[pid].code == LOCKED]
        assert len(lost) <= 1, "two that run one after the other both win"
        assert sorted(life.code or 0 for life in ended.values())[0] == 0
        for pid in lost:
            (holder,) = set(pids) - {pid}
            assert f"pid {holder} on {os.uname().nodename}, since 20" in ended[pid].said
            assert "build --wait" in ended[pid].said
            assert "START" not in ended[pid].said
        built.check()


def test_a_waiting_build_continues_when_the_holder_is_killed(lives: Lives, built: World) -> None:
    holder = stopped(lives, built, "after a merge")
    refused = build(lives, built.root, built.as_of)
    assert refused.code == LOCKED
    assert f"pid {holder.pid} on" in refused.said
    waiting = lives.begin(built.root, *BUILD, built.as_of, "--wait")
    time.sleep(0.2)

    os.kill(holder.pid, signal.SIGKILL)
    ended = lives.wait(waiting)

    assert ended.code == 0, ended.said
    built.check()


@pytest.mark.parametrize("left", [b"", b"\xff\xfe{", b"5", b"{}", b'{"host": "h", "pid": 1, "since": "then"}' * 40])
def test_the_content_of_a_dead_holders_lock_file_is_ignored(lives: Lives, built: World, left: bytes) -> None:
    file = Path(built.warehouse) / "_sqlrun" / "lock"
    file.write_bytes(left)
    with pytest.raises(LockedError):
        require(built.warehouse, "me")

    life = lives.live(built.root, "rollback", "--to", str(built.ledger.newest(2)[1].tick))

    assert life.code == 0, life.said
    assert f'"pid": {life.pid}' in file.read_text()
    assert file.read_text().endswith("}")
