"""Complete files land between two ticks, before the second; the tick's result is the same."""

from __future__ import annotations

import io
import os
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import EngineError, LockedError
from sqlrun.events import NodeResult, TickResult
from sqlrun.land import land
from sqlrun.project import Profile
from sqlrun.report.build_display import BuildDisplay
from sqlrun.report.console import Console
from sqlrun.run import session as ticking
from sqlrun.run.session import Session, times_of
from sqlrun.sources import folder as source_folder
from tests.support import shops
from tests.support.projects import Site, now
from tests.support.script import FIVE, START
from tests.support.whole import differences

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]
OPTIONS = ("as_of", "replay", "wait", "full_refresh", "accept_lost_files", "env")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = shops.site(tmp_path)
    send(made, "0.jsonl", "a", "b")
    made.tick(START)
    return made


def send(site: Site, name: str, *ids: str, age: float = source_folder.SETTLES, shop: str = "ada") -> None:
    """Add a file that was written `age` seconds ago."""
    shops.send(site, name, *(shops.sale(each, shop) for each in ids))
    at = time.time() - age
    os.utime(site.orders / name, (at, at))


def ahead(site: Site) -> None:
    land.ahead(site.published[-1], now())


def head(site: Site) -> int | None:
    return site.engine.head(site.published[-1].plan.tables[shops.NAME].spec.path)


def ids(site: Site) -> Counter[str]:
    return Counter(row["id"] for row in site.rows(shops.NAME))


def steps(result: TickResult) -> list[tuple[str, str, int, int]]:
    return [(n.name, n.status, n.rows, n.quarantined) for n in result.nodes if isinstance(n, NodeResult)]


def test_the_tick_is_the_same_and_lands_nothing_twice(site: Site, tmp_path: Path) -> None:
    other = shops.site(tmp_path / "other")
    send(other, "0.jsonl", "a", "b")
    other.tick(START)
    for each in (site, other):
        send(each, "1.jsonl", "c", "d")
        send(each, "bad.jsonl", "e", shop="nobody")
    ahead(site)
    for each in (site, other):
        send(each, "2.jsonl", "f")

    results = [each.tick(START + FIVE) for each in (site, other)]

    assert steps(results[0]) == steps(results[1])
    assert results[0].published
    assert ids(site) == ids(other) == Counter("abcdf")
    assert differences(site, START + FIVE) == {}


def test_after_landing_ahead_the_tick_lands_nothing(site: Site) -> None:
    send(site, "1.jsonl", "c")
    before = head(site)
    ahead(site)
    landed = head(site)
    assert landed != before

    with mock.patch.object(DuckDBEngine, "land", wraps=site.engine.land) as asked:
        assert site.tick(START + FIVE).published

    assert asked.call_count == 1
    assert head(site) == landed
    assert ids(site) == Counter("abc")


def test_landing_ahead_costs_the_tick_no_scan_of_the_landing_table(site: Site) -> None:
    """The rules of unpublished rows are checked again; those of the table's other rows were checked by their ticks."""
    send(site, "1.jsonl", "c")
    ahead(site)
    path = site.published[-1].plan.tables[shops.NAME].spec.path

    with mock.patch.object(DuckDBEngine, "query", autospec=True, side_effect=DuckDBEngine.query) as asked:
        assert site.tick(START + FIVE).published

    read = [relation for call in asked.call_args_list for relation in call.args[2] if relation.path == path]
    assert {relation.row_set for relation in read} == {"changes"}
    assert any(relation.name == "held" for relation in read)


def test_without_new_files_no_engine_is_used(site: Site) -> None:
    with mock.patch.object(DuckDBEngine, "land", side_effect=AssertionError):
        ahead(site)


def test_a_file_that_is_being_written_is_left_for_the_tick(site: Site) -> None:
    """Nothing lands, because Spark, which takes all existing files, would take half of it."""
    send(site, "1.jsonl", "c")
    send(site, "2.jsonl", "d", age=1)
    before = head(site)
    ahead(site)
    assert head(site) == before

    site.tick(START + FIVE)

    assert ids(site) == Counter("abcd")


def test_a_build_that_dies_after_it_loses_and_doubles_nothing(site: Site) -> None:
    send(site, "1.jsonl", "c")
    ahead(site)
    send(site, "2.jsonl", "d")
    later = Site(site.root, DuckDBEngine())

    assert later.tick(START + FIVE).published
    assert ids(later) == Counter("abcd")
    assert differences(later, START + FIVE) == {}


def test_a_build_that_lost_the_lock_lands_nothing(site: Site) -> None:
    send(site, "1.jsonl", "c")
    progress, before = site.published[-1], head(site)
    progress.assert_lock_held = mock.Mock(side_effect=LockedError("taken over"))

    with pytest.raises(LockedError):
        ahead(site)
    assert head(site) == before


def every(site: Site, step: str, ticks: int, arrive: Any) -> tuple[int, str]:
    """Run `build --every` with a clock that only waiting advances; `arrive` is called at each wait."""
    out = io.StringIO()
    clock = [START + timedelta(seconds=3)]
    names = tuple(name for name in site.prepared.graph.order if not name.startswith("source:"))
    target = Profile("here", "duckdb", site.warehouse, 2, {})
    console = Console(out=out, err=out, environ={})
    session = Session(site.root, site.prepared, target, names, BuildDisplay(console), lambda: clock[0], False)
    stop = START + ticks * ticking.step_of(step)

    def wait(seconds: float) -> bool:
        arrive(clock[0])
        clock[0] += timedelta(seconds=seconds)
        return clock[0] > stop

    with mock.patch.object(session._stop, "wait", wait):
        code = session.run(asked := dict.fromkeys(OPTIONS) | {"every": step, "step": "5m"}, times_of(asked))
    return code, out.getvalue()


def test_every_lands_ahead_of_each_tick(site: Site) -> None:
    asked: list[datetime] = []
    arrived: dict[str, datetime] = {}
    really = land.ahead

    def arrive(at: datetime) -> None:
        name = f"n{len(arrived)}"
        arrived[name] = at
        send(site, f"{name}.jsonl", name)

    def landed(progress: Any, at: datetime) -> None:
        before = head(site)
        really(progress, at)
        asked.append(at)
        assert head(site) != before

    with mock.patch.object(land, "ahead", landed):
        code, words = every(site, "5m", 3, arrive)

    assert code == 0, words
    assert [at - START for at in asked] == [timedelta(minutes=5 * n) - ticking.AHEAD for n in (1, 2, 3)]
    newest = site.ledger.read().published
    assert newest is not None
    assert newest.as_of == START + 3 * FIVE
    assert differences(site, newest.as_of) == {}
    assert ids(site) == Counter(["a", "b", *(name for name, at in arrived.items() if at < newest.as_of)])


def test_short_steps_leave_all_to_the_tick(site: Site) -> None:
    with mock.patch.object(land, "ahead", side_effect=AssertionError):
        assert every(site, "30s", 3, lambda at: None)[0] == 0


def test_a_failure_ahead_is_reported_by_the_tick(site: Site) -> None:
    with mock.patch.object(land, "ahead", side_effect=EngineError("not now")):
        code, words = every(site, "5m", 2, lambda at: None)

    assert code == 0
    assert "not now" not in words
