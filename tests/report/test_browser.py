"""The pages in a real browser: what the first screen says, that nothing is loaded, that charts are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from sqlrun.events import Measure, TickResult
from sqlrun.report import html_report
from sqlrun.report.findings import About, Evidence
from sqlrun.report.report_files import SCRIPT
from sqlrun.report.trends import Line, grid, streak
from tests.report.test_history_page import everywhere, line, moments, past
from tests.report.test_history_page import page as history
from tests.report.test_page import ABOUT, HOSTILE, TEMPLATE, check, failing, hostile, many
from tests.support import chromium as chromium_here
from tests.support.chromium import DESK, PHONE

pytestmark = [pytest.mark.slow, chromium_here.needed]
SECONDS = 2.0


@dataclass
class Browser:
    """Chromium, one for all tests of a worker. `complaints` are what pages logged, `asked` what they asked for.

    `seconds` is what the last page took to be read, laid out and run.
    """

    chromium: Any
    folder: Path
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def open(self, text: str, size: tuple[int, int] = DESK, **options: Any) -> Any:
        file = self.folder / "page.html"
        file.write_text(text, encoding="utf-8")
        context = self.chromium.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        opened = context.new_page()
        opened.on("console", lambda message: self.complaints.append(message.text))
        opened.on("pageerror", lambda error: self.complaints.append(str(error)))
        opened.on("request", lambda request: self.asked.append(request.url))
        session = context.new_cdp_session(opened)
        # Of the processor, not of the clock: other tests run meanwhile.
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        opened.goto(file.as_uri())
        measured = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        self.seconds = measured["TaskDuration"]
        return opened

    def picture(self, opened: Any, name: str) -> Path:
        return chromium_here.picture(opened, self.folder, name)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with chromium_here.launched() as found:
        yield found


@pytest.fixture
def browser(chromium: Any, tmp_path: Path) -> Iterator[Browser]:
    made = Browser(chromium, tmp_path)
    yield made
    for context in chromium.contexts:
        context.close()
    assert made.complaints == []
    assert [url for url in made.asked if not url.startswith(tmp_path.as_uri())] == []


def first_screen(opened: Any) -> str:
    """Give the text that can be seen without scrolling."""
    return str(
        opened.evaluate(
            """() => {
                const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
                const seen = [];
                for (let node; (node = walk.nextNode()); ) {
                    const range = document.createRange();
                    range.selectNodeContents(node);
                    const box = range.getBoundingClientRect();
                    if (box.width && box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth) {
                        seen.push(node.textContent.trim());
                    }
                }
                return seen.filter(Boolean).join(" ");
            }"""
        )
    )


def known(result: TickResult) -> tuple[TickResult, About]:
    """Give a tick's failures a past, SQL and arguments, and its source measures."""
    past, shares = (0,) * 20 + (None, 0, 2, 2), (0.0,) * 20 + (None, 0.0, 0.1, 0.4)
    sql = "with batch as (select * from delta_scan('warehouse/duckdb/stg_orders/ab12'))\nselect * from batch"
    evidence = Evidence('{"column": "order_total", "min_value": 0}', sql, streak(1, past), past, shares)
    measures = (Measure("events", "rows", 40.0, "orders.events", low=60.0, high=160.0, unusual=True, detail="Sundays"),)
    checks = tuple(replace(check, check_id="a") for check in result.checks)
    return replace(result, checks=checks, measures=measures), replace(ABOUT, evidence={"a": evidence})


def large_history() -> str:
    """Draw a week of 500 checks, some failing, and numbers of ten sources with their bands."""
    drawn = grid(moments(2016, *range(1900, 1990), 2016), 500)
    width = len(drawn.columns)
    bad = tuple(2 * (n % 9 == 0) for n in range(width))
    checks = [past(f"model_{n}", bad if n < 40 else (0,) * width, last="fail" if n < 2 else "pass") for n in range(500)]
    values = tuple(100.0 + n % 24 for n in range(width))
    measures: list[Line] = [
        line(
            width, subject=f"source_{n // 4}", what=("rows", "lateness", "freshness", "nulls")[n % 4],
            unit=("rows", "seconds", "seconds", "share")[n % 4], values=values, low=(90.0,) * width,
            high=(110.0,) * width, places=((n, "more than usual"),),
        )
        for n in range(40)
    ]  # fmt: skip
    return history(drawn, checks, measures)


def report(result: TickResult, about: About) -> str:
    return html_report.html(TEMPLATE, result, about, SCRIPT.read_text(encoding="utf-8"))


PAGES = {
    "report-10": lambda: report(many(10, 3), ABOUT),
    "report-500": lambda: report(many(500, 40), ABOUT),
    "report-failing": lambda: report(*known(failing())),
    "report-hostile": lambda: report(*hostile(HOSTILE)),
    "history-3": lambda: history(grid(moments(3, 3)), [past(last="fail")], [line()]),
    "history-500": large_history,
    "history-hostile": lambda: history(everywhere(HOSTILE)[0], *everywhere(HOSTILE)[1:3], everywhere(HOSTILE)[3]),
}
each = pytest.mark.parametrize("name", PAGES)


@each
def test_a_page_is_there_at_once_and_fits_a_desk_and_a_phone(name: str, browser: Browser) -> None:
    text = PAGES[name]()
    for size in (DESK, PHONE):
        opened = browser.open(text, size)

        assert 0 < browser.seconds < SECONDS
        assert opened.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert browser.picture(opened, f"{name}-{size[0]}").stat().st_size > 5_000


def test_the_first_screen_of_a_failed_build_says_what_is_wrong_where_and_how_many(browser: Browser) -> None:
    for name in ("report-failing", "report-10", "report-500"):
        seen = first_screen(browser.open(PAGES[name]()))

        assert "Tick 12 is NOT published: readers still see tick 11, because" in seen
        where, many = ("stg_orders.order_total", "3 of 1,234 rows") if "failing" in name else ("column_0", "1 of 1,234")
        assert "What is wrong" in seen and where in seen and many in seen


def of_three_kinds() -> str:
    """A tick with a failure, a warning and two passes, of two models."""
    rules = [("orders", "critical", "fail"), ("orders", "critical", "pass"), ("dishes & drinks", "warning", "warn"),
             ("dishes & drinks", "info", "pass")]  # fmt: skip
    checks = tuple(
        replace(check(status, 3 if status != "pass" else 0), model=model, severity=severity, check_id=str(n))
        for n, (model, severity, status) in enumerate(rules)
    )
    return report(replace(failing(), checks=checks), ABOUT)


def seen_checks(opened: Any) -> list[str]:
    """List the checks in the tables that can be seen, folded ones too once they are opened: model and outcome."""
    rows = opened.locator("tr[data-model]:visible")
    return [f"{rows.nth(n).get_attribute('data-model')} {rows.nth(n).get_attribute('data-outcome')}"
            for n in range(rows.count())]  # fmt: skip


def until_all_are_shown(opened: Any) -> None:
    """A form's own reset comes before its fields are as they were."""
    from playwright.sync_api import expect

    expect(opened.locator("#shown")).to_have_text("")


def test_checks_are_shown_by_severity_model_and_outcome(browser: Browser) -> None:
    opened = browser.open(of_three_kinds())
    assert seen_checks(opened) == ["orders fail", "dishes & drinks warn"]

    opened.get_by_label("Model").select_option("dishes & drinks")
    assert seen_checks(opened) == ["dishes & drinks warn", "dishes & drinks pass"]
    assert opened.locator("#failures article[data-outcome=fail]").is_hidden()
    assert opened.locator("#shown").inner_text() == "2 of 4 checks"
    browser.picture(opened, "report-chosen")
    opened.get_by_label("Severity").select_option("info")
    assert seen_checks(opened) == ["dishes & drinks pass"]
    opened.get_by_label("Outcome").select_option("fail")
    assert (seen_checks(opened), opened.locator("#shown").inner_text()) == ([], "0 of 4 checks")
    opened.get_by_role("button", name="Show all").click()
    until_all_are_shown(opened)
    assert seen_checks(opened) == ["orders fail", "dishes & drinks warn"]


def test_no_link_leads_to_a_hidden_failure(browser: Browser) -> None:
    opened = browser.open(PAGES["report-500"]())
    opened.get_by_label("Outcome").select_option("pass")

    assert opened.locator("a[href^='#']:visible").count() == 0 < opened.locator("tr[data-outcome=pass]:visible").count()


def test_checks_can_be_chosen_by_keys_alone(browser: Browser) -> None:
    opened = browser.open(of_three_kinds())
    opened.get_by_label("Severity").focus()
    opened.keyboard.press("w")
    assert seen_checks(opened) == ["dishes & drinks warn"]
    for _ in range(3):
        opened.keyboard.press("Tab")
    opened.keyboard.press("Enter")
    until_all_are_shown(opened)
    assert seen_checks(opened) == ["orders fail", "dishes & drinks warn"]


def test_without_scripts_all_checks_are_shown_and_nothing_to_choose_by(browser: Browser) -> None:
    opened = browser.open(of_three_kinds(), java_script_enabled=False)

    assert opened.locator("#filter").is_hidden()
    assert seen_checks(opened) == ["orders fail", "dishes & drinks warn"]
    assert opened.locator("tr[data-model]").count() == 4


def test_the_first_screen_of_a_history_says_where_things_stand(browser: Browser) -> None:
    seen = first_screen(browser.open(large_history()))

    assert "Readers see tick 2015, tick 2016 is not published; 91 of 2,016 ticks not published; 2 checks failed" in seen
    assert "1 check failed in m" in seen and "more than usual" in seen


def ink(opened: Any, number: int) -> int:
    """Count the pixels of a line's chart that aren't empty, once it has come into view."""
    opened.locator(f"#line{number}").scroll_into_view_if_needed()
    canvas = opened.locator(f"#line{number} canvas")
    canvas.wait_for()
    count = """canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
        .filter((value, place) => place % 4 === 3 && value).length"""
    return int(canvas.evaluate(count))


def test_charts_are_drawn_once_they_are_in_view(browser: Browser) -> None:
    opened = browser.open(large_history())

    assert opened.locator("canvas").count() < 40
    assert ink(opened, 0) > 2_000
    assert ink(opened, 23) > 2_000
    assert opened.locator("#line23 svg").count() == 0
    # All charts show the tick under the pointer in one of them.
    box = opened.locator("#line23 .u-over").bounding_box()
    for x in (40, 50):
        opened.mouse.move(box["x"] + x, box["y"] + 20)
    legend = opened.locator("#line22 .u-legend", has_text="ticks ")
    legend.wait_for(timeout=5000)
    assert "atmost1.8min" in "".join(legend.inner_text().split())


def test_a_value_between_ticks_without_one_is_drawn(browser: Browser) -> None:
    values = tuple(None if n % 2 else 50.0 + n for n in range(20))
    opened = browser.open(history(grid(moments(20)), [], [line(20, what="lateness", values=values)]))

    opened.locator("#line0").scroll_into_view_if_needed()
    canvas = opened.locator("#line0 canvas")
    canvas.wait_for()
    blue = """canvas => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let found = 0;
        for (let at = 0; at < data.length; at += 4) found += data[at + 3] > 128 && data[at + 2] > data[at] + 60;
        return found;
    }"""
    assert canvas.evaluate(blue) > 10 * 9  # ten dots


def test_charts_follow_the_width_and_the_colours_of_the_screen(browser: Browser) -> None:
    opened = browser.open(large_history())
    ink(opened, 0)
    wide = opened.locator("#line0 canvas").bounding_box()["width"]
    opened.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    opened.wait_for_timeout(200)

    assert opened.locator("#line0 canvas").bounding_box()["width"] <= PHONE[0] < wide
    assert opened.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    opened.emulate_media(color_scheme="dark")
    assert ink(opened, 0) > 2_000


def test_without_scripts_the_same_numbers_are_boxes_and_bars(browser: Browser) -> None:
    opened = browser.open(PAGES["history-3"](), java_script_enabled=False)

    assert opened.locator("#line0 svg.bars path").is_visible()
    assert opened.locator("article svg.strip path.fail").is_visible()
    assert not opened.locator(".search").is_visible()


def test_a_name_narrows_the_history(browser: Browser) -> None:
    opened = browser.open(large_history())
    opened.locator("input").fill("MODEL_17.")

    assert opened.locator("article:visible").count() == 1
    assert opened.locator("article:visible h3").inner_text() == "model_17.amount"
    opened.locator("input").fill("")
    assert opened.locator("article").count() == 500


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["report-failing", "history-3"])
def test_all_text_can_be_read_in_light_and_dark(name: str, scheme: str, browser: Browser) -> None:
    """The contrast of each text with what lies behind it is at least WCAG's AA."""
    opened = browser.open(PAGES[name](), color_scheme=scheme)
    browser.picture(opened, f"{name}-{scheme}")
    faint = opened.evaluate(
        """() => {
            const parts = (text) => text.match(/[\\d.]+/g).map(Number);
            const light = (rgb) => {
                const [r, g, b] = rgb.slice(0, 3).map((c) => c / 255)
                    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const behind = (element) => {
                for (let e = element; e; e = e.parentElement) {
                    const colour = parts(getComputedStyle(e).backgroundColor);
                    if (colour.length < 4 || colour[3] > 0) return colour;
                }
                return [255, 255, 255];
            };
            return [...document.querySelectorAll("body *")]
                .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()))
                .filter((e) => e.tagName !== "SCRIPT" && e.getClientRects().length)
                .map((e) => [light(parts(getComputedStyle(e).color)), light(behind(e)), e.textContent.slice(0, 40)])
                .map(([a, b, text]) => [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), text])
                .filter(([ratio]) => ratio < 4.5);
        }"""
    )

    assert faint == []


def test_links_within_a_page_lead_somewhere(browser: Browser) -> None:
    for name in ("report-500", "history-500"):
        opened = browser.open(PAGES[name]())
        missing = opened.evaluate(
            """() => [...document.querySelectorAll("a[href^='#']")]
                .map((a) => a.hash.slice(1)).filter((id) => !document.getElementById(id))"""
        )

        assert missing == []


def test_a_policy_stops_what_is_not_the_pages_own(browser: Browser) -> None:
    """A script or an image that had slipped in would not run or load, and the browser would say so."""
    planted = '<img src="https://example.invalid/x.png"><script>document.title = "run"</script></main>'
    for name in ("report-10", "history-3"):
        opened = browser.open(PAGES[name]().replace("</main>", planted))
        opened.wait_for_timeout(100)

        assert opened.title() != "run"
    complaints, browser.complaints = browser.complaints, []
    assert len([text for text in complaints if "Content Security Policy" in text]) >= 3
    # It is the browser that is asked, and the policy that says no.
    browser.asked = [url for url in browser.asked if "example.invalid" not in url]
