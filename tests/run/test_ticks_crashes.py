"""Interrupted ticks, with edits and races in between: published, or without any effect."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb import merge as duckdb_merge
from sqlrun.errors import LockedError
from sqlrun.publish import ledger as ledger_module
from sqlrun.publish.ledger import Ledger
from sqlrun.storage import lock
from tests.support.projects import ROOT, Site
from tests.support.script import FIVE, START, order, site_of_orders
from tests.support.whole import differences

pytestmark = [pytest.mark.slow, pytest.mark.long]


class Stop(Exception):
    """A crash at a chosen moment."""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return site_of_orders(tmp_path)


def now() -> datetime:
    return datetime.now(timezone.utc)


def crash(site: Site, as_of: datetime, monkeypatch: pytest.MonkeyPatch, after: str = "") -> None:
    """Stop a tick after a table's write, or before it is published."""
    real: Callable[[Any], Any] = site.engine.write

    def writing(request: Any) -> Any:
        done = real(request)
        if request.table.name == after:
            raise Stop
        return done

    def publishing(*_: Any) -> None:
        raise Stop

    with monkeypatch.context() as patched:
        patched.setattr(site.engine, "write", writing)
        patched.setattr(Ledger, "publish", publishing)
        with pytest.raises(Stop):
            site.tick(as_of)


def heads(site: Site) -> dict[str, int]:
    published = site.ledger.read().published
    assert published is not None
    paths = {name: f"{site.warehouse}/{state.path}" for name, state in published.tables.items()}
    return {name: site.engine.head(path) or 0 for name, path in paths.items()}


def files(site: Site) -> set[Path]:
    """Return the data files of all tables except for landings."""
    found = Path(site.warehouse).glob("[!_]*/*/**/*.parquet")
    return {file for file in found if "_delta_log" not in file.parts and file.parts[-3] != "stg_order_events"}


@pytest.mark.parametrize("refused", [False, True])
def test_no_model_is_committed_before_its_tick_is_pinned(
    site: Site, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one is computed meanwhile; if another build has taken the tick, nothing of it is left."""
    site.tick(START)
    before, there = heads(site), files(site)
    site.write("more.jsonl", [order("77", START)])
    real, worked_out, seen = Ledger.pin, threading.Event(), list[dict[str, int]]()
    staying = duckdb_merge._require_all

    def written(write: Any, *rest: Any) -> None:
        staying(write, *rest)
        worked_out.set()

    def pinning(self: Ledger, *args: Any) -> int:
        assert worked_out.wait(20)
        time.sleep(0.1)  # a write that didn't wait would be committed by now
        seen.append(heads(site))
        if refused:
            raise LockedError("taken by another build")
        return real(self, *args)

    monkeypatch.setattr(duckdb_merge, "_require_all", written)
    monkeypatch.setattr(Ledger, "pin", pinning)
    if refused:
        with pytest.raises(LockedError, match="taken by another build"):
            site.tick(START + FIVE)
        assert heads(site) == {**before, "stg_order_events": before["stg_order_events"] + 1}
        assert files(site) == there
        monkeypatch.setattr(Ledger, "pin", real)
    assert site.tick(START + FIVE).published
    assert {name: head for name, head in seen[0].items() if name != "stg_order_events"} == {
        name: head for name, head in before.items() if name != "stg_order_events"
    }
    assert differences(site, START + FIVE) == {}


@pytest.mark.slow
@pytest.mark.parametrize("after", ["dishes", "stg_orders", "restaurant_windows", ""])
def test_an_interrupted_first_tick_is_rolled_back(site: Site, monkeypatch: pytest.MonkeyPatch, after: str) -> None:
    """Nothing is published yet: the next build restores the empty tables."""
    crash(site, START, monkeypatch, after)

    assert site.ledger.read().published is None
    assert site.tick(START).published
    assert differences(site, START) == {}
    assert len(site.rows("stg_order_events")) == 29


@pytest.mark.slow
def test_two_interrupted_ticks_in_a_row_are_rolled_back(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers stay at the last good tick throughout; every number is used once."""
    site.tick(START)
    before = site.rows("restaurant_windows")
    for number, after in enumerate(("fct_restaurant_slots", ""), 1):
        site.write(f"{number}.jsonl", [order("1", START - FIVE, number + 1, "updated"), order(f"9{number}", START)])
        crash(site, START + number * FIVE, monkeypatch, after)

        assert site.ledger.read().last_tick == number + 1
        assert site.rows("restaurant_windows") == before
    result = site.tick(START + 3 * FIVE)

    assert result.published and result.tick == 4
    assert differences(site, START + 3 * FIVE) == {}


@pytest.mark.slow
def test_rows_of_a_crashed_tick_arrive_without_new_files(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the unpublished tick are the next tick's changes, although no file has arrived."""
    site.tick(START)
    site.write("1.jsonl", [order("1", START - FIVE, 2, "cancelled")])
    crash(site, START + FIVE, monkeypatch)

    assert site.tick(START + FIVE).published
    assert differences(site, START + FIVE) == {}
    assert not [row for row in site.rows("stg_orders") if row["order_id"] == "x1" and not row["is_cancelled"]]


def test_a_selection_after_a_crash_keeps_landed_rows(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A landing table that a selection only reads keeps its rows: no stream reads their files again."""
    site.tick(START)
    site.write("1.jsonl", [order("78", START)])
    crash(site, START + FIVE, monkeypatch, "stg_orders")

    assert site.tick(START + FIVE, ("stg_orders",)).published
    assert site.tick(START + FIVE).published
    assert len(site.rows("stg_order_events")) == 30


@pytest.mark.slow
def test_a_query_edited_after_a_crash_builds_from_published_rows(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another meaning, another path: the new facts are built from staging as it was published."""
    site.tick(START)
    site.write("1.jsonl", [order("78", START)])
    crash(site, START + FIVE, monkeypatch, "restaurant_windows")
    model = site.root / "models" / "facts" / "fct_restaurant_slots.sql"
    model.write_text(model.read_text().replace("not is_cancelled", "not is_cancelled and restaurant_id <> 'r9001'"))
    edited = Site(site.root, site.engine)

    assert edited.tick(START + FIVE).published
    assert differences(edited, START + FIVE) == {}
    assert {row["restaurant_id"] for row in edited.rows("fct_restaurant_slots")} == {"r9000", "r9002"}


@pytest.mark.slow
def test_a_published_tick_is_at_most_one_commit_a_table(site: Site) -> None:
    """Late, corrected and cancelled orders in one tick: one commit for each table that changes."""
    site.tick(START)
    before = heads(site)
    site.write(
        "1.jsonl", [order("1", START - FIVE, 2, "cancelled"), order("2", START - 90 * FIVE, 2), order("9", START)]
    )
    assert site.tick(START + FIVE).published

    grown = Counter({name: version - before[name] for name, version in heads(site).items()})
    assert max(grown.values()) == 1
    assert {"restaurants", "dishes"} & {name for name, count in grown.items() if count} == set()


@pytest.mark.slow
def test_a_refreshed_model_has_the_same_rows(site: Site) -> None:
    """It gets a new path, while its readers stay as they are until their own next tick."""
    site.tick(START)
    before = site.ledger.read().published
    rows = {name: site.rows(name) for name in ("fct_restaurant_slots", "restaurant_windows")}
    assert site.tick(START, select=("fct_restaurant_slots",), refresh=True).published
    after = site.ledger.read().published

    assert before and after
    moved = {name for name, state in after.tables.items() if state.path != before.tables[name].path}
    assert moved == {"fct_restaurant_slots"}

    def ordered(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(found, key=str)

    assert {name: ordered(site.rows(name)) for name in rows} == {name: ordered(kept) for name, kept in rows.items()}
    site.write("1.jsonl", [order("1", START - FIVE, 2, "cancelled")])
    assert site.tick(START + FIVE).published
    assert differences(site, START + FIVE) == {}


@pytest.mark.slow
def test_a_crashed_refresh_gets_a_new_path(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The half-made table is ignored: the next refresh has its own path."""
    site.tick(START)
    real = site.engine.write

    def writing(request: Any) -> Any:
        real(request)
        raise Stop

    with monkeypatch.context() as patched:
        patched.setattr(site.engine, "write", writing)
        with pytest.raises(Stop):
            site.tick(START, select=("stg_orders",), refresh=True)

    assert site.tick(START, select=("stg_orders",), refresh=True).published
    assert site.tick(START + FIVE).published
    assert differences(site, START + FIVE) == {}


def test_of_two_racing_ledgers_one_fails(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have seen that the number is free; one of the two commits fails with a message."""
    one, other = (Ledger(site.warehouse, "restaurant_dashboard") for _ in range(2))
    one.pin(1, START, {}, now(), "one")
    real = delta_table.commit
    raced: list[bool] = []

    def committing(app_id: str, tick: int, metadata: dict[str, str]) -> Any:
        if not raced:
            raced.append(True)
            other.pin(2, START, {}, now(), "the faster one")
        return real(app_id, tick, metadata)

    monkeypatch.setattr(ledger_module.delta_table, "commit", committing)
    with pytest.raises(LockedError, match="took tick 2"):
        one.pin(2, START, {}, now(), "the slower one")

    assert one.read().last_tick == 2


def test_the_lock_of_another_process_is_named(tmp_path: Path) -> None:
    """The message has its pid; after its death the warehouse is free."""
    script = (
        "import sys; from datetime import datetime, timezone; from sqlrun.storage import lock\n"
        f"with lock.hold({str(tmp_path)!r}, datetime.now(timezone.utc)) as me:\n"
        "    print(me, flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        held = json.loads(holder.stdout.readline())
        with pytest.raises(LockedError, match=f"pid {holder.pid} on {held['host']}"), lock.hold(str(tmp_path), now()):
            pass
        messages: list[str] = []

        def free(message: str) -> None:
            messages.append(message)
            holder.kill()

        with lock.hold(str(tmp_path), now(), free):
            assert f"pid {holder.pid}" in messages[0]
    assert held["pid"] == holder.pid

    with lock.hold(str(tmp_path), now()):
        pass
