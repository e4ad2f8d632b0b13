"""Guarantees of a tick: all or nothing, every number once, the truth after any crash."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.duckdb import landing as duckdb_landing
from sqlrun.errors import EngineError, LockedError, UsageError
from sqlrun.events import Started
from sqlrun.outcome import Outcome
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import find, query
from sqlrun.run import scheduler
from sqlrun.storage import lock
from tests.support.projects import Site
from tests.support.script import FIVE, START, order, site_of_orders
from tests.support.whole import differences

pytestmark = pytest.mark.slow


class Stop(Exception):
    """A crash at a chosen moment."""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return site_of_orders(tmp_path)


def total(site: Site) -> int:
    return sum(row["n_orders"] for row in site.rows("restaurant_windows") if row["window_hours"] == 168)


def test_the_first_tick_publishes_every_table(site: Site) -> None:
    """One tick has all models and seeds."""
    result = site.tick(START)

    assert result.published
    assert differences(site, START) == {}
    assert total(site) == 29
    checked = [node for node in result.nodes if node.kind != "seed"]
    assert checked and all(0 < (node.stages[-1].check_seconds or 0) < node.seconds for node in checked)


def test_a_tick_without_changes_writes_only_the_ledger(site: Site) -> None:
    """Same time and no new file: versions stay, only the tick's number increases."""
    site.tick(START)
    before = site.ledger.read().published
    result = site.tick(START)
    after = site.ledger.read().published

    assert before and after and result.tick == 2
    assert {n: t.version for n, t in before.tables.items()} == {n: t.version for n, t in after.tables.items()}
    assert {n.status for n in result.nodes} == {"no-op"}


@pytest.mark.skipif(sys.platform != "linux", reason="a thread has no priority of its own")
def test_checks_have_a_lower_priority_than_maintenance(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel ranks the threads of checks below the threads of maintenance."""
    ranks: dict[str, set[int]] = {"check": set(), "maintain": set()}
    for name in ranks:
        real = getattr(scheduler, name)

        def ranked(*args: Any, name: str = name, real: Any = real) -> Any:
            ranks[name].add(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
            return real(*args)

        monkeypatch.setattr(scheduler, name, ranked)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    site.tick(START)

    assert ranks == {"check": {min(19, own + 5)}, "maintain": {own}}


def test_a_model_is_reported_to_start_when_a_thread_is_free_for_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three models that read orders alone, two may start while a third waits for one of two threads."""
    guard, done, most = threading.Lock(), set[str](), 0
    real = scheduler.maintain

    def maintained(context: Any, model: Any, *rest: Any) -> Any:
        nonlocal most
        with guard:
            begun = {e.what.split()[-1] for e in site.events if isinstance(e, Started) and " model " in e.what}
            most = max(most, len(begun - done))
        assert model.name in begun
        time.sleep(0.05)
        found = real(context, model, *rest)
        with guard:
            done.add(model.name)
        return found

    monkeypatch.setattr(scheduler, "maintain", maintained)
    site.events.clear()

    assert site.tick(START).published
    assert most == 2


def test_the_rows_of_a_seed_are_those_that_changed(site: Site) -> None:
    """A row that left counts, as one that was edited; the rest of the seed doesn't."""

    def rows() -> tuple[str, int]:
        changed = Site(site.root, site.engine).tick(START)
        return next((node.status, node.rows) for node in changed.nodes if node.name == "dishes")

    file = site.root / "seeds" / "dishes.csv"
    text = file.read_text()
    lines = text.splitlines()
    assert rows() == ("success", len(lines) - 1)
    file.write_text("\n".join(lines[:-1]) + "\n")
    assert rows() == ("success", 1)
    file.write_text(text)
    assert rows() == ("success", 1)
    file.write_text(text.replace("Greek", "Cretan").replace(lines[-1] + "\n", ""))
    assert rows() == ("success", 2)
    assert rows() == ("no-op", 0)


def test_windows_move_on_without_new_data(site: Site) -> None:
    """An hour later the one-hour window is empty, although no file has arrived."""
    site.tick(START)
    site.tick(START + 12 * FIVE)

    assert not [row for row in site.rows("restaurant_windows") if row["window_hours"] == 1]
    assert differences(site, START + 12 * FIVE) == {}


def test_time_moves_only_forward(site: Site) -> None:
    """An as_of before the published one is rejected."""
    site.tick(START)

    with pytest.raises(UsageError, match="ticks only go forward"):
        site.tick(START - FIVE)


def test_a_critical_check_keeps_the_last_good_tick(site: Site) -> None:
    """Readers see nothing of a tick with a failed check; after the fix all is right."""
    site.tick(START)
    suite = site.root / "expectations" / "marts" / "restaurant_windows.yml"
    good = suite.read_text()
    suite.write_text(
        "expectations:\n  - {type: expect_column_values_to_be_between, kwargs: {column: n_orders, max_value: 0}}\n"
    )
    site.write("1.jsonl", [order("77", START + FIVE)])
    broken = Site(site.root, site.engine)
    result = broken.tick(START + FIVE)

    assert not result.published
    assert [c.status for c in result.checks if c.status == "fail"] == ["fail"]
    assert total(site) == 29

    suite.write_text(good)
    assert Site(site.root, site.engine).tick(START + FIVE).published
    assert total(site) == 30
    assert differences(site, START + FIVE) == {}


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_a_late_failed_check_skips_the_models_below(
    site: Site, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """Models below may be written before the check above them is done; they are skipped anyway."""
    site.tick(START)
    site.write("1.jsonl", [order("77", START + FIVE)])
    real = scheduler.check

    def failing(progress: Any, model: Any, change: Any) -> Any:
        said = real(progress, model, change)
        if model.name != "stg_orders":
            return said
        time.sleep(seconds)
        return replace(said[0], status=Outcome.FAIL), *said[1:]

    monkeypatch.setattr(scheduler, "check", failing)
    result = site.tick(START + FIVE)

    assert not result.published
    status = {node.name: node.status for node in result.nodes}
    assert status["stg_order_events"] == status["stg_orders"] == "success"
    assert {s for name, s in status.items() if name.startswith(("fct_", "restaurant_windows"))} == {"skipped"}
    assert [c.model for c in result.checks if c.status == "fail"] == ["stg_orders"]
    monkeypatch.undo()
    assert site.tick(START + FIVE).published
    assert total(site) == 30
    assert differences(site, START + FIVE) == {}


def test_a_failed_checksum_of_a_hidden_table_is_its_models_error(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checksum is computed while its model's other tables are still being written."""
    real, asked = scheduler.add_to_states, list[str]()

    def failing(progress: Any, tables: tuple[str, ...], *rest: Any) -> None:
        asked.extend(tables)
        if "restaurant_windows__state_1" in tables:
            raise EngineError("no such file")
        real(progress, tables, *rest)

    monkeypatch.setattr(scheduler, "add_to_states", failing)
    result = site.tick(START)

    assert not result.published and asked.index("restaurant_windows__state_1") < asked.index("restaurant_windows")
    errors = {node.name: node.message for node in result.nodes if node.status == "error"}
    assert errors == {"restaurant_windows": "no such file"}
    monkeypatch.undo()
    assert site.tick(START).published
    assert differences(site, START) == {}


def test_a_failed_model_skips_the_models_below(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine's error in one model: everything below it is skipped, nothing is published."""
    write = site.engine.write

    def failing(request: Any) -> Any:
        if request.table.name == "stg_orders":
            raise EngineError("no more disk", model="stg_orders")
        return write(request)

    monkeypatch.setattr(site.engine, "write", failing)
    result = site.tick(START)

    statuses = {n.name: n.status for n in result.nodes}
    assert statuses["stg_orders"] == "error"
    assert {n for n, s in statuses.items() if s == "skipped"} >= {"fct_restaurant_slots", "restaurant_windows"}
    assert site.ledger.read().published is None


def crash_points() -> Iterator[tuple[str, Callable[[pytest.MonkeyPatch, Site], None]]]:
    """Yield every step boundary of a tick, as a patch that stops there."""

    def after(name: str) -> Callable[[pytest.MonkeyPatch, Site], None]:
        def patch(monkeypatch: pytest.MonkeyPatch, site: Site) -> None:
            real = site.engine.write

            def stopping(request: Any) -> Any:
                done = real(request)
                if request.table.name == name:
                    raise Stop(name)
                return done

            monkeypatch.setattr(site.engine, "write", stopping)

        return patch

    def ledger(method: str, *, before: bool) -> Callable[[pytest.MonkeyPatch, Site], None]:
        def patch(monkeypatch: pytest.MonkeyPatch, site: Site) -> None:
            real = getattr(Ledger, method)

            def stopping(self: Ledger, *args: Any) -> Any:
                if not before:
                    real(self, *args)
                raise Stop(method)

            monkeypatch.setattr(Ledger, method, stopping)

        return patch

    def planned(monkeypatch: pytest.MonkeyPatch, site: Site) -> None:
        def stopping(*args: Any) -> int:
            raise Stop("planned, not committed")

        monkeypatch.setattr(duckdb_landing, "commit", stopping)

    yield "files planned", planned
    yield "before pin", ledger("pin", before=True)
    yield "after pin", ledger("pin", before=False)
    for name in ("stg_orders", "fct_restaurant_slots", "fct_restaurant_dish_slots", "fct_restaurant_hours"):
        yield f"after {name}", after(name)
    for name in ("restaurant_windows__state_1", "restaurant_windows__state_2", "restaurant_windows"):
        yield f"after {name}", after(name)
    yield "before publish", ledger("publish", before=True)
    yield "after publish", ledger("publish", before=False)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("name", "patch"), list(crash_points()), ids=[n for n, _ in crash_points()])
def test_a_crash_anywhere_leaves_no_trace(
    site: Site, monkeypatch: pytest.MonkeyPatch, name: str, patch: Callable[[pytest.MonkeyPatch, Site], None]
) -> None:
    """The next tick returns the oracle's rows, and no tick's number is used twice."""
    site.tick(START)
    site.write("1.jsonl", [order("3", START - 3 * FIVE, 2, "cancelled"), order("78", START + FIVE)])
    with monkeypatch.context() as patched:
        patch(patched, site)
        with pytest.raises(Stop):
            site.tick(START + FIVE)
    used = site.ledger.read().last_tick

    site.write("2.jsonl", [order("79", START + 2 * FIVE)])
    result = site.tick(START + 2 * FIVE)

    assert result.published and result.tick > used
    assert differences(site, START + 2 * FIVE) == {}
    assert len(site.rows("stg_order_events")) == 32


@pytest.mark.disk
def test_a_lost_checkpoint_is_rejected(site: Site) -> None:
    """Without its checkpoint a landing table would be doubled."""
    site.tick(START)
    for file in (Path(site.warehouse) / "_sqlrun" / "checkpoints").rglob("id"):
        file.unlink()
    result = site.tick(START + FIVE)

    assert not result.published
    assert "checkpoint is missing" in next(n.message for n in result.nodes if n.status == "error")


def test_full_refresh_builds_a_new_path_and_switches(site: Site) -> None:
    """A rebuilt model has a new path and the same rows; its readers are right."""
    site.tick(START)
    before = site.ledger.read().published
    site.write("1.jsonl", [order("78", START + FIVE)])
    result = site.tick(START + FIVE, select=("stg_orders",), refresh=True)
    after = site.ledger.read().published

    assert result.published and before and after
    assert before.tables["stg_orders"].path != after.tables["stg_orders"].path
    assert site.tick(START + 2 * FIVE).published
    assert differences(site, START + 2 * FIVE) == {}


def test_an_unselected_model_catches_up(site: Site) -> None:
    """Three ticks of staging alone, then all: the facts read several commits at once."""
    site.tick(START)
    for number in range(1, 4):
        site.write(f"{number}.jsonl", [order(str(number), START - number * FIVE, number + 1, "updated", "r9001")])
        assert site.tick(START + number * FIVE, select=("stg_order_events", "stg_orders")).published

    assert site.tick(START + 4 * FIVE).published
    assert differences(site, START + 4 * FIVE) == {}


def test_a_model_without_its_inputs_is_rejected(site: Site) -> None:
    """The error for a selection whose inputs were never built names what to build."""
    with pytest.raises(UsageError, match="never built"):
        site.tick(START, select=("fct_restaurant_slots",))


def test_a_changed_seed_updates_its_readers(site: Site) -> None:
    """A dish gets another name; the mart shows it in the next tick."""
    site.tick(START)
    seed = site.root / "seeds" / "dishes.csv"
    lines = seed.read_text().splitlines()
    fields = lines[1].split(",")
    seed.write_text("\n".join([lines[0], ",".join([fields[0], "Renamed", *fields[2:]]), *lines[2:]]) + "\n")
    again = Site(site.root, site.engine)

    assert again.tick(START).published
    assert differences(again, START) == {}
    names = {d["dish_name"] for row in again.rows("restaurant_windows") for d in row["top_dishes"]}
    assert "Renamed" in names


def test_broken_lines_are_quarantined_with_their_reason(site: Site) -> None:
    """Text, file and reason of every quarantined line; valid lines of the same file land."""
    site.write("1.jsonl", ["{bad", order("78", START), order("79", START, items=(("d001", -1, "1.00"),)), '{"a": 1}'])
    site.tick(START)
    published = site.ledger.read().published
    assert published is not None
    rows = query(
        'select * from "stg_order_events__quarantine"',
        [find(published, site.warehouse, "stg_order_events__quarantine")],
    ).to_pylist()

    assert sorted(row["_raw"] for row in rows)[-1] == "{bad"
    assert {row["_file"] for row in rows} == {"1.jsonl"}
    assert len(rows) == 3 and all(row["_reason"] for row in rows)
    assert "x78" in {row["order_id"] for row in site.rows("stg_order_events")}


def test_two_builds_cannot_take_one_tick(site: Site) -> None:
    """Of two ledgers that pin the same number, the second gets an error."""
    now = datetime.now(timezone.utc)
    site.ledger.pin(1, START, {}, now, "first")

    with pytest.raises(LockedError):
        site.ledger.pin(1, START, {}, now, "second")


def test_the_second_build_names_the_first(site: Site) -> None:
    """The lock's message names the process that has it."""
    now = datetime.now(timezone.utc)
    with (
        lock.hold(site.warehouse, now) as me,
        pytest.raises(LockedError, match=f"pid {json.loads(me)['pid']}"),
        lock.hold(site.warehouse, now),
    ):
        pass


def test_recover_restores_unpublished_tables(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table ahead of its published version is restored to it, and its version number increases."""
    site.tick(START)
    published = site.ledger.read().published
    assert published is not None
    state = published.tables["stg_orders"]
    path = f"{site.warehouse}/{state.path}"
    site.write("1.jsonl", [order("78", START + FIVE)])
    with monkeypatch.context() as patched:

        def stopping(*args: Any) -> None:
            raise Stop

        patched.setattr(Ledger, "publish", stopping)
        with pytest.raises(Stop):
            site.tick(START + FIVE)
    assert (site.engine.head(path) or 0) > state.version

    assert site.tick(START + FIVE).published
    assert differences(site, START + FIVE) == {}
