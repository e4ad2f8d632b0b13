"""Landing on DuckDB: every line once, with a failure anywhere between a batch's plan and its commit."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.duckdb import landing as duckdb_landing
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.events import TickResult
from sqlrun.publish.reader import find, query
from sqlrun.sources import batches as planned_batches
from tests.support import shops
from tests.support.projects import Site, copy_project
from tests.support.script import FIVE, START, order

pytestmark = pytest.mark.slow
LANDING = ("stg_order_events",)


class Stop(Exception):
    """A crash at a chosen moment."""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(copy_project(tmp_path), DuckDBEngine())
    made.write("0.jsonl", [order("1", START), order("2", START)])
    return made


def land(site: Site, number: int = 0) -> TickResult:
    return site.tick(START + number * FIVE, select=LANDING)


def landed(site: Site) -> Counter[str]:
    return Counter(row["order_id"] for row in site.rows("stg_order_events"))


def batches(site: Site) -> Path:
    return next((Path(site.warehouse) / "_sqlrun" / "checkpoints").rglob("batches"))


def crash(site: Site, monkeypatch: pytest.MonkeyPatch, number: int = 1, *, after_commit: bool = False) -> None:
    real = duckdb_landing.commit

    def stopping(*args: Any) -> int:
        if after_commit:
            real(*args)
        raise Stop

    with monkeypatch.context() as patched:
        patched.setattr(duckdb_landing, "commit", stopping)
        with pytest.raises(Stop):
            land(site, number)


def refusal(site: Site) -> str:
    """Return the message of a refused landing; the rows are unchanged."""
    result = land(site, 1)
    assert not result.published, f"it was published, with {dict(landed(site))}"
    assert landed(site) == {"x1": 1, "x2": 1}
    return next(node.message for node in result.nodes if node.status == "error")


@pytest.mark.parametrize("after_commit", [False, True], ids=["planned", "committed"])
def test_a_batch_is_run_once(site: Site, monkeypatch: pytest.MonkeyPatch, after_commit: bool) -> None:
    """After a crash right before or right after a batch's commit; later files are part of the next one."""
    land(site)
    site.write("1.jsonl", [order("3", START)])
    crash(site, monkeypatch, after_commit=after_commit)
    site.write("2.jsonl", [order("4", START)])

    assert land(site, 2).published
    assert landed(site) == {"x1": 1, "x2": 1, "x3": 1, "x4": 1}
    assert land(site, 3).published
    assert landed(site).total() == 4


def test_the_very_first_batch_is_run_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash before anything ever landed."""
    crash(site, monkeypatch)
    crash(site, monkeypatch)

    assert land(site, 2).published
    assert landed(site) == {"x1": 1, "x2": 1}


def test_a_truncated_plan_is_ignored(site: Site) -> None:
    """A plan is synced before it is run, so nothing of a corrupt plan has landed."""
    land(site)
    site.write("1.jsonl", [order("3", START)])
    (batches(site) / "2.json").write_text('{"batch": 2, "fil')

    assert land(site, 1).published
    assert landed(site) == {"x1": 1, "x2": 1, "x3": 1}


@pytest.mark.slow
def test_folded_plans_have_every_file(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old plans become one file; a crash after that replays the latest batch alone."""
    monkeypatch.setattr(planned_batches, "KEEP", 2)
    for number in range(1, 6):
        assert land(site, number).published
        site.write(f"{number}.jsonl", [order(f"{number}0", START)])
    assert len(list(batches(site).glob("*.json"))) <= 3
    crash(site, monkeypatch, 6)

    assert land(site, 6).published
    assert landed(site) == {"x1": 1, "x2": 1, **{f"x{n}0": 1 for n in range(1, 6)}}


def test_a_lost_checkpoint_is_refused(site: Site) -> None:
    """Landing from the beginning would double all rows; the message says what to do."""
    land(site)
    shutil.rmtree(batches(site).parent)

    assert "--full-refresh" in refusal(site)


def test_a_lost_list_of_batches_is_refused(site: Site) -> None:
    """The checkpoint's id alone doesn't say what has landed."""
    land(site)
    shutil.rmtree(batches(site))

    assert refusal(site)


def test_a_foreign_checkpoint_is_refused(site: Site) -> None:
    """Batches of another table say nothing about this one."""
    land(site)
    (batches(site).parent / "id").write_text("another")

    assert "belongs to another table" in refusal(site)


def test_a_new_checkpoint_beside_a_full_table_is_refused(site: Site) -> None:
    """A foreign checkpoint without a plan would land everything again."""
    land(site)
    folder = batches(site)
    shutil.rmtree(folder)
    folder.mkdir()
    (folder.parent / "id").write_text("another")

    assert refusal(site)


def test_a_full_refresh_lands_from_the_beginning(site: Site) -> None:
    """The way out in the message: a new table with its own checkpoint, and each row once."""
    land(site)
    shutil.rmtree(batches(site).parent)

    assert site.tick(START + FIVE, select=LANDING, refresh=True).published
    assert landed(site) == {"x1": 1, "x2": 1}


def test_quarantined_lines_are_counted(site: Site) -> None:
    """Raw text, file and reason are stored, the tick's result counts them, and the valid lines of the file land."""
    bad = ['{"event_id": "cut', "[1]", order("8", START, items=(("d001", 0, "1.00"),))]
    incomplete = json.loads(order("9", START))
    del incomplete["restaurant_id"]
    bad.append(json.dumps(incomplete))
    site.write("bad.jsonl", [*bad, order("7", START)])
    result = land(site)

    published = site.ledger.read().published
    assert published is not None
    name = "stg_order_events__quarantine"
    rows = query(f'select * from "{name}"', [find(published, site.warehouse, name)]).to_pylist()
    reasons = {row["_raw"]: row["_reason"] for row in rows}
    assert set(reasons) == set(bad)
    assert {row["_file"] for row in rows} == {"bad.jsonl"}
    assert reasons[bad[0]] == reasons[bad[1]] == "not a JSON object"
    assert reasons[bad[3]] == "restaurant_id: missing"
    assert [node.quarantined for node in result.nodes if node.name == "stg_order_events"] == [4]
    assert landed(site) == {"x1": 1, "x2": 1, "x7": 1}


@pytest.mark.parametrize(
    "value, kind, wanted",
    [
        ("cast(guest as int)", "int", [7, None, None]),
        ("cast(guest as date)", "date", [None, None, date(2026, 5, 4)]),
        ("coalesce(cast(guest as int), -1)", "int", [7, -1, -1]),
        ("elt(cast(guest as int), 'a')", "string", [None, None, None]),
    ],
)
def test_a_value_that_fails_in_landing_is_null(tmp_path: Path, value: str, kind: str, wanted: list[object]) -> None:
    """A landing continues after errors that stop other statements: the value is NULL, on both engines."""
    made = shops.site(tmp_path / "p", suite="expectations: []\n")
    folder = made.root / "models"
    (folder / "stg_sales.sql").write_text(
        f"select id, shop, amount, {value} as guest from {{{{ source('shops', 'sales') }}}} where cast(id as int) > 0\n"
    )
    contract = (folder / "stg_sales.yml").read_text()
    (folder / "stg_sales.yml").write_text(
        contract.replace("name: guest, data_type: 'string'", f"name: guest, data_type: '{kind}'")
    )
    made = Site(made.root, made.engine)
    guests = ("7", "nobody", "2026-05-04")
    lines = [shops.sale(str(n), guest=guest) for n, guest in enumerate(guests, 1)]
    shops.send(made, "a.jsonl", *lines, shops.sale("no number", guest="8"))

    assert made.tick(START).published
    assert [row["guest"] for row in sorted(made.rows("stg_sales"), key=lambda row: str(row["id"]))] == wanted
