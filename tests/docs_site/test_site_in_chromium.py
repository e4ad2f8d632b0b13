"""The docs site in Chromium, from disk: search, graph, lineage, SQL, keyboard, themes, screen sizes, hostile texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from sqlrun.docs_site import site_files
from sqlrun.docs_site.subject import Past, Subject
from tests.artifacts.test_artifacts import project
from tests.docs_site.test_site import AT, FILES, subject, write
from tests.support import chromium as chromium_here
from tests.support.chromium import DESK, picture
from tests.support.projects import ROOT, prepared
from tests.support.shown import Pages, faults

pytestmark = [pytest.mark.slow, pytest.mark.long, chromium_here.needed]
NARROW = (390, 844)
NAME = "__proto__<b>%41#? x&amp"
HOSTILE = (
    "<script>window.hit = 1</script><img src=https://evil.example/x onerror='window.hit = 1'>\n\n"
    "[a](javascript:window.hit=1) ![b](https://evil.example/y.png) [c](https://good.example/) \u202eright\n\n"
    "<b>bold</b> **strong** `code`\n\n" + "x" * 300
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with chromium_here.launched() as found:
        yield found


@pytest.fixture
def browser(chromium: Any) -> Iterator[Pages]:
    made = Pages(chromium)
    yield made
    for context in chromium.contexts:
        context.close()
    assert made.complaints == []
    assert [url for url in made.asked if not url.startswith(("file:", "data:"))] == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of the reference project's site, with run stats of a model."""
    made = prepared(ROOT)
    past = Past(checks={}, stats={"stg_orders": [stats()]})
    of = subject(made)
    folder = tmp_path_factory.mktemp("site")
    dialects = dict(of.dialects)
    return site_files.write(folder, Subject(made, of.naming, past, dialects, AT), "", AT).as_uri()


def stats() -> dict[str, Any]:
    counts = dict.fromkeys(
        ("rows_in", "rows_changed", "rows_read", "rows_written", "files_written", "bytes_written"), 7
    )
    where = {"table": "stg_orders", "model": "stg_orders", "engine": "duckdb", "strategy": "merge", "reason": "SR541"}
    return {**where, "tick": 12, "as_of": AT, "published": True, "seconds": 0.25, **counts}


def opened(browser: Pages, site: str, address: str = "", size: tuple[int, int] = DESK, **options: Any) -> Any:
    page = browser.open(site + address, size, **options)
    ready(page)
    return page


def ready(page: Any) -> None:
    page.wait_for_function("document.documentElement.dataset.ready")


def go(page: Any, address: str) -> None:
    """Follow an address within the page, and wait until it is shown."""
    before = page.evaluate("document.documentElement.dataset.ready")
    page.evaluate("(address) => { location.hash = address; }", address)
    page.wait_for_function("(before) => document.documentElement.dataset.ready !== before", arg=before)


def heading(page: Any, text: str) -> None:
    page.locator("h1", has_text=text).wait_for()


# ── what it shows ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_model_has_its_columns_sql_examples_and_run_stats(browser: Pages, site: str) -> None:
    page = opened(browser, site, "#model/stg_orders")
    heading(page, "stg_orders")

    titles = page.locator("main h2").all_inner_texts()
    assert [title.partition(" (")[0] for title in titles] == [
        "Columns", "In the graph", "How it is maintained", "SQL", "Tests", "Examples", "Last ticks",
    ]  # fmt: skip
    total = page.locator("table.columns tr", has=page.get_by_role("link", name="order_total", exact=True))
    assert "decimal(18,2)" in total.inner_text() and "restaurant's currency" in total.inner_text()
    page.locator("pre.sql .token.keyword").first.wait_for()
    left = page.get_by_role("group", name="Compiled query")
    right = page.get_by_role("group", name="Change query of stg_orders")
    assert "row_number()" in left.inner_text() and "merge into" in right.inner_text()
    boxes = left.bounding_box(), right.bounding_box()
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"] and abs(boxes[0]["y"] - boxes[1]["y"]) < 60
    assert "0.25" in page.get_by_role("group", name="Run stats of the last ticks (receipts)").inner_text()


def test_lineage_leads_from_column_to_column(browser: Pages, site: str) -> None:
    page = opened(browser, site, "#model/restaurant_windows")
    page.get_by_role("link", name="total_sales", exact=True).click()
    for name in ("restaurant_windows", "fct_restaurant_slots", "stg_orders", "stg_order_events"):
        heading(page, f"{name}.")
        page.locator(".lineage ul a").first.click()
    heading(page, "orders.events.")
    assert page.locator(".lineage").get_by_text("Nothing: it comes with the data.").count() == 1
    page.go_back()
    heading(page, "stg_order_events.")
    assert page.title().startswith("stg_order_events.")


def test_an_unknown_address_says_so(browser: Pages, site: str) -> None:
    page = opened(browser, site, "#model/none")
    assert page.locator("h1").inner_text() == "Not found"
    for address in ("#column/stg_orders/none", "#column/none/x", "#graph/none", "#%zz/%"):
        go(page, address)
        assert page.locator("h1").inner_text() == ("Graph" if "graph" in address else "Not found")


# ── search and keyboard ──────────────────────────────────────────────────────────────────────────────────────────


def test_search_finds_nodes_and_columns_by_keys_alone(browser: Pages, site: str) -> None:
    page = opened(browser, site)
    page.keyboard.press("/")
    page.keyboard.type("stg_orders.order_tot")
    page.get_by_role("option", name="stg_orders.order_total").wait_for()
    page.keyboard.press("Enter")
    heading(page, "stg_orders.order_total")
    assert page.evaluate("document.activeElement.tagName") == "H1"
    page.keyboard.press("/")
    page.keyboard.type("restaurant_")
    page.get_by_role("option").first.wait_for()
    first = page.locator("[role=option][aria-selected=true]").inner_text()
    page.keyboard.press("ArrowDown")
    second = page.locator("[role=option][aria-selected=true]")
    assert second.count() == 1 and second.inner_text() != first
    assert page.locator("#search").get_attribute("aria-activedescendant") == second.get_attribute("id")
    page.keyboard.press("Escape")
    assert page.locator("#found").is_hidden()
    page.keyboard.press("Escape")
    page.keyboard.type("no such thing")
    page.get_by_text("Nothing found").wait_for()
    assert page.locator("#status").inner_text() == "0 results"


def test_the_graph_is_used_by_keys_and_pointer(browser: Pages, site: str) -> None:
    page = opened(browser, site, "#graph")
    assert page.locator("#graph-here").inner_text().startswith("12 nodes")
    graph = page.locator("#graph")
    graph.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#graph-here a").inner_text() == "orders.events"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("#graph-here").inner_text().startswith("stg_orders model, reads 1, read by 3.")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#graph-here a").inner_text() == "stg_order_events"
    zoom = "sqlrunDocs.graphView().zoom()"
    before = page.evaluate(zoom)
    page.keyboard.press("+")
    larger = page.evaluate(zoom)
    page.get_by_role("button", name="Zoom out").click()
    page.get_by_role("button", name="Zoom out").click()
    assert page.evaluate(zoom) < before < larger
    page.get_by_label("Find in the graph").fill("dish")
    assert page.evaluate("sqlrunDocs.graphView().nodes('.match').length") == 2
    page.get_by_label("Find in the graph").press("Enter")
    graph.focus()
    page.keyboard.press("Enter")
    page.locator("h1", has_text="dish").wait_for()


def test_the_graph_around_a_node_has_its_neighbors(browser: Pages, site: str) -> None:
    page = opened(browser, site, "#graph/stg_order_lines/1")
    names = "sqlrunDocs.graphView().nodes().map((node) => node.data('label'))"
    assert set(page.evaluate(names)) == {"stg_orders", "stg_order_lines", "fct_restaurant_dish_slots"}
    page.get_by_label("Steps around the node").select_option("5")
    page.wait_for_function("sqlrunDocs.graphView().nodes().length > 4")
    box, node = page.locator("#graph").bounding_box(), "sqlrunDocs.graphView().nodes().first()"
    at = page.evaluate(f"{node}.renderedPosition()")
    page.mouse.dblclick(box["x"] + at["x"], box["y"] + at["y"])
    heading(page, "orders.events")


def test_every_control_can_be_reached_by_tab_and_shows_its_focus(browser: Pages, site: str) -> None:
    page = opened(browser, site, "#model/fct_restaurant_hours")
    seen = []
    for _ in range(25):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("[document.activeElement.id, getComputedStyle(document.activeElement).outlineStyle]"))
    assert [name for name, _ in seen][:5] == ["skip", "home", "search", "to-graph", "theme"]
    assert all(style != "none" for _, style in seen)
    page.reload()
    ready(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


# ── screens ──────────────────────────────────────────────────────────────────────────────────────────────────────

ADDRESSES = {
    "home": "", "model": "#model/fct_restaurant_slots", "seed": "#seed/dishes",
    "source": "#source/orders.events", "macro": "#macro/rolling_windows", "exposure": "#exposure/owners_dashboard",
    "column": "#column/restaurant_windows/total_sales", "graph": "#graph", "around": "#graph/stg_orders",
}  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_pages_fit_a_desk_and_a_phone_and_axe_finds_no_fault(
    scheme: str, browser: Pages, site: str, tmp_path: Path
) -> None:
    for size in (DESK, NARROW):
        page = opened(browser, site, "", size, color_scheme=scheme, bypass_csp=True)
        for name, address in ADDRESSES.items():
            if address:
                go(page, address)
            page.wait_for_timeout(50)
            if chromium_here.KEEP:
                picture(page, tmp_path, f"site-{name}-{scheme}-{size[0]}", whole=True)
            assert (name, page.evaluate("document.documentElement.scrollWidth")) == (name, size[0])
            # It takes seconds for a page of a thousand elements.
            if size == DESK or name in ("home", "column"):
                assert (name, faults(page, preload=False)) == (name, [])


def test_the_theme_is_switched_and_remembered(browser: Pages, site: str) -> None:
    page = opened(browser, site, "#graph", color_scheme="light")
    back = "getComputedStyle(document.body).backgroundColor"
    label = "sqlrunDocs.graphView().nodes().first().style('color')"
    light, ink = page.evaluate(back), page.evaluate(label)
    for wanted in ("light", "dark"):
        page.locator("#theme").click()
        assert page.locator("#theme").inner_text() == f"Theme: {wanted}"
    assert page.evaluate(back) != light and page.evaluate(label) != ink
    dark = page.evaluate(back)
    page.reload()
    ready(page)
    assert page.evaluate(back) == dark


def test_the_menu_of_a_phone_opens_and_closes(browser: Pages, site: str) -> None:
    page = opened(browser, site, size=NARROW)
    assert page.locator("#nodes").is_hidden()
    page.get_by_role("button", name="Menu").click()
    page.locator("#nodes").get_by_role("link", name="stg_orders", exact=True).click()
    heading(page, "stg_orders")
    assert page.locator("#nodes").is_hidden()


# ── hostile texts ────────────────────────────────────────────────────────────────────────────────────────────────


def test_hostile_texts_are_texts(browser: Pages, tmp_path: Path) -> None:
    quoted = json.dumps(HOSTILE)
    edited = {
        **FILES,
        "models__total_sql": f"select sum(cents) as `{NAME}` from {{{{ ref('paid') }}}}\n",
        "models__total_yml": FILES["models__total_yml"]
        .replace("name: cents", f"name: {json.dumps(NAME)}")
        .replace("The sum.", quoted),
        "models___exposures_yml": FILES["models___exposures_yml"]
        .replace("A board.", quoted)
        .replace("    depends_on", "    url: 'javascript:window.hit=1'\n    depends_on"),
    }
    site = write(tmp_path, project(tmp_path, **edited)).as_uri()
    page = opened(browser, site, size=NARROW)
    for address in ("#", "#model/total", f"#column/total/{quote(NAME, safe='')}", "#exposure/board", "#graph/total"):
        go(page, f"{address}/")
        page.wait_for_timeout(100)
        assert page.evaluate("window.hit") is None
        assert page.locator("main img, main script, main b").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
        links = page.evaluate("[...document.querySelectorAll('main a')].map((link) => link.getAttribute('href'))")
        assert [link for link in links if not link.startswith(("#", "https://", "files/"))] == []
    page = opened(browser, site, "#model/total")
    page.locator("table.columns").get_by_role("link", name=NAME, exact=True).click()
    heading(page, f"total.{NAME}")
    page.locator(".lineage").get_by_role("link", name="paid.cents", exact=True).click()
    page.locator(".lineage").get_by_role("link", name=f"total.{NAME}", exact=True).wait_for()
    page.go_back()
    page.go_back()
    page.locator("main .prose strong").first.wait_for()
    assert "<script>window.hit = 1</script>" in page.locator("main .prose").first.inner_text()
    assert page.locator("a[href='https://good.example/']").first.get_attribute("rel") == "noreferrer noopener"


def test_a_policy_stops_what_is_not_the_pages_own(browser: Pages, site: str) -> None:
    page = opened(browser, site)
    page.evaluate("""() => {
        document.body.insertAdjacentHTML("beforeend", "<img src='https://evil.example/x' onerror='window.hit = 1'>");
        const script = document.createElement("script");
        script.textContent = "window.hit = 2";
        document.body.append(script);
    }""")
    page.wait_for_timeout(100)

    assert page.evaluate("window.hit") is None
    assert len([text for text in browser.complaints if "Content Security Policy" in text]) >= 3
    browser.complaints.clear()
    browser.asked = [url for url in browser.asked if "evil.example" not in url]


def test_a_page_whose_files_are_gone_says_what_to_do(browser: Pages, tmp_path: Path) -> None:
    page_file = write(tmp_path, project(tmp_path, **FILES))
    page = opened(browser, page_file.as_uri())
    for file in (page_file.parent / "files").glob("data-node-*.js"):
        file.unlink()
    page.locator("main").get_by_role("link", name="total", exact=True).first.click()
    page.get_by_text("The docs were generated again. Reload the page.").wait_for()
    browser.complaints.clear()
