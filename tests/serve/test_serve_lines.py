"""What became of the lines of sources: views, windows that lack lost lines, metrics, and the pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sqlrun import project_files
from sqlrun.serve import source_lines
from sqlrun.system_tables import intake
from sqlrun.system_tables.intake import Intake, Subject
from tests.support import chromium as chromium_here
from tests.support import served
from tests.support.chromium import DESK, PHONE, picture
from tests.support.served import IDS, as_of_tick
from tests.support.shown import Pages, Server, faults

# A file's name is a stranger's text.
PART = '<img src=x onerror="alert(1)">/0'
WHAT = f"{PART} begins at offset 5, so [2, 5) never landed"


@pytest.fixture(scope="module")
def project() -> Any:
    return project_files.project(served.ROOT)


@pytest.fixture
def warehouse(project: Any, tmp_path: Path) -> served.Warehouse:
    made = served.Warehouse(tmp_path / "warehouse", project)
    made.publish()
    return made


@pytest.fixture
def asked(warehouse: served.Warehouse) -> Iterator[Any]:
    with client(warehouse) as found:
        yield found


def client(warehouse: served.Warehouse) -> Any:
    site, watcher = served.site(warehouse)
    watcher.look()
    return served.client(site)


def write(
    warehouse: served.Warehouse, *rows: Intake, tick: int = 1, version: int = 1, at: datetime | None = None
) -> None:
    subject = Subject("shop.orders", "restaurants", "restaurants/aa", tick, at or as_of_tick(tick))
    intake.write(str(warehouse.folder), "", subject, version, rows)


def lost(lines: int | None = 3) -> Intake:
    return Intake(PART, 2, 5, lost=lines, lost_because=WHAT, accepted_by="Ops, night shift, 2026-05-04T12:40:00+00:00")


def landed(lines: int = 10) -> Intake:
    return Intake(PART, 0, lines, read=lines, landed=lines - 3, quarantined=2, dropped=1, gaps=0, unexplained=0)


def rows(asked: Any, view: str) -> Any:
    return asked.get(f"/api/v1/operator/{view}", headers=served.bearer(operator=True)).json()["rows"]


def test_the_view_of_lines_adds_up_the_newest_tick_and_recent_ones(warehouse: served.Warehouse) -> None:
    for tick in range(1, 4):
        write(warehouse, landed(10 * tick), tick=tick)
    write(warehouse, lost(), tick=4)
    with client(warehouse) as asked:
        (one,) = rows(asked, "lines")

    assert (one["source"], one["tick"], one["read"], one["landed"], one["lost"]) == ("shop.orders", 4, None, 0, 3)
    assert [one[f"all_{name}"] for name in ("read", "landed", "quarantined", "dropped", "unexplained", "lost")] == [
        60, 51, 6, 3, 0, 3
    ]  # fmt: skip
    assert one["newest_landed"] == as_of_tick(3).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_old_ticks_are_left_out_of_the_sums_but_losses_stay(project: Any, tmp_path: Path) -> None:
    warehouse = served.Warehouse(tmp_path / "warehouse", project, tick=source_lines.TICKS)
    write(warehouse, landed(), lost(), tick=1)
    warehouse.publish()
    write(warehouse, landed(30), tick=source_lines.TICKS)
    with client(warehouse) as asked:
        assert [(row["all_read"], row["since_tick"]) for row in rows(asked, "lines")] == [(30, source_lines.TICKS)]
        (loss,) = rows(asked, "losses")

    assert (loss["what"], loss["lines"], loss["tick"]) == (WHAT, 3, 1)
    assert (loss["by"], loss["at"]) == ("Ops, night shift", "2026-05-04T12:40:00+00:00")


def test_a_window_that_may_lack_lost_lines_is_incomplete_and_owners_see_nothing_else(
    warehouse: served.Warehouse,
) -> None:
    write(warehouse, lost(), lost(None), at=as_of_tick(1) - timedelta(hours=2))
    with client(warehouse) as asked:
        answers = {
            hours: asked.get(
                f"/api/v1/restaurants/{IDS[0]}/windows", params={"hours": hours}, headers=served.bearer(IDS[0])
            )
            for hours in (1, 24, 168)
        }
        ours = asked.get("/api/v1/health", headers=served.bearer(operator=True)).json()
        theirs = asked.get("/api/v1/health", headers=served.bearer(IDS[0])).json()

    assert {hours: answer.json()["complete"] for hours, answer in answers.items()} == {1: True, 24: False, 168: False}
    assert not any("offset" in answer.text or "onerror" in answer.text for answer in answers.values())
    assert ours["losses"] == {"1": 0, "24": 2, "168": 2} and "losses" not in theirs


def test_a_loss_counts_once_its_version_of_the_table_is_published(warehouse: served.Warehouse) -> None:
    write(warehouse, lost(), version=2, tick=2)
    where = f"/api/v1/restaurants/{IDS[0]}/windows"
    site, watcher = served.site(warehouse)
    watcher.look()
    with served.client(site) as asked:
        before = asked.get(where, headers=served.bearer(IDS[0]))
        warehouse.publish()
        watcher.look()
        after = asked.get(where, headers=served.bearer(IDS[0]))

    assert before.json()["complete"] is True and after.json()["complete"] is False
    assert before.headers["etag"] != after.headers["etag"]


def test_metrics_count_lines_that_are_recorded_while_the_server_runs(warehouse: served.Warehouse, asked: Any) -> None:
    def found(state: str) -> float | None:
        text = asked.get("/metrics", headers=served.bearer(operator=True)).text
        start = f'sqlrun_source_lines_total{{source="shop.orders",state="{state}"}} '
        return next((float(line.removeprefix(start)) for line in text.splitlines() if line.startswith(start)), None)

    assert found("landed") is None
    write(warehouse, landed(10), tick=1)
    assert found("landed") == 7
    write(warehouse, landed(20), tick=1, version=2)
    write(warehouse, lost(), tick=2, version=3)
    assert [found(state) for state in source_lines.STATES] == [24, 4, 2, 3, 0]
    assert found("landed") == 24
    # Lines of a time when no server ran aren't counted: a restart isn't an increase.
    with client(warehouse) as asked:
        assert found("landed") == 0


@pytest.mark.long
@pytest.mark.slow
@chromium_here.needed
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_the_pages_show_losses_as_text(
    warehouse: served.Warehouse, serve: Callable[..., Server], pages: Pages, size: tuple[int, int], tmp_path: Path
) -> None:
    write(warehouse, landed(12_345), lost(), lost(None))
    here = serve(warehouse)
    opened = pages.open(here.address("/operator", operator=True, losses=""), size)
    opened.get_by_text("12,345 read = 12,342 landed + 2 quarantined + 1 dropped + 0 unexplained; 3 lost").wait_for()
    opened.get_by_text("2 recorded.").wait_for()
    picture(opened, tmp_path, f"lines-{size[0]}", whole=True)
    assert opened.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert opened.get_by_role("cell", name=WHAT).count() == 2 and opened.locator("img").count() == 0
    assert opened.get_by_role("heading", name="Losses of sources").is_visible()

    owner = pages.open(here.address("/", IDS[0]), size)
    owner.get_by_text("Data of this time span is incomplete.").wait_for()
    assert not owner.locator("#losses").is_visible() and "onerror" not in owner.content()
    picture(owner, tmp_path, f"incomplete-{size[0]}", whole=True)
    operator = pages.open(here.address("/", operator=True), size)
    link = operator.get_by_role("link", name="2 losses recorded")
    link.wait_for()
    picture(operator, tmp_path, f"incomplete-operator-{size[0]}", whole=True)
    link.click()
    operator.get_by_text("2 recorded.").wait_for()
    assert faults_of(pages, here.address("/", IDS[0]), "Data of this time span is incomplete.", size) == []
    assert faults_of(pages, here.address("/operator", operator=True), "2 recorded.", size) == []
    pages.complaints[:] = [text for text in pages.complaints if "Content Security Policy" not in text]


def faults_of(pages: Pages, address: str, text: str, size: tuple[int, int]) -> list[str]:
    opened = pages.open(address, size, bypass_csp=True)
    opened.get_by_text(text).wait_for()
    return faults(opened)
