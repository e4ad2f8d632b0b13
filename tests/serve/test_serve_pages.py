"""The owner's page in a real browser: each published tick, complete, on the screen and for screen readers."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqlrun import project_files
from sqlrun.source_api import CompleteTo
from tests.support import chromium as chromium_here
from tests.support import served
from tests.support.chromium import DESK, PHONE, picture
from tests.support.served import IDS, as_of_tick, orders, rows
from tests.support.shown import Pages, Server, faults

pytestmark = [pytest.mark.slow, chromium_here.needed]
# Maximum seconds until a page shows a published tick.
AT_ONCE = 2.0


@pytest.fixture(scope="module")
def project() -> Any:
    return project_files.project(served.ROOT)


@pytest.fixture
def warehouse(project: Any, tmp_path: Path) -> served.Warehouse:
    return served.Warehouse(tmp_path / "warehouse", project)


@pytest.fixture
def here(warehouse: served.Warehouse, serve: Callable[..., Server]) -> Server:
    warehouse.publish()
    return serve(warehouse)


# Elements of the page's numbers, named by their measures.
IDS_OF = {"orders": "m-n_orders", "sales": "m-total_sales", "third": "m-n_customers"}


def number(opened: Any, name: str, wanted: str) -> None:
    """Wait until a number is shown."""
    opened.locator(f"#{IDS_OF.get(name, name)}", has_text=wanted).wait_for()


def test_a_published_tick_is_shown_within_two_seconds_without_a_reload(here: Server, pages: Pages) -> None:
    opened = pages.open(here.address("/", IDS[0]))
    number(opened, "orders", f"{orders(0, 1):,}")
    opened.evaluate("window.same = true")
    for _ in range(3):
        tick = here.warehouse.publish()
        published = time.monotonic()
        number(opened, "orders", f"{orders(0, tick):,}")

        assert time.monotonic() - published < AT_ONCE
        assert f"As of {as_of_tick(tick):%H:%M}" in opened.locator("#as-of").inner_text()
        assert f"{orders(0, tick):,} orders" in opened.locator("#heard").text_content()
    assert opened.evaluate("window.same")


@pytest.mark.long
def test_times_are_those_of_the_restaurants_clock(
    warehouse: served.Warehouse, serve: Callable[..., Server], pages: Pages
) -> None:
    held = rows(1)
    held["restaurants"][0] |= {"time_zone": "Asia/Kolkata"}
    held["restaurants"][1] |= {"time_zone": "No/Where"}
    warehouse.publish(held)
    here = serve(warehouse)
    for each, zone, ahead in ((IDS[0], "Asia/Kolkata", 330), (IDS[1], "UTC", 0), (IDS[2], "Atlantic/Reykjavik", 0)):
        opened = pages.open(here.address("/", each))
        number(opened, "zone", f"Times in {zone}")

        shown = as_of_tick(1) + timedelta(minutes=ahead)
        assert f"As of {shown:%H:%M}" in opened.locator("#as-of").inner_text()


def by_width(tick: int) -> dict[str, list[dict[str, Any]]]:
    """Return rows whose numbers depend on their window's width."""
    held = rows(tick)
    for row in (*held["restaurant_windows"], *held["restaurant_customers"]):
        hours = row["window_hours"]
        if "n_orders" in row:
            row["n_orders"], row["total_sales"] = hours * 2, Decimal(hours * 25)
        else:
            row["n_customers"] = hours
    return held


def test_the_buttons_change_the_numbers_and_are_kept_in_the_address(
    warehouse: served.Warehouse, serve: Callable[..., Server], pages: Pages
) -> None:
    warehouse.publish(by_width(1))
    here = serve(warehouse)
    opened = pages.open(here.address("/", IDS[0]))
    for name, hours in (("1 hour", 1), ("7 days", 168), ("24 hours", 24)):
        opened.get_by_role("button", name=name, exact=True).click()
        number(opened, "third", f"{hours}")

        assert opened.locator("#m-n_orders").inner_text() == f"{hours * 2}"
        assert opened.locator("#m-total_sales").inner_text() == f"€{hours * 25:,}.00"
        assert opened.locator("#windows [aria-pressed=true]").inner_text() == name
        assert "€25.00 per guest" in opened.locator("#numbers").inner_text()
        assert f"hours={hours}" in opened.url and "token" not in opened.url
    opened.reload()
    number(opened, "orders", "48")


def test_a_number_is_compared_with_the_window_before_and_a_week_ago(
    warehouse: served.Warehouse, serve: Callable[..., Server], pages: Pages
) -> None:
    # One order per hour is 24 in the day before; this tick has twice as many.
    warehouse.publish(by_width(1))
    here = serve(warehouse)
    opened = pages.open(here.address("/", IDS[0]))
    number(opened, "orders", "48")
    text = opened.locator("#numbers > div").first.inner_text()

    assert "▲ 100% more than vs the 24 hours before" in " ".join(text.split())
    assert "a week ago" in text
    opened.get_by_role("button", name="7 days").click()
    assert "a week ago" not in opened.locator("#numbers > div").first.inner_text()


@pytest.mark.long
def test_hours_that_a_new_tick_changes_are_shown_with_the_difference(here: Server, pages: Pages) -> None:
    opened = pages.open(here.address("/", IDS[0]))
    number(opened, "orders", f"{orders(0, 1):,}")
    assert not opened.locator("#late").is_visible()
    held = rows(2)
    late = as_of_tick(2).replace(minute=0)
    for row in held["fct_restaurant_hours"]:
        if row["restaurant_id"] == IDS[0] and (late - row["hour_at"]).total_seconds() == 3 * 3600:
            row["n_orders"], row["total_sales"] = 4, Decimal("31.50")
    here.warehouse.publish(held)

    opened.locator("#late").wait_for()
    text = " ".join(opened.locator("#late").inner_text().split())
    assert "Past numbers have changed: +3 orders, +€30.50." in text
    assert "Mon 9:00–10:00: 1 → 4 orders, +€30.50" in text
    # The next tick changes no complete hour.
    here.warehouse.publish({**rows(3), "fct_restaurant_hours": held["fct_restaurant_hours"]})
    number(opened, "orders", f"{orders(0, 3):,}")
    opened.get_by_role("button", name="Got it").click()
    assert not opened.locator("#late").is_visible()


@pytest.mark.parametrize("size", [PHONE, DESK])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_and_a_desk_in_light_and_dark(
    size: tuple[int, int], scheme: str, here: Server, pages: Pages, tmp_path: Path
) -> None:
    opened = pages.open(here.address("/", *IDS[:2]), size, color_scheme=scheme)
    number(opened, "orders", f"{orders(0, 1):,}")
    opened.locator("#chart canvas").wait_for()

    assert opened.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert picture(opened, tmp_path, f"owner-{scheme}-{size[0]}", whole=True).stat().st_size > 10_000


# ── missing data ─────────────────────────────────────────────────────────────────────────────────────────────────


def forgiven(pages: Pages, *statuses: int) -> None:
    """Remove the browser's complaints about answers that a test expects to fail."""
    expected = [f"status of {status}" for status in statuses] + [f"{status} http" for status in statuses]
    expected += [
        "net::ERR_CONNECTION_REFUSED",
        "net::ERR_INCOMPLETE",
        "net::ERR_CONNECTION_RESET",
        "net::ERR_EMPTY_RESPONSE",
    ]
    pages.complaints = [text for text in pages.complaints if not any(one in text for one in expected)]


@pytest.mark.long
def test_the_page_says_until_when_it_has_a_databases_changes(
    warehouse: served.Warehouse, serve: Callable[..., Server], pages: Pages, tmp_path: Path
) -> None:
    """Only if a source takes whole transactions, in the clock of the restaurant."""
    at = as_of_tick(1) - timedelta(minutes=2)
    warehouse.complete = CompleteTo("kafka", "shop.transaction", "772", at, 40)
    warehouse.publish()
    here = serve(warehouse)
    opened = pages.open(here.address("/", IDS[0]))
    number(opened, "orders", f"{orders(0, 1):,}")

    assert f"changes up to {at:%H:%M}" in opened.locator("#as-of").inner_text()

    # A connector that died days ago: the hour alone would say that it was today.
    warehouse.complete = CompleteTo("kafka", "shop.transaction", "772", at - timedelta(days=3), 40)
    tick = warehouse.publish()
    for size in (PHONE, DESK):
        narrow = pages.open(here.address("/", IDS[0]), size)
        number(narrow, "orders", f"{orders(0, tick):,}")
        said = narrow.locator("#as-of").inner_text()
        assert f"{(at - timedelta(days=3)).day}" in said.partition("changes up to")[2].partition(",")[0], said
        assert narrow.evaluate("document.documentElement.scrollWidth <= innerWidth")
        picture(narrow, tmp_path, f"complete-{size[0]}")

    warehouse.complete = None
    tick = warehouse.publish()
    number(opened, "orders", f"{orders(0, tick):,}")
    assert "changes" not in opened.locator("#as-of").inner_text()


def test_without_a_token_the_page_asks_for_one_and_a_wrong_one_is_reported(here: Server, pages: Pages) -> None:
    opened = pages.open(here.address(), PHONE)
    opened.get_by_label("Your token").fill("nonsense")
    opened.get_by_role("button", name="Show my numbers").click()
    opened.get_by_text("The server doesn’t take your token").wait_for()
    opened.get_by_label("Your token").fill(here.address("/", IDS[1]).partition("token=")[2])
    opened.keyboard.press("Enter")
    number(opened, "orders", f"{orders(1, 1):,}")
    opened.get_by_role("button", name="Sign out").click()
    opened.get_by_label("Your token").wait_for()

    assert opened.evaluate("sessionStorage.length") == 0
    forgiven(pages, 401)


def test_before_the_first_tick_the_page_waits_and_then_shows_it(
    warehouse: served.Warehouse, serve: Callable[..., Server], pages: Pages, tmp_path: Path
) -> None:
    here = serve(warehouse)
    opened = pages.open(here.address("/", IDS[0]), PHONE)
    opened.get_by_role("heading", name="No numbers yet").wait_for()
    picture(opened, tmp_path, "owner-no-tick")
    warehouse.publish()
    number(opened, "orders", f"{orders(0, 1):,}")

    assert not opened.locator("#problem").is_visible()
    forgiven(pages, 503)


@pytest.mark.long
def test_a_window_without_orders_and_a_restaurant_without_any_are_shown_as_such(
    warehouse: served.Warehouse, serve: Callable[..., Server], pages: Pages, tmp_path: Path
) -> None:
    warehouse.publish({name: [] if name != "restaurants" else held for name, held in rows(1).items()})
    here = serve(warehouse)
    opened = pages.open(here.address("/", IDS[0]), PHONE)
    opened.get_by_text("Nothing was ordered in the last 24 hours.").wait_for()
    opened.locator("#chart canvas").wait_for()
    picture(opened, tmp_path, "owner-empty", whole=True)

    assert (
        opened.locator("#m-n_orders").inner_text() == "0" and opened.locator("#m-total_sales").inner_text() == "€0.00"
    )
    opened = pages.open(here.address("/", "r7777"), PHONE)
    opened.get_by_role("heading", name="No numbers yet").wait_for()


@pytest.mark.long
def test_a_tick_that_is_too_old_is_shown_with_its_age(here: Server, pages: Pages, tmp_path: Path) -> None:
    here.late = timedelta(hours=3, minutes=5)
    opened = pages.open(here.address("/", IDS[0]), PHONE)
    opened.get_by_text("Newer numbers should have arrived by now. They are 3 hours old.").wait_for()
    picture(opened, tmp_path, "owner-stale")

    assert opened.locator("#as-of").inner_text().strip() == "As of 12:40, 3 hours ago"
    here.late = timedelta()
    here.warehouse.publish()
    number(opened, "orders", f"{orders(0, 2):,}")
    assert opened.locator("#banner").inner_text() == ""


@pytest.mark.long
def test_a_server_that_goes_away_is_reported_and_its_next_tick_is_shown_once_it_is_back(
    here: Server, pages: Pages, tmp_path: Path
) -> None:
    opened = pages.open(here.address("/", IDS[0]), PHONE)
    number(opened, "orders", f"{orders(0, 1):,}")
    here.stop()
    opened.get_by_text("No connection to the server").wait_for()
    picture(opened, tmp_path, "owner-away")

    assert opened.locator("#m-n_orders").inner_text() == f"{orders(0, 1):,}"
    here.warehouse.publish()
    here.start()
    number(opened, "orders", f"{orders(0, 2):,}")
    assert opened.locator("#banner").inner_text() == ""
    forgiven(pages, 503)


@pytest.mark.long
def test_no_value_becomes_part_of_the_page_and_unknown_currencies_and_zones_are_borne(
    warehouse: served.Warehouse, serve: Callable[..., Server], pages: Pages, tmp_path: Path
) -> None:
    hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script>' + "ß漢" * 40
    held = rows(1)
    for row in held["restaurants"]:
        row |= {"restaurant_name": hostile, "city": hostile, "currency": "<b>"}
    for row in held["restaurant_windows"]:
        row["top_dishes"][0]["dish_name"] = hostile
    warehouse.publish(held)
    opened = pages.open(serve(warehouse).address("/", *IDS), PHONE)
    number(opened, "orders", f"{orders(0, 1):,}")

    assert opened.locator("#name").inner_text() == hostile
    assert opened.locator("#list-top_dishes img, #name img, #name script").count() == 0
    assert opened.locator("#m-total_sales").inner_text().endswith(" <b>")
    assert opened.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    picture(opened, tmp_path, "owner-hostile", whole=True)


@pytest.mark.long
def test_a_restaurant_is_found_by_keyboard_and_one_of_another_is_not_shown(here: Server, pages: Pages) -> None:
    opened = pages.open(here.address("/", *IDS[:2], restaurant=IDS[2]))
    number(opened, "orders", f"{orders(0, 1):,}")
    opened.get_by_role("button", name="Change restaurant").focus()
    opened.keyboard.press("Enter")
    opened.locator("#found button").nth(1).wait_for()
    opened.keyboard.type("ost r0002")
    opened.get_by_text("1 found").wait_for()
    opened.keyboard.press("Tab")
    opened.keyboard.press("Enter")
    number(opened, "orders", f"{orders(1, 1):,}")

    assert opened.locator("#name").inner_text() == "Rest 1" and f"restaurant={IDS[1]}" in opened.url
    forgiven(pages, 404)


# ── accessibility ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_in_any_state(scheme: str, here: Server, pages: Pages) -> None:
    here.late = timedelta(hours=1)
    opened = pages.open(here.address("/", *IDS), color_scheme=scheme, bypass_csp=True)
    number(opened, "third", f"{orders(0, 1):,}")
    opened.get_by_text("They are 1 hour old").wait_for()
    opened.locator("summary").click()

    assert faults(opened) == []
    opened.get_by_role("button", name="Change restaurant").click()
    opened.locator("#found button").nth(1).wait_for()
    assert faults(opened) == []
    opened = pages.open(here.address(), PHONE, color_scheme=scheme, bypass_csp=True)
    opened.get_by_label("Your token").wait_for()
    assert faults(opened) == []
    forgiven(pages, 401)


@pytest.mark.long
def test_the_chart_is_a_table_too(here: Server, pages: Pages) -> None:
    opened = pages.open(here.address("/", IDS[1]))
    number(opened, "orders", f"{orders(1, 1):,}")
    opened.get_by_role("button", name="7 days").click()
    opened.locator("summary").click()

    assert opened.locator("#table tbody tr").count() == 168
    first = opened.locator("#table tbody tr").first.inner_text().split("\t")
    assert first == ["Mon 12:00–13:00 (so far)", "2", "€2.00"]
    assert "Orders hour by hour, last 7 days. Most: 2 orders" in opened.locator("#chart").get_attribute("aria-label")
