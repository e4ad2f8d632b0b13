"""`sqlrun maintain` changes files and no row; what a kept tick needs stays, and the next tick is true."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from sqlrun import history, upkeep
from sqlrun.console import Console
from sqlrun.engines import delta_files
from sqlrun.engines.duckdb import DuckDBEngine
from sqlrun.errors import UsageError
from sqlrun.pipeline import prepare
from sqlrun.readers import tick_of
from tests.projects import Site, copy_project
from tests.script import FIVE, START, order
from tests.whole import differences

pytestmark = pytest.mark.slow
NOW = datetime.now(timezone.utc)
TICKS = 6


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six ticks, each with two new orders and a correction of the one before."""
    made = Site(copy_project(tmp_path_factory.mktemp("built")), DuckDBEngine())
    for number in range(1, TICKS + 1):
        at = START + number * FIVE
        lines = [order(f"{number}-{n}", at - FIVE, restaurant=f"r900{n}") for n in range(2)]
        if number > 1:
            lines.append(order(f"{number - 1}-0", at - FIVE, restaurant="r9002", version=2))
        made.write(f"{number}.jsonl", lines)
        assert made.tick(at).published
    return made.root


@pytest.fixture
def site(built: Path, tmp_path: Path) -> Site:
    """Those ticks, in a folder of the test's own."""
    return Site(shutil.copytree(built, tmp_path / "site"), DuckDBEngine())


def maintained(site: Site, keep: int) -> upkeep.Done:
    return upkeep.maintain(site.ledger, keep, NOW, lambda _: None)


def files(site: Site) -> set[str]:
    return {f.as_posix() for f in Path(site.warehouse).rglob("*.parquet") if "_delta_log" not in f.parts}


def age(site: Site) -> None:
    """Rewrite the logs as if there had been one commit a day, the newest of them weeks ago."""
    for log in Path(site.warehouse).rglob("_delta_log/*.json"):
        moment = int((NOW - timedelta(days=60 - int(log.stem))).timestamp() * 1000)
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = moment
            if "remove" in action:
                action["remove"]["deletionTimestamp"] = moment
        log.write_text("".join(json.dumps(action) + "\n" for action in actions))


def test_rows_stay_and_files_are_fewer(site: Site) -> None:
    before = site.everything()
    assert live(site, "stg_order_events") == TICKS

    done = maintained(site, TICKS)

    assert done.tick == TICKS + 1
    assert done.merged > done.made > 0
    assert site.everything() == before
    assert live(site, "stg_order_events") == 1


def live(site: Site, name: str) -> int:
    table = delta_files.open_table(f"{site.warehouse}/{tick_of(site.ledger).tables[name].path}")
    return len(delta_files.files_at(table))


def test_every_kept_tick_is_as_it_was(site: Site) -> None:
    age(site)
    kept = range(TICKS - 2, TICKS + 1)
    before, count = {tick: site.everything(tick) for tick in kept}, len(files(site))

    done = maintained(site, len(kept))

    assert done.files > 0
    assert len(files(site)) < count
    assert {tick: site.everything(tick) for tick in kept} == before


def test_the_next_ticks_are_true_and_an_idle_one_is_idle(site: Site) -> None:
    age(site)
    maintained(site, 1)

    idle = site.tick(START + TICKS * FIVE)
    assert {node.status for node in idle.nodes} == {"no-op"}
    site.write("more.jsonl", [order("1-1", START, restaurant="r9002", version=3), order("new", START + TICKS * FIVE)])
    assert site.tick(START + (TICKS + 1) * FIVE).published
    assert differences(site, START + (TICKS + 1) * FIVE) == {}


def test_a_second_run_has_nothing_to_do(site: Site) -> None:
    maintained(site, 2)

    done = maintained(site, 2)

    assert done.tick is None


def test_going_back_to_a_kept_tick_works_after_it(site: Site) -> None:
    age(site)
    before = site.everything(TICKS - 1)
    assert maintained(site, 3).files > 0

    history.roll_back(site.ledger, TICKS - 1, NOW, Console(quiet=True))

    assert site.everything() == before
    site.write("more.jsonl", [order("new", START + TICKS * FIVE)])
    assert site.tick(START + (TICKS + 1) * FIVE).published
    assert differences(site, START + (TICKS + 1) * FIVE) == {}


def test_a_tick_whose_files_are_gone_is_not_gone_back_to(site: Site) -> None:
    age(site)
    assert maintained(site, 1).files > 0

    with pytest.raises(UsageError, match="tick 2 can't be gone back to"):
        history.roll_back(site.ledger, 2, NOW, Console(quiet=True))


def test_a_table_of_an_old_meaning_goes_with_the_ticks_that_show_it(site: Site) -> None:
    was = tick_of(site.ledger).tables["fct_restaurant_hours"].path
    model = site.root / "models" / "facts" / "fct_restaurant_hours.sql"
    model.write_text(model.read_text().replace("from slots\n", "from slots\n    where n_orders > 0\n"))
    site.prepared = prepare(site.root)
    assert site.tick(START + (TICKS + 1) * FIVE).published

    assert maintained(site, 2).tables == ()
    assert maintained(site, 1).tables == (was,)

    assert not (Path(site.warehouse) / was).exists()
    assert (Path(site.warehouse) / "_sqlrun").exists()
    assert site.tick(START + (TICKS + 2) * FIVE).published


def test_a_crash_before_the_tick_is_published_costs_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    age(site)
    before = site.everything()

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(site.ledger, "publish", dies)
        with pytest.raises(KeyboardInterrupt):
            maintained(site, 1)

    assert site.everything() == before
    with pytest.raises(UsageError, match="a build has died or failed"):
        maintained(site, 1)
    site.write("more.jsonl", [order("1-1", START, restaurant="r9002", version=3)])
    assert site.tick(START + (TICKS + 1) * FIVE).published
    assert differences(site, START + (TICKS + 1) * FIVE) == {}


def test_before_the_first_tick_there_is_nothing_to_maintain(tmp_path: Path) -> None:
    site = Site(copy_project(tmp_path), DuckDBEngine())

    with pytest.raises(UsageError, match="nothing"):
        maintained(site, 1)
