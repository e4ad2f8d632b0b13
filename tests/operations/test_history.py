"""Past ticks can be listed, shown, compared and rolled back to; later builds are correct."""

from __future__ import annotations

import shutil
from datetime import datetime, timezone
from pathlib import Path

import pytest

import sqlrun
from sqlrun.engine_api import Receipt
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import Place, UsageError
from sqlrun.events import CheckResult, NodeResult, StageReceipt, TickResult
from sqlrun.operations import rollback
from sqlrun.outcome import Outcome
from sqlrun.publish.reader import tick_of
from sqlrun.report.console import Console
from sqlrun.system_tables import receipts
from tests.support.projects import Site, copy_project
from tests.support.script import FIVE, START, order
from tests.support.whole import differences

pytestmark = pytest.mark.slow
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return three ticks: two orders, one more, a correction of the first one."""
    made = Site(copy_project(tmp_path_factory.mktemp("built")), DuckDBEngine())
    made.write("0.jsonl", [order("1", START - FIVE, restaurant="r9001"), order("2", START - FIVE, restaurant="r9002")])
    first = made.tick(START)
    receipts.write(made.warehouse, first, "duckdb", NOW)
    made.write("1.jsonl", [order("3", START, restaurant="r9001")])
    made.tick(START + FIVE)
    made.write("2.jsonl", [order("1", START - FIVE, restaurant="r9003", version=2)])
    made.tick(START + 2 * FIVE)
    return made.root


@pytest.fixture
def site(built: Path, tmp_path: Path) -> Site:
    return Site(shutil.copytree(built, tmp_path / "site"), DuckDBEngine())


def back(site: Site, tick: int) -> None:
    rollback.roll_back(site.ledger, tick, NOW, Console(quiet=True))


def restaurants(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return sorted((row["change"], row["restaurant_id"], row["n_orders"]) for row in rows if row["window_hours"] == 24)


def test_ticks_are_listed_the_newest_first(site: Site) -> None:
    lines = rollback.list_ticks(site.ledger, 2)

    assert [line.split()[0] for line in lines[2:]] == ["3", "2"]
    assert ", current" in lines[2]
    assert ", current" not in lines[3]


def test_ticks_list_the_outcomes_of_their_checks(site: Site) -> None:
    """Passed, warned and failed checks are counted; a tick without run stats shows none."""
    place = Place("x.yml")
    states = [Outcome.PASS, Outcome.PASS, Outcome.WARN, Outcome.FAIL]
    checks = tuple(CheckResult("m", "t", (), "critical", s, 1, 0, (), 0.0, "", "", place) for s in states)
    stage = StageReceipt("m", "merge", "", 3, 1, Receipt(0.5))
    node = NodeResult(1, 1, "m", "merge", "success", 0.5, stages=(stage,))
    receipts.write(site.warehouse, TickResult(3, START, True, 1.0, (node,), checks), "duckdb", NOW)

    lines = rollback.list_ticks(site.ledger, 2)

    assert "2 passed, 1 warned, 1 failed" in lines[2]
    assert "passed" not in lines[3]


def test_a_tick_that_was_never_published_is_listed_as_such(site: Site) -> None:
    site.ledger.pin(4, START + 3 * FIVE, {}, NOW, "somebody")

    assert "not published" in rollback.list_ticks(site.ledger, 1)[2]
    with pytest.raises(UsageError, match=r"tick 4 was never published\. The newest tick is 3"):
        tick_of(site.ledger, 4)


def test_a_difference_shows_inserted_and_deleted_rows(site: Site) -> None:
    rows = rollback.difference(site.ledger, "restaurant_windows", None, None)
    assert restaurants(rows) == [("+", "r9001", 1), ("+", "r9003", 1), ("-", "r9001", 2)]

    rows = rollback.difference(site.ledger, "restaurant_windows", 1, 2)
    assert restaurants(rows) == [("+", "r9001", 2), ("-", "r9001", 1)]
    assert rollback.difference(site.ledger, "restaurant_windows", 2, 2) == []


def test_the_first_tick_has_nothing_before_it(site: Site) -> None:
    with pytest.raises(UsageError, match="no tick before tick 1"):
        rollback.difference(site.ledger, "restaurant_windows", None, 1)


def test_a_rollback_shows_the_old_tick_and_the_next_build_processes_all_lines_again(site: Site) -> None:
    back(site, 1)

    assert sorted(row["restaurant_id"] for row in site.rows("restaurant_windows") if row["window_hours"] == 24) == [
        "r9001", "r9002",
    ]  # fmt: skip
    published = site.ledger.read().published
    assert published and (published.tick, published.as_of) == (4, START)
    site.write("3.jsonl", [order("4", START + FIVE, restaurant="r9002")])
    result = site.tick(START + 3 * FIVE)
    assert result.published
    assert differences(site, START + 3 * FIVE) == {}
    assert len(site.rows("stg_orders")) == 4


def test_a_rollback_can_be_undone(site: Site) -> None:
    before = site.rows("restaurant_windows")
    back(site, 1)
    back(site, 3)

    assert site.rows("restaurant_windows") == before
    assert site.tick(START + 2 * FIVE).published
    assert differences(site, START + 2 * FIVE) == {}


def test_a_rollback_can_be_undone_after_a_build(site: Site) -> None:
    """The way back passes commits that the first rollback undid."""
    back(site, 1)
    assert site.tick(START + 3 * FIVE, ("stg_orders",)).published
    back(site, 3)

    assert site.tick(START + 4 * FIVE, ("stg_orders", "fct_restaurant_slots")).published
    assert len(site.rows("stg_orders")) == 3
    assert differences(site, START + 4 * FIVE).keys() <= {"restaurant_windows", "restaurant_customers"}


@pytest.mark.parametrize(("tick", "why"), [(3, "is the current one"), (9, "was never published")])
def test_a_rollback_to_an_invalid_tick_is_refused(site: Site, tick: int, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        back(site, tick)

    assert site.ledger.read().last_tick == 3


def test_a_rollback_to_files_that_are_gone_is_refused(site: Site) -> None:
    old = site.ledger.published(1)
    assert old is not None
    folder = Path(site.warehouse) / old.tables["restaurant_windows"].path
    for file in folder.rglob("*.parquet"):
        file.unlink()

    with pytest.raises(UsageError, match="tick 1 can't be restored: restaurant_windows at version"):
        back(site, 1)

    assert site.ledger.read().last_tick == 3


def test_nothing_is_published_yet(tmp_path: Path) -> None:
    empty = Site(copy_project(tmp_path), DuckDBEngine())

    for ask in (lambda: rollback.list_ticks(empty.ledger, 5), lambda: back(empty, 1)):
        with pytest.raises(UsageError, match="nothing is published"):
            ask()


def test_python_reads_published_tables(site: Site) -> None:
    """The function needs only the warehouse."""
    rows = sqlrun.published("restaurant_windows", site.warehouse).to_pylist()
    assert sorted(r["restaurant_id"] for r in rows if r["window_hours"] == 24) == ["r9001", "r9002", "r9003"]
    assert sqlrun.published("stg_orders", site.warehouse, tick=1).num_rows == 2
    assert sqlrun.published("stg_order_events__quarantine", site.warehouse).num_rows == 0
    with pytest.raises(UsageError, match="Did you mean `stg_orders`"):
        sqlrun.published("stg_order", site.warehouse)
