"""The report: what a colleague sees first, and that no value, name or message becomes part of the page itself."""

from __future__ import annotations

import io
import json
import subprocess
import time
import warnings
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock
from xml.etree import ElementTree

import pytest

from sqlrun.engine_api import Receipt
from sqlrun.errors import EngineError, Place
from sqlrun.events import Measure, StageReceipt, TickResult, blocks
from sqlrun.pipeline import prepare
from sqlrun.project import Profile
from sqlrun.report import findings, gx_results, html_report, report_files, summaries
from sqlrun.report.build_display import BuildDisplay
from sqlrun.report.console import Console
from sqlrun.report.findings import About, Evidence
from sqlrun.report.report_files import SCRIPT
from sqlrun.report.run_results import check_result
from sqlrun.run.session import Session, times_of
from sqlrun.source_api import CompleteTo
from sqlrun.system_tables import check_results
from tests.report.test_report import AS_OF, check, node, tick
from tests.support import broken, chromium
from tests.support.waiting import HUNG

TEMPLATE = report_files.TEMPLATE.read_text()
ABOUT = About(
    "shop",
    "duckdb",
    "duckdb",
    "",
    11,
    datetime(2026, 1, 1, 12, 6, tzinfo=timezone.utc),
    " --profile duckdb",
    ("events", "stg_orders", "orders", "slots", "hours", "dishes_sold"),
    {"stg_orders": ("events",), "orders": ("stg_orders",), "slots": ("orders",), "hours": ("slots",), "events": ()},
)
FAILED = check("fail", 3, samples=("order_id=o1, order_total=-1.00", "order_id=o2, email=***"))
HOSTILE = "x<script>1</script>\"'><img src=http://x onerror=y>\n\r\0\x1b[2J\u202e😀 שלום {{ 7 * 7 }} ]]> &\ud800\uffff"


class Reader(HTMLParser):
    """What a browser would find: elements with attributes, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data

    @property
    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        return [(tag, tuple(attributes)) for tag, attributes in self.elements]


def read(result: TickResult, about: About = ABOUT) -> Reader:
    return Reader(html_report.html(TEMPLATE, result, about))


def in_order(text: str, *parts: str) -> bool:
    place = 0
    for part in parts:
        place = text.find(part, place)
        assert place >= 0, f"not there, or before what should stand above it: {part}"
    return True


def failing() -> TickResult:
    receipt = Receipt(0.7, rows_read=3000, rows_written=1200)
    stage = StageReceipt("stg_orders", "merge", "SR501", 1234, 3, receipt, rows_in=1300, note="computed whole")
    return tick(
        node("landing", "events", rows=1234, quarantined=5, reasons=(("at: missing", 2), ("id: no value", 3))),
        node("merge", "stg_orders", rows=1234, stages=(stage,)),
        node("keys", "orders", "skipped"),
        node("keys", "slots", "skipped"),
        node("full", "hours", "skipped"),
        node("full", "dishes_sold", "no-op"),
        checks=(check(), check("warn", 2, ("order_id",), description="Orders have ids."), FAILED),
        published=False,
    )


def many(count: int, bad: int) -> TickResult:
    """Make a tick of many checks, some of which fail with as much to tell as a check can."""
    samples = tuple(f"order_id=o{n:05}, order_total=-{n}.00, note={'x' * 60}" for n in range(20))
    checks = tuple(
        check(
            "fail" if n % count < bad else "pass",
            1 + n if n % count < bad else 0,
            (f"column_{n}",),
            model=f"model_{n % 12:02}",
            samples=samples if n % count < bad else (),
            place=Place(f"expectations/marts/model_{n % 12:02}.yml", n + 1, 5),
        )
        for n in range(count)
    )
    nodes = tuple(node("merge", f"model_{n:02}", rows=1234) for n in range(12))
    return tick(*nodes, checks=checks, published=not bad)


def test_what_is_wrong_comes_first() -> None:
    text = read(failing()).text

    assert in_order(
        text,
        "Tick 12 is NOT published: readers still see tick 11, because 1 check failed in stg_orders.",
        "2026-01-01 12:05 UTC", "production", "4.2 s",
        "What is wrong (1)",
        "stg_orders.order_total: 3 of 1,234 rows (0.24 %) not as expected",
        "An order's total is not negative.",
        "Not updated because of it: orders, slots, hours.",
        "What to do:",
        "order_id=o1, order_total=-1.00", "email=***",
        "expect_column_values_to_be_between, severity critical, at expectations/staging/stg_orders.yml:12:5",
        "Warnings (1)", "stg_orders.order_id: 2 of 1,234 rows (0.16 %)", "Orders have ids.",
        "Quarantined lines", "id: no value", "at: missing",
        "sqlrun show events__quarantine --profile duckdb",
        "Models and seeds (6)", "done, not published", "computed whole", "checks failed", "1.2", "skipped",
        "nothing to do",
        "Checks", "1 failed, 1 warning, 1 passed",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("result", "about", "expected"),
    [
        (tick(checks=(check(), check())), ABOUT, "Tick 12 is published, and all 2 checks passed."),
        (tick(checks=(check(),)), ABOUT, "Tick 12 is published, and the check passed."),
        (tick(), ABOUT, "Tick 12 is published; no checked rows changed."),
        (tick(checks=(check(), check("warn"))), ABOUT, "Tick 12 is published, with 1 warning from 2 checks."),
        (tick(checks=(check(),)), replace(ABOUT, env="dev"),
         "Tick 12 of environment dev is published, and the check passed."),
        (tick(checks=(FAILED, FAILED, check("error", model="b")), published=False), ABOUT,
         "Tick 12 is NOT published: readers still see tick 11, because 2 checks failed and 1 check could not be "
         "evaluated in 2 models."),
        (tick(node("keys", "slots", "error", message="no"), published=False), replace(ABOUT, before=0),
         "Tick 12 is NOT published: readers see nothing yet, because 1 table could not be updated in "
         "slots."),
        (TickResult(0, AS_OF, False, 0.1, ()), replace(ABOUT, problem="no space"),
         "The tick is NOT published: readers still see tick 11, because the build ended early."),
    ],
)  # fmt: skip
def test_the_headline_says_in_a_sentence_what_happened(result: TickResult, about: About, expected: str) -> None:
    assert findings.headline(result, about) == expected
    found = read(result, about)
    assert found.text.strip().startswith(expected)
    assert ("What is wrong" in found.text) is not result.published
    assert not found.wrong and not found.open


def test_what_failed_and_how_is_shown_for_each_kind() -> None:
    result = tick(
        node("landing", "events", "error", message="[DISK] full\n\n  while writing"),
        checks=(check("error", message="no column `x`"), check("fail", 0, (), message="observed 5"),
                check("fail", 7, evaluated=0)),
        published=False,
    )  # fmt: skip
    text = read(result, replace(ABOUT, problem="it stopped")).text

    assert in_order(
        text,
        "The build ended early", "it stopped",
        "events could not be updated", "[DISK] full\n  while writing",
        "Not updated because of it: stg_orders, orders, slots, hours.",
        "stg_orders: not as expected", "observed 5",
        "stg_orders.order_total: 7 rows not as expected",
        "could not be evaluated, which is never a pass", "no column `x`", "Fix the check",
    )  # fmt: skip


def test_the_facts_name_the_last_whole_transaction_once() -> None:
    at = datetime(2026, 1, 1, 12, 4, 58, tzinfo=timezone.utc)
    stage = StageReceipt("events", "append", "", 3, 3, Receipt(0.1), complete=CompleteTo("kafka", "shop.tx", "772", at))
    result = tick(*(node("landing", name, rows=3, stages=(stage,)) for name in ("events", "orders")))

    text = read(result).text
    assert text.count("Complete to") == 1
    assert in_order(
        text, "As of", "Complete to", "the transaction 772 of shop.tx at 2026-01-01 12:04:58 UTC", "Project"
    )
    assert "complete to the transaction 772 of shop" in summaries.markdown(result, ABOUT)


def test_one_cause_of_several_steps_is_reported_once() -> None:
    nodes = [node("landing", name, "error", message="no broker") for name in ("events", "orders", "other")]
    result = tick(*nodes, node("keys", "slots", "error", message="no space"), published=False)

    found = findings.failures(result, ABOUT)
    assert [(one.where, one.detail) for one in found] == [
        ("events, orders and other", "no broker"),
        ("slots", "no space"),
    ]
    assert "hours" in found[0].held_back
    assert "because 4 tables could not be updated in 4 models" in read(result).text


def test_a_good_tick_has_nothing_but_tables() -> None:
    text = read(tick(node("merge", "orders", rows=5), checks=(check(), check()))).text

    assert in_order(text, "all 2 checks passed", "Models and seeds (1)", "up to date", "stg_orders: 2 passed")
    assert not [word for word in ("What is wrong", "Warnings", "Quarantined", "What to do") if word in text]


def hostile(text: str) -> tuple[TickResult, About]:
    """Put a text wherever text comes from outside."""
    bad: dict[str, Any] = {
        "model": text, "type": text, "columns": (text, text), "severity": text, "samples": (text,) * 20,
        "message": text, "description": text, "place": Place(text, 1, 1), "check_id": "c",
    }  # fmt: skip
    checks = (check("fail", 3, **bad), check("warn", 2, **bad), check("error", **bad), check("pass", **bad))
    stage = StageReceipt(text, text, text, 1, 1, Receipt(0.1), note=text)
    result = tick(
        node(text, text, quarantined=3, reasons=((text, 3),), stages=(stage,)),
        node(text, text + "2", "error", message=text),
        node("keys", text + "3", "skipped"),
        checks=checks,
        published=False,
    )
    measures = (Measure(text, text, 1.0, text, None, 0.0, 0.5, True, text), Measure(text, "null_share:" + text, 2.0))
    parents, evidence = {text + "3": (text + "2",)}, {"c": Evidence(text, text, text, (0, 2), (0.0, 0.5))}
    about = About(text, text, text, text, 11, AS_OF, text, (text + "3",), parents, text, evidence)
    return replace(result, measures=measures), about


def test_no_text_becomes_part_of_the_page() -> None:
    found = read(*hostile(HOSTILE))
    links = [value for _, attributes in found.elements for name, value in attributes.items() if name == "href"]

    assert found.shape == read(*hostile("plain")).shape
    assert not found.wrong and not found.open
    assert HOSTILE.partition("\n")[0] in found.text
    assert "{{ 7 * 7 }}" in found.text and "😀 שלום" in found.text
    assert not {"\0", "\x1b", "\u202e", "\ud800", "\uffff"} & set(found.text)
    assert r"\x00\x1b[2J\u202e" in found.text
    assert links and not [link for link in links if ":" in link.partition("#")[0] or link.startswith("//")]


def test_the_one_script_is_named_by_its_hash_and_no_value_gets_into_it() -> None:
    script = SCRIPT.read_text(encoding="utf-8")
    texts = [html_report.html(TEMPLATE, *hostile(text), script) for text in ("plain", HOSTILE)]
    policies = {
        a["content"] for text in texts for _, a in Reader(text).elements if "content" in a and "'none'" in a["content"]
    }

    assert all(text.count("<script>") == 1 and f"<script>{script}</script>" in text for text in texts)
    (policy,) = policies
    assert f"script-src '{html_report.digest(script)}'; style-src" in policy
    assert Reader(texts[0]).shape == Reader(texts[1]).shape


def test_the_page_loads_nothing_and_runs_only_its_script() -> None:
    text = html_report.html(TEMPLATE, failing(), ABOUT)
    found = Reader(text)
    policy = [a["content"] for tag, a in found.elements if a.get("http-equiv") == "Content-Security-Policy"]

    assert policy == [
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    ]
    assert not {tag for tag, _ in found.elements} & {"script", "link", "iframe", "img", "object", "form", "base"}
    assert not {name for _, names in found.shape for name in names} & {"src", "srcset", "style", "onclick", "onload"}
    assert not [word for word in ("http://", "https://", "url(", "@import") if word in text]


def test_a_failure_shows_its_past_its_arguments_and_its_sql() -> None:
    known = Evidence(
        '{"min_value": 0}', "with batch\nselect 1", "It has not passed since tick 3.", (0, None, 3), (0.0, None, 0.5)
    )
    checks = (check("fail", 3, check_id="a"), check("warn", 1, check_id="b"))
    found = read(tick(checks=checks, published=False), replace(ABOUT, evidence={"a": known}))
    pictures = [a for tag, a in found.elements if tag == "svg"]

    assert in_order(
        found.text, "What is wrong", "It has not passed since tick 3.", "SQL that finds such rows",
        "with batch\nselect 1", '{"min_value": 0}', "Warnings",
    )  # fmt: skip
    assert [a["aria-label"] for a in pictures] == [
        "It has not passed since tick 3.", "share of unexpected rows, in the same ticks",
    ]  # fmt: skip
    assert [a["d"] for tag, a in found.elements if tag == "path"] == [
        "M0 7h1v5h-1z", "M2 0h1v12h-1z", "M2 0h1v20h-1z",
    ]  # fmt: skip


@pytest.mark.slow
def test_sql_that_has_no_room_is_left_out_not_cut() -> None:
    long = Evidence("x" * 9000, "y" * 9000, "", (2,), (0.5,))
    failed = tick(checks=(check("fail", 3, check_id="a"),), published=False)
    text = read(failed, replace(ABOUT, evidence={"a": long})).text

    assert "yyy" not in text and "SQL that finds" not in text
    assert "xxx…" in text
    many = tuple(check("fail", 3, check_id="a") for _ in range(500))
    about = replace(ABOUT, evidence={"a": replace(long, sql="y" * 3000, ranks=(0, 3) * 24, shares=(0.0, 0.5) * 24)})
    assert len(html_report.html(TEMPLATE, tick(checks=many, published=False), about)) < 2_000_000


def test_what_was_measured_is_a_short_table() -> None:
    measures = (
        Measure("fct", "null_share:note", 0.1),
        Measure("stg", "freshness_seconds", 300.0, "orders.events", high=900.0),
        Measure("stg", "rows", 40.0, "orders.events", low=60.0, high=160.0, unusual=True, detail="half as many"),
        Measure("fct", "null_share:id", 0.5, low=0.0, high=0.1, unusual=True),
    )
    text = read(replace(tick(), measures=measures)).text

    assert in_order(
        text, "Volume, lateness and freshness", "fct", "share of NULL in id", "50 %", "unusual", "0 % to 10 %",
        "stg", "source orders.events", "rows", "half as many", "40", "unusual", "60 to 160",
        "freshness", "5 min", "at most 15 min", "Models and seeds",
    )  # fmt: skip
    assert "note" not in text
    many = tuple(Measure(f"m{n}", "rows", 1.0, "s.t") for n in range(70))
    assert "and 20 more." in read(replace(tick(), measures=many)).text


def test_links_lead_from_target_to_the_project() -> None:
    def links(file: str) -> list[str | None]:
        found = read(tick(checks=(check("fail", 1, place=Place(file, 3, 5)),), published=False))
        return [a["href"] for tag, a in found.elements if tag == "a" and "expectations" in (a["href"] or "")]

    assert links("expectations/staging/a b%.yml") == ["../expectations/staging/a%20b%25.yml"]
    assert links("/etc/expectations") == links("../../expectations") == []
    assert links("javascript:expectations") == ["../javascript%3Aexpectations"]


@pytest.mark.parametrize("size", [1_000, 1_000_000])
@pytest.mark.slow
def test_a_long_value_is_cut(size: int) -> None:
    result, about = hostile("é\0" * (size // 2))
    texts = [
        html_report.html(TEMPLATE, result, about),
        summaries.markdown(result, about),
        summaries.junit(result, about),
    ]

    assert max(map(len, texts)) < 100_000
    assert "…" in texts[0]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "bad"), [(10, 3), (500, 7), (500, 500)])
def test_many_checks_are_written_quickly_and_stay_readable(count: int, bad: int) -> None:
    result = many(count, bad)
    html_report.html(TEMPLATE, result, ABOUT)
    begun = time.process_time()
    text = html_report.html(TEMPLATE, result, ABOUT)
    took = time.process_time() - begun
    found = Reader(text)

    assert took < 0.3
    assert len(text.encode()) < 1_000_000
    assert not found.wrong and not found.open
    targets = {attributes["id"] for _, attributes in found.elements if "id" in attributes}
    inner = {a["href"][1:] for tag, a in found.elements if tag == "a" and a["href"] and a["href"][0] == "#"}
    assert inner <= targets
    assert len([link for link in inner if link[0] == "f"]) == min(bad, html_report.OVERVIEW)
    assert len([link for link in inner if link[0] == "c"]) == min(bad, 12)
    assert f"What is wrong ({bad})" in found.text
    # The overview says what, where and how many before any detail.
    assert in_order(found.text, "What is wrong", "model_00.column_0", "1 of 1,234 rows", "What to do")


@pytest.mark.slow
def test_all_checks_are_on_the_page() -> None:
    found = read(many(500, 30))

    assert [word for n in range(500) if (word := f".column_{n}") not in found.text] == []
    assert ("details", ()) in found.shape
    assert "10 more" in found.text and "and 22 more, listed below" in found.text


def test_models_with_one_finding_each_are_not_counted() -> None:
    nodes = tuple(node("merge", f"model_{n:02}", status="error", message=f"SR533 {n}") for n in range(12))
    found = read(tick(*nodes, published=False))

    assert "and 4 more, listed below." in found.text and "Most of them" not in found.text
    assert "Most of them" in read(many(500, 30)).text


def test_the_worst_texts_still_make_a_small_page() -> None:
    """500 failures whose texts grow sixfold when they are escaped."""
    bad = check("fail", 3, samples=("\"'" * 500,) * 20, description="<" * 1000, message="&" * 5000)
    text = html_report.html(TEMPLATE, tick(checks=(bad,) * 500, published=False), ABOUT)

    assert len(text.encode()) < 2_000_000


def test_shares_are_never_rounded_to_none_or_all() -> None:
    assert [findings.share(*pair) for pair in [(1, 10**6), (999_999, 10**6), (5, 5), (1, 3), (1, 8)]] == [
        "< 0.01 %", "> 99.99 %", "100 %", "33.33 %", "12.5 %",
    ]  # fmt: skip


def test_quarantined_lines_add_up() -> None:
    reasons = tuple((f"field_{n}: missing", n) for n in range(1, 31))
    (found,) = findings.quarantined([node("landing", "events", quarantined=465, reasons=reasons)])

    assert len(found.reasons) == 20
    assert found.reasons[0] == ("field_30: missing", 30)
    assert sum(n for _, n in found.reasons) + found.more == found.lines == 465
    assert findings.quarantined([node("merge", "orders")]) == ()


def test_the_summary_in_markdown() -> None:
    text = summaries.markdown(failing(), ABOUT)

    assert in_order(
        text,
        "# Tick 12 is NOT published: readers still see tick 11, because 1 check failed in stg_orders.",
        "## What is wrong (1)",
        "| stg_orders.order_total |",
        "| 3 of 1,234 rows (0.24 %) |",
        "| An order's total is not negative. | orders, slots, hours |",
        "## Warnings (1)",
        "## Quarantined lines",
        "| events | id: no value | 3 |",
    )


def test_no_text_breaks_the_summary() -> None:
    lines = summaries.markdown(*hostile(HOSTILE)).splitlines()
    shape = [line.replace("\\|", "").count("|") for line in lines]

    assert shape == [line.count("|") for line in summaries.markdown(*hostile("plain")).splitlines()]
    assert not [line for line in lines if "<" in line or "](" in line or "http://" in line]


def test_text_in_the_summary_is_text() -> None:
    assert summaries.plain("_a_b_ *c* [d](http://e) www.f @g #1 `h` a_b | i\nj & <k>") == (
        r"\_a_b\_ \*c\* \[d\](http:\//e) www\.f \@g \#1 \`h\` a_b \| i j &amp; &lt;k&gt;"
    )


def test_junit_has_a_case_for_each_check() -> None:
    root = ElementTree.fromstring(summaries.junit(failing(), ABOUT).encode())
    cases = list(root.iter("testcase"))
    (failure,) = root.iter("failure")

    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6", "failures": "1", "errors": "0", "skipped": "3",
    }  # fmt: skip
    assert [suite.get("name") for suite in root] == ["stg_orders", "orders", "slots", "hours"]
    assert [case.get("classname") for case in cases].count("stg_orders") == 3
    assert [case.get("name") for case in cases][:3] == [
        "expect_column_values_to_be_between stg_orders.order_total",
        "expect_column_values_to_be_between stg_orders.order_id",
        "expect_column_values_to_be_between stg_orders.order_total 2",
    ]
    assert {case.get("file") for case in cases[:3]} == {"expectations/staging/stg_orders.yml"}
    assert failure.get("message") == "3 of 1,234 rows (0.24 %) not as expected"
    assert "order_id=o1" in (failure.text or "")
    assert "2 of 1,234 rows" in (root.findtext(".//system-out") or "")


def test_junit_distinguishes_errors_from_failures_and_holds_any_text() -> None:
    for text in ("plain", HOSTILE, "é\0" * 500_000):
        root = ElementTree.fromstring(summaries.junit(*hostile(text)).encode("utf-8"))

        # The check, the step and what ended the build.
        assert [root.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["7", "1", "3", "1"]


@pytest.mark.slow
def test_results_are_in_great_expectations_own_shape_too() -> None:
    """Great Expectations reads them again, and no value that is hidden elsewhere is in them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own imports' deprecations
        from great_expectations.core.expectation_validation_result import expectationSuiteValidationResultSchema

    rules = {"a": {"column": "order_total", "min_value": Decimal("0.5"), "max_value": {"$PARAMETER": "as_of"}}}
    checks = (
        check(check_id="b"), check("fail", 3, check_id="a", samples=("order_id=o1, email=***",)),
        check("warn", 0, check_id="c", message="observed 0.25", raw={"success": False}),
        check("error", message="it raised", model="other"),
    )  # fmt: skip
    found = gx_results.documents(tick(checks=checks, published=False), rules)

    assert list(found) == ["stg_orders", "other"]
    mine = json.loads(found["stg_orders"])
    assert mine["statistics"]["unsuccessful_expectations"] == 2 and mine["success"] is False
    failed = mine["results"][1]
    assert failed["expectation_config"]["kwargs"] == {
        "column": "order_total", "min_value": "0.5", "max_value": {"$PARAMETER": "as_of"},
    }  # fmt: skip
    assert failed["result"]["unexpected_count"] == 3
    assert failed["result"]["partial_unexpected_list"] == ["order_id=o1, email=***"]
    assert mine["results"][2]["result"]["observed_value"] == "0.25"
    assert mine["results"][2]["expectation_config"]["meta"]["sqlrun"]["great_expectations"] == {"success": False}
    raised = json.loads(found["other"])["results"][0]
    assert raised["exception_info"]["exception_message"] == "it raised" and not raised["success"]
    for text in found.values():
        assert expectationSuiteValidationResultSchema.load(json.loads(text))["success"] is False
    (text,) = gx_results.documents(hostile(HOSTILE)[0], {}).values()
    assert json.loads(text)["suite_name"] == HOSTILE


def test_the_files_are_whole_or_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert report_files.write(tmp_path, failing(), ABOUT) == tmp_path / "report.html"
    before = (tmp_path / "report.html").read_text()

    opened = Path.open

    def full(file: Path, mode: str = "r", **more: Any) -> Any:
        if "w" not in mode:
            return opened(file, mode, **more)
        opened(file, mode, **more).close()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        with pytest.raises(OSError, match="No space"):
            report_files.write(tmp_path, tick(), ABOUT)

    assert (tmp_path / "report.html").read_text() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["checks", "junit.xml", "report.html", "report.md"]
    report_files.clear(tmp_path)
    report_files.clear(tmp_path)
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["checks", "report.html"]


@pytest.mark.slow
@chromium.needed
def test_a_browser_finds_the_same_page_and_has_nothing_to_complain_of(tmp_path: Path) -> None:
    text = html_report.html(TEMPLATE, *hostile(HOSTILE))
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'user'}", "--dump-dom")
    shown = subprocess.run(
        [str(chromium.PROGRAM), *options, "--enable-logging=stderr", (tmp_path / "report.html").as_uri()],
        capture_output=True, text=True, timeout=HUNG, check=True,
    )  # fmt: skip

    assert Reader(shown.stdout).shape == Reader(text).shape
    # What its Content-Security-Policy forbids would be told there.
    assert "CONSOLE" not in shown.stderr


# ── a real build ─────────────────────────────────────────────────────────────────────────────────────────────────

SOURCES = """\
sources:
  - name: shops
    description: What shops say.
    tables:
      - name: lines
        description: Sales.
        format: json
        path: data
        columns:
          - {name: id, data_type: string, description: The sale., nulls: false}
          - {name: email, data_type: string, description: Who bought it.}
          - {name: amount, data_type: int, description: What was paid., unit: EUR}
"""
FILES = {
    "models/_sources.yml": SOURCES,
    "models/events.sql": "select id, email, amount from {{ source('shops', 'lines') }}\n",
    "models/events.yml": broken.contract(
        "events", "id string", "email string", "amount int", extra="    repeats: true"
    ).replace("{name: email,", "{name: email, tags: [pii],"),
    "models/totals.sql": "select id, sum(amount) as total from {{ ref('events') }} group by id\n",
    "models/totals.yml": broken.contract("totals", "id string", "total bigint"),
    "expectations/events.yml": """\
name: events
expectations:
  - type: expect_column_values_to_not_match_regex
    kwargs: {column: email, regex: evil}
    severity: critical
    description: Nobody <b>evil</b> buys.
""",
}


@pytest.mark.slow
def test_a_real_build_writes_it_published_or_not(tmp_path: Path) -> None:
    root, target = broken.write(tmp_path, FILES), tmp_path / "target"
    prepared = prepare(root)
    profile = Profile("here", "duckdb", str(root / "warehouse"), 2, {})
    options = dict.fromkeys(("as_of", "every", "replay", "wait", "full_refresh", "accept_lost_files", "env"))

    def build(day: int, *lines: str) -> tuple[int, str, str]:
        (root / "data").mkdir(exist_ok=True)
        (root / "data" / f"{day}.jsonl").write_text("".join(line + "\n" for line in lines))
        said = io.StringIO()
        console = Console(out=said, err=said, environ={})
        names, now = ("events", "totals"), datetime(2026, 1, day, tzinfo=timezone.utc)
        session = Session(root, prepared, profile, names, BuildDisplay(console), lambda: now, False)
        code = session.run(asked := {**options, "step": "5m"}, times_of(asked))
        return code, Reader((target / "report.html").read_text()).text, said.getvalue()

    code, text, said = build(1, '{"id": "a", "email": "x@y", "amount": 1}', '{"email": "evil"}', "nonsense", "{}")
    assert (code, "Report: target/report.html" in said) == (0, True), said
    assert in_order(text, "Tick 1 is published", "id: missing", "2", "1", "events__quarantine --profile here", "totals")

    code, text, said = build(2, '{"id": "b", "email": "evil@z", "amount": 1}', '{"id": "c", "email": "x@y"}')
    assert code == 1, said
    assert in_order(
        text,
        "Tick 2 is NOT published: readers still see tick 1, because 1 check failed in events.",
        "events.email: 1 of 2 rows (50 %) not as expected", "Nobody <b>evil</b> buys.",
        "Not updated because of it: totals.", "email=***", "expectations/events.yml:3",
    )  # fmt: skip
    files = [*(target / name for name in ("report.html", "report.md", "junit.xml")), *(target / "checks").iterdir()]
    assert "evil@z" not in "".join(file.read_text() for file in files)
    assert in_order(text, "in which it ran", "with batch as", "_reason is null", "evil")
    said_of = json.loads((target / "checks" / "events.json").read_text())
    assert [r["expectation_config"]["kwargs"].get("regex") for r in said_of["results"] if not r["success"]] == ["evil"]
    assert next(ElementTree.parse(target / "junit.xml").iter("failure")).get("message", "").startswith("1 of 2 rows")

    with mock.patch("sqlrun.run.session.tick", side_effect=EngineError("the disk is full")), pytest.raises(EngineError):
        build(3)
    text = Reader((target / "report.html").read_text()).text
    assert in_order(text, "The tick is NOT published: readers still see tick 1", "the disk is full", "What to do")


def test_what_is_only_worth_knowing_is_a_note_everywhere():
    noted = check("info", 2, severity="info", samples=("order_id=o1",))
    result = tick(node("merge", "orders", rows=5), checks=(noted, check()))
    summary, cases = summaries.markdown(result, ABOUT), summaries.junit(result, ABOUT)

    assert findings.headline(result, ABOUT) == "Tick 12 is published, with 1 note from 2 checks."
    shown = Reader(html_report.html(TEMPLATE, result, ABOUT))
    assert "Notes (1)" in shown.text and "Warnings" not in shown.text
    classes = {attributes.get("class") for _, attributes in shown.elements}
    assert {"good", "info", "tag info"} <= classes and not {"warn", "bad", "tag warn"} & classes
    assert "## Notes (1)" in summary and "Warning" not in summary
    assert "note: 2 of 1,234 rows" in cases and "<failure" not in cases and "warning" not in cases
    both = tick(checks=(noted, check("warn", 1)))
    assert findings.headline(both, ABOUT) == "Tick 12 is published, with 1 warning and 1 note from 2 checks."
    reported = check_result("shop", noted, AS_OF)
    assert (reported["status"], reported["adapter_response"]["_message"]) == ("warn", "info")
    (row,) = check_results.rows_of(tick(checks=(noted,)), AS_OF)
    assert (row["status"], row["severity"]) == ("info", "info")
    assert not blocks((noted,))
