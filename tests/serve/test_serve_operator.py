"""The operators' views, in the API and on the page, with personal values masked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sqlrun import project_files
from sqlrun.system_tables import check_results, measures, receipts
from tests.support import chromium as chromium_here
from tests.support import served
from tests.support.chromium import DESK, PHONE, picture
from tests.support.projects import Site
from tests.support.script import FIVE, START, order, site_of_orders
from tests.support.shown import Pages, faults, server

pytestmark = pytest.mark.slow
VIEWS = ("ticks", "sources", "lines", "models", "checks", "quarantine")
GUEST = "guest-of-ours-4711"
BROKEN = order("7", START).replace('"c1"', f'"{GUEST}"').replace('"quantity": 2', '"quantity": -2')


def run_tick(made: Site, at: datetime) -> None:
    """Run a tick, and write the same system tables as `sqlrun build`."""
    result = made.tick(at)
    assert result.published
    receipts.write(made.warehouse, result, "duckdb", at)
    check_results.write(made.warehouse, result, at)
    measures.write(made.warehouse, result, at, "")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a project with two ticks: one order, then another, an invalid one and a line that isn't JSON."""
    made = site_of_orders(tmp_path_factory.mktemp("built") / "project")
    made.write("a.jsonl", [order("1", START)])
    run_tick(made, START)
    made.write("b.jsonl", [order("2", START + FIVE), BROKEN, f"<b>{GUEST}"])
    run_tick(made, START + FIVE)
    return SimpleNamespace(project=made.prepared.project, folder=made.warehouse, ledger=made.ledger, tick=0)


@pytest.fixture
def asked(built: Any) -> Iterator[Any]:
    site, watcher = served.site(built, clock=lambda: START + FIVE)
    watcher.look()
    with served.client(site) as found:
        yield found


@pytest.mark.long
def test_each_view_gives_rows_to_operators_alone(asked: Any) -> None:
    for view in VIEWS:
        path = f"/api/v1/operator/{view}"

        assert asked.get(path).status_code == 401
        assert asked.get(path, headers=served.bearer("r9001")).status_code == 403
        answer = asked.get(path, headers=served.bearer(operator=True))
        assert answer.status_code == 200 and answer.json()["rows"], view
        assert GUEST not in answer.text
    assert asked.get("/api/v1/operator/secrets", headers=served.bearer(operator=True)).status_code == 404


def test_views_say_what_the_ticks_did(asked: Any) -> None:
    def rows(view: str) -> Any:
        return asked.get(f"/api/v1/operator/{view}", headers=served.bearer(operator=True)).json()["rows"]

    second = max(row["tick"] for row in rows("ticks"))
    assert rows("ticks")[0]["tick"] == second and all(row["took_seconds"] >= 0 for row in rows("ticks"))
    source = rows("sources")[0]
    assert (source["source"], source["quarantined"], source["tick"]) == ("orders.events", 2, second)
    # The newest order has the time of the second tick.
    assert source["watermark"] == (START + FIVE).strftime("%Y-%m-%dT%H:%M:%SZ") and source["freshness_seconds"] == 0
    assert {"stg_order_events", "restaurant_windows"} <= {row["model"] for row in rows("models")}
    reasons = {row["reason"]: row for row in rows("quarantine")}
    assert sum(row["lines"] for row in reasons.values()) == 2
    assert reasons["not a JSON object"]["samples"] == ["***"]
    assert any('"restaurant_id": "r9001"' in text for row in reasons.values() for text in row["samples"])


def test_a_project_without_a_tick_has_empty_books(tmp_path: Path) -> None:
    warehouse = served.Warehouse(tmp_path, project_files.project(served.ROOT))
    with served.client(served.site(warehouse)[0]) as asked:
        for view in VIEWS:
            answer = asked.get(f"/api/v1/operator/{view}", headers=served.bearer(operator=True))
            assert answer.status_code == 200 and answer.json() == {"rows": []}


@pytest.mark.long
@chromium_here.needed
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_operators_page_shows_the_books_and_axe_finds_no_fault(scheme: str, built: Any, tmp_path: Path) -> None:
    with server(built, clock=lambda: START + FIVE) as here, chromium_here.launched() as chromium:
        pages = Pages(chromium)
        for size in (PHONE, DESK):
            opened = pages.open(here.address("/operator", operator=True), size, color_scheme=scheme, bypass_csp=True)
            opened.get_by_text("2 lines for 2 reasons.").wait_for()
            opened.get_by_text("Readers see tick").wait_for()
            picture(opened, tmp_path, f"operator-{scheme}-{size[0]}", whole=True)

            assert opened.evaluate("document.documentElement.scrollWidth") <= size[0]
            assert opened.locator("section > div table").count() == len(VIEWS)
            assert not opened.locator("details table").is_visible()
            opened.get_by_text("that passed").click()
            assert opened.locator("details table").is_visible()
            assert GUEST not in opened.content()
            assert faults(opened) == []
        # Without complaints about axe, whose styles violate the policy.
        opened = pages.open(here.address("/operator", operator=True), color_scheme=scheme)
        opened.get_by_text("2 lines for 2 reasons.").wait_for()
        assert pages.complaints == []
        opened = pages.open(here.address("/operator", "r9001"))
        opened.get_by_text("this page is for operators").wait_for()
        for context in chromium.contexts:
            context.close()
