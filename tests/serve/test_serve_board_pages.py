"""Pages of several dashboards in a real browser: declared parts, languages, clocks and screen sizes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.serve.test_serve_boards import dish_slots
from tests.support import chromium as chromium_here
from tests.support import clicks, served
from tests.support.chromium import DESK, picture
from tests.support.served import Warehouse
from tests.support.shown import Pages, Server, faults

pytestmark = [pytest.mark.slow, chromium_here.needed]
NARROW = (390, 844)
TEXTS = served.ROOT / "sqlrun" / "serve" / "pages" / "texts.js"
LANGUAGES = ("en", "de", "es", "fr")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return clicks.project(tmp_path_factory.mktemp("project"))


@pytest.fixture
def warehouse(project: Any, tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "warehouse", project)


def everything(tick: int = 1, **changed: Any) -> Any:
    dishes = [{"dish_id": f"d{n:03d}", "dish_name": f"Dish {n}", "category": "x"} for n in range(1, 7)]
    return {**clicks.rows(tick), "fct_restaurant_dish_slots": dish_slots(tick), "dishes": dishes, **changed}


@pytest.fixture
def here(warehouse: Warehouse, serve: Callable[..., Server]) -> Server:
    warehouse.publish(everything())
    return serve(warehouse)


def number(opened: Any, name: str, wanted: str) -> None:
    opened.locator(f"#m-{name}", has_text=wanted).wait_for()


# ── two dashboards ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [NARROW, DESK])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_pages_fit_a_phone_and_a_desk_and_axe_finds_no_fault(
    size: tuple[int, int], scheme: str, here: Server, pages: Pages, tmp_path: Path
) -> None:
    for address, measure in (
        (here.address("/clicks", "docs", "shop", claim="sites"), "clicks"),
        (here.address("/restaurants", "r0002", "r0001"), "n_orders"),
    ):
        opened = pages.open(address, size, color_scheme=scheme, bypass_csp=True)
        number(opened, measure, "1")
        opened.locator("#chart canvas").wait_for()
        picture(opened, tmp_path, f"{measure}-{scheme}-{size[0]}", whole=True)
        assert opened.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert faults(opened) == []
    # Without complaints about axe, whose styles violate the policy.
    pages.complaints = [text for text in pages.complaints if "Content Security Policy" not in text]


def test_the_page_of_clicks_follows_from_its_declaration(here: Server, pages: Pages) -> None:
    opened = pages.open(here.address("/clicks", "docs", claim="sites"))
    number(opened, "clicks", "101")

    assert opened.locator("#name").inner_text() == "docs"
    assert opened.locator("#numbers dt").all_inner_texts() == ["Clicks", "Revenue"]
    assert opened.locator("#m-revenue").inner_text() == "1.01"
    assert opened.locator("#lists h2").all_inner_texts() == ["Top pages"]
    assert opened.locator("#measures button").all_inner_texts() == ["Clicks", "Revenue"]
    assert "▲ 40.3% more than vs the 24 hours before" in " ".join(opened.locator("#numbers").inner_text().split())
    assert "site=docs&hours=24" in opened.url
    assert not opened.locator("#choose").is_visible()


def test_the_first_page_is_that_of_which_the_token_shows_something(here: Server, pages: Pages) -> None:
    opened = pages.open(here.address("/", "r0002"))
    number(opened, "n_orders", "2,001")
    assert not opened.locator("#others").is_visible()
    opened = pages.open(here.address("/", operator=True))
    number(opened, "clicks", "101")
    opened.locator("#others").get_by_role("link", name="Orders and sales").click()
    number(opened, "n_orders", "1,001")
    assert opened.url.partition("#")[0].endswith("/restaurants")


def test_before_the_first_tick_the_first_page_waits_for_what_the_token_shows(
    warehouse: Warehouse, serve: Callable[..., Server], pages: Pages
) -> None:
    here = serve(warehouse)
    opened = pages.open(here.address("/", "r0002"), NARROW)
    opened.get_by_role("heading", name="No numbers yet").wait_for()
    warehouse.publish(everything())
    number(opened, "n_orders", "2,001")

    pages.complaints = [text for text in pages.complaints if "503" not in text]


def test_a_page_names_its_manifest(here: Server, pages: Pages) -> None:
    opened = pages.open(here.address("/clicks", "docs", claim="sites"))
    number(opened, "clicks", "101")

    assert opened.locator("link[rel=manifest]").get_attribute("href") == "/static/clicks.webmanifest"


@pytest.mark.long
def test_more_items_come_on_demand_with_their_money(here: Server, pages: Pages, tmp_path: Path) -> None:
    opened = pages.open(here.address("/restaurants", "r0002"), NARROW)
    number(opened, "n_orders", "2,001")
    items = opened.locator("#list-top_dishes li")
    assert items.count() == 1
    opened.get_by_role("button", name="Show more").click()
    opened.get_by_text("Dish 6").wait_for()
    assert items.count() == 7
    assert items.nth(0).inner_text().split("\n") == ["d007", "8 · €140.00"]
    picture(opened, tmp_path, "more-dishes", whole=True)
    opened.get_by_role("button", name="Show fewer").click()
    assert items.count() == 1
    # Without a table of all items, the page shows the items of the answer.
    opened = pages.open(here.address("/clicks", "docs", claim="sites"), NARROW)
    number(opened, "clicks", "101")
    assert opened.locator("#list-pages li").count() == 3
    opened.get_by_role("button", name="Show more").click()
    assert opened.locator("#list-pages li").count() == 7


# ── odd values ───────────────────────────────────────────────────────────────────────────────────────────────────

ODD = ("a/b", "%2F", 'say "hi" <b>', "😀 é", "o'neil; --", "a?b#c&d=e")


@pytest.mark.long
def test_a_key_may_be_any_text_in_addresses_and_on_the_page(
    warehouse: Warehouse, serve: Callable[..., Server], pages: Pages
) -> None:
    warehouse.publish(everything(**{k: v for k, v in clicks.rows(1, ODD).items() if k.startswith("site")}))
    here = serve(warehouse)
    for place, key in enumerate(ODD):
        opened = pages.open(here.address("/clicks", *ODD, claim="sites", site=key))
        number(opened, "clicks", f"{(place + 1) * 100 + 1}")
        assert opened.locator("#name").inner_text() == key
    opened.get_by_role("button", name="Change site").click()
    opened.locator("#found button").nth(len(ODD) - 1).wait_for()
    opened.locator("#found button", has_text="😀").click()
    number(opened, "clicks", "401")


@pytest.mark.long
@pytest.mark.parametrize(
    ("row", "texts"),
    [
        ({"clicks": None, "revenue": None}, ("–", "–")),
        ({"clicks": -5, "revenue": Decimal("-0.01")}, ("-5", "-0.01")),
        (
            {"clicks": 2**63 - 1, "revenue": Decimal("9999999999999999.99")},
            ("9,223,372,036,854,775,807", "9,999,999,999,999,999.99"),
        ),
    ],
    ids=["null", "negative", "huge"],
)
def test_a_measure_is_shown_to_its_last_digit(
    warehouse: Warehouse, serve: Callable[..., Server], pages: Pages, tmp_path: Path, row: Any, texts: tuple[str, str]
) -> None:
    held = everything()
    for table in ("site_windows", "site_slots"):
        held[table] = [{**one, **row} for one in held[table] if one["site_id"] == "docs"]
    warehouse.publish(held)
    opened = pages.open(serve(warehouse).address("/clicks", "docs", claim="sites"), NARROW)
    number(opened, "clicks", texts[0])
    opened.locator("#chart canvas").wait_for()
    opened.locator("summary").click()

    assert opened.locator("#m-revenue").inner_text() == texts[1]
    assert opened.locator("#table tbody tr").nth(1).locator("td").all_inner_texts() == list(texts)
    assert opened.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    picture(opened, tmp_path, f"odd-{row['clicks']}", whole=True)


@pytest.mark.long
def test_an_address_with_a_window_that_is_not_there_shows_a_day(here: Server, pages: Pages) -> None:
    opened = pages.open(here.address("/clicks", "docs", claim="sites", hours="999"))
    number(opened, "clicks", "101")

    assert opened.locator("#windows [aria-pressed=true]").inner_text() == "24 hours"
    assert "hours=24" in opened.url


# ── the reader's language, clock and device ──────────────────────────────────────────────────────────────────────


def table() -> dict[str, dict[str, str]]:
    found = re.search(r"const TEXTS = (\{.*?\n\});", TEXTS.read_text(), re.DOTALL)
    assert found
    texts: dict[str, dict[str, str]] = json.loads(found[1])
    return texts


def test_each_language_has_each_text_with_the_same_places() -> None:
    texts = table()

    assert tuple(texts) == LANGUAGES
    for language in LANGUAGES[1:]:
        assert list(texts[language]) == list(texts["en"])
        for key, text in texts[language].items():
            # The texts must have equal placeholders.
            missing = set(re.findall(r"\{\w+\}", texts["en"][key])) ^ set(re.findall(r"\{\w+\}", text))
            assert missing == set(), (language, key)


@pytest.mark.long
@pytest.mark.parametrize(
    ("locale", "language", "heading", "orders", "sales", "label"),
    [
        ("de-DE", "de", "Beliebteste Gerichte", "2.001", "20,01", "Bestellungen"),
        ("es-ES", "es", "Platos más pedidos", "2001", "20,01 €", "Pedidos"),
        ("fr-FR", "fr", "Meilleurs plats", "2 001", "20,01 €", "Commandes"),
        ("it-IT", "en", "Best dishes", "2,001", "€20.01", "Orders"),
    ],
)
def test_the_page_speaks_the_readers_language(
    here: Server,
    chromium: Any,
    tmp_path: Path,
    locale: str,
    language: str,
    heading: str,
    orders: str,
    sales: str,
    label: str,
) -> None:
    context = chromium.new_context(viewport={"width": NARROW[0], "height": NARROW[1]}, locale=locale, bypass_csp=True)
    opened = context.new_page()
    opened.goto(here.address("/restaurants", "r0002", "r0001", restaurant="r0002"))
    opened.get_by_role("heading", name=heading).wait_for()
    opened.locator("#shown[aria-busy=false]").wait_for()
    texts = table()[language]

    assert opened.locator("html").get_attribute("lang") == language
    plain = " ".join(opened.locator("#numbers").inner_text().replace("\u202f", " ").replace("\xa0", " ").split())
    assert orders in plain and sales in plain and label in plain
    for element in opened.locator("[data-text]").all():
        key = element.get_attribute("data-text")
        if key and "{" not in texts[key] and key != "loading":
            assert element.text_content() == texts[key]
    assert opened.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    assert faults(opened) == []
    picture(opened, tmp_path, f"language-{language}", whole=True)
    context.close()


def test_times_are_the_entitys_or_the_readers(here: Server, chromium: Any) -> None:
    context = chromium.new_context(locale="en-GB", timezone_id="Asia/Kolkata")
    opened = context.new_page()
    opened.goto(here.address("/restaurants", "r0002"))
    opened.locator("#as-of", has_text="As of 12:40").wait_for()
    opened.get_by_role("button", name="Show my time").click()
    opened.locator("#as-of", has_text="As of 18:10").wait_for()
    assert opened.locator("#zone").inner_text() in ("Times in Asia/Kolkata", "Times in Asia/Calcutta")
    opened.reload()
    opened.locator("#as-of", has_text="As of 18:10").wait_for()
    # A dashboard without a column of time zones uses the reader's.
    opened.goto(here.address("/clicks", "docs", claim="sites"))
    opened.locator("#as-of", has_text="As of 18:10").wait_for()
    assert not opened.locator("#clock").is_visible()
    context.close()


def test_a_reader_may_stay_signed_in_until_they_sign_out(here: Server, chromium: Any) -> None:
    context = chromium.new_context(locale="en-GB")
    opened = context.new_page()
    opened.goto(here.address("/clicks"))
    opened.get_by_label("Your token").fill(here.address("/", "docs", claim="sites").partition("token=")[2])
    opened.get_by_label("Stay signed in on this device").check()
    opened.get_by_role("button", name="Show my numbers").click()
    number(opened, "clicks", "101")
    opened.close()
    again = context.new_page()
    again.goto(here.address("/clicks"))
    number(again, "clicks", "101")
    again.get_by_role("button", name="Sign out").click()
    again.get_by_label("Your token").wait_for()
    assert again.evaluate("localStorage.length + sessionStorage.length") == 0
    context.close()
