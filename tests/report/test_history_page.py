"""The history: what past ticks did, drawn truly, small, and from disk alone; no text becomes part of the page."""

from __future__ import annotations

import hashlib
import json
import re
import time
from base64 import b64encode
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from sqlrun.commands.history import parts
from sqlrun.engine_api import Receipt
from sqlrun.errors import Place
from sqlrun.events import CheckResult, Measure, NodeResult, StageReceipt, TickResult
from sqlrun.outcome import RANKED, Outcome
from sqlrun.publish.ledger import Ledger
from sqlrun.report import history_page
from sqlrun.report.history_data import Books
from sqlrun.report.history_page import Subject, html
from sqlrun.report.sparklines import bars, strip
from sqlrun.report.trends import (
    NARROWEST,
    WIDEST,
    CheckPast,
    Grid,
    Line,
    Moment,
    amount,
    filled,
    grid,
    streak,
    why,
)
from sqlrun.system_tables import check_results, measures, receipts
from tests.report.test_page import HOSTILE, Reader, in_order
from tests.system_tables.test_check_history import Shops, sale

AT = datetime(2026, 1, 10, 12, 0, tzinfo=timezone.utc)
FIVE = timedelta(minutes=5)
PARTS = parts()
ABOUT = Subject("shop", "duckdb", "", AT)
CALM = "every check passed when last run."


def moments(count: int, *unpublished: int, why: str = "1 check failed in m") -> list[Moment]:
    return [
        Moment(n, AT + n * FIVE, n not in unpublished, why if n in unpublished else "") for n in range(1, count + 1)
    ]


def past(name: str = "m", ranks: tuple[int | None, ...] = (0, 3, 0), **more: Any) -> CheckPast:
    ticks = {outcome: ranks.count(outcome.rank) for outcome in RANKED}
    shares = tuple(None if rank is None else 0.25 if rank else 0.0 for rank in ranks)
    values: dict[str, Any] = {
        "check_id": name, "model": name, "expectation": "expect_it", "columns": ("amount",), "severity": "critical",
        "ticks": ticks, "last": "pass", "last_tick": 3, "worst_tick": 2, "unexpected": 3, "evaluated": 12,
        "ranks": ranks, "shares": shares, **more,
    }  # fmt: skip
    values["last"] = Outcome(values["last"])
    return CheckPast(**values)


def line(count: int = 3, **more: Any) -> Line:
    values: dict[str, Any] = {
        "subject": "events", "what": "rows", "unit": "rows", "values": tuple(float(n) for n in range(count)), **more,
    }  # fmt: skip
    return Line(**values)


def page(drawn: Grid, checks: Any = (), lines: Any = (), about: Subject = ABOUT) -> str:
    return html(PARTS, drawn, checks, 0, lines, (), (), about)


def embedded(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


# ── columns, boxes and words ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [1, 2, WIDEST - 1, WIDEST, WIDEST + 1, 2016, 5000])
def test_each_tick_has_one_column_and_columns_are_few(count: int) -> None:
    drawn = grid(moments(count))
    places = [place for first, last in drawn.columns for place in range(first, last + 1)]

    assert places == list(range(count))
    assert len(drawn.columns) == min(count, WIDEST)
    sizes = {last - first + 1 for first, last in drawn.columns}
    assert max(sizes) - min(sizes) <= 1
    assert len(drawn.placed()) == count
    assert len(grid(moments(count), checks=500).columns) == min(count, NARROWEST)


def test_the_facts_name_the_last_whole_transaction() -> None:
    about = replace(ABOUT, complete=("the transaction <772> of shop.transaction",))

    assert "<dt>Complete to</dt><dd><bdi>the transaction &lt;772&gt; of" in page(grid(moments(3)), about=about)
    assert "Complete to" not in page(grid(moments(3)))


def test_no_ticks_make_no_column() -> None:
    assert grid([]).columns == ()
    assert "There has been no tick yet." in page(grid([]))


def test_a_column_shows_the_worst_of_its_ticks() -> None:
    drawn = grid(moments(2 * WIDEST, 10))

    assert drawn.ranks()[4] == 3 and sum(drawn.ranks()) == 3
    assert drawn.label(4) == "ticks 9–10, until 2026-01-10 12:50"
    assert drawn.label(0) == "ticks 1–2, until 2026-01-10 12:10"
    warned = [replace(moment, warned=1) if moment.tick == 3 else moment for moment in moments(5)]
    assert grid(warned).ranks() == [0, 0, 2, 0, 0]


def test_boxes_are_as_long_as_their_runs_and_taller_where_it_is_worse() -> None:
    assert strip([0, 0, 2, 3, 3, 4, None, None, 0]) == (
        "M0 7h2v5h-2zM8 7h1v5h-1z", "", "M2 4h1v8h-1z", "M3 0h2v12h-2z", "M5 0h1v12h-1z",
    )  # fmt: skip
    assert strip([]) == strip([None, None]) == ("",) * 5


def test_bars_show_the_least_share_and_nothing_for_none() -> None:
    assert bars([None, 0.0, 0.0001, 1.0]) == "M2 19h1v1h-1zM3 0h1v20h-1z"
    assert bars([0.0, None]) == bars([]) == ""


def test_a_check_says_how_often_when_and_how_many() -> None:
    assert past().summary() == "failed in 1 of 3 ticks, last in tick 2: 3 of 12 rows (25 %)"
    assert past(ranks=(0, 0)).summary() == "passed in all 2 ticks in which it ran"
    assert past(ranks=(0,)).summary() == "passed in the one tick in which it ran"
    summary = past(ranks=(2, 3, 4, 0), unexpected=7, evaluated=0).summary()
    assert summary == "warned in 1, failed in 1, could not be evaluated in 1 of 4 ticks, last in tick 2: 7 rows"


def test_why_a_tick_was_not_published() -> None:
    assert why([("a", Outcome.FAIL)], True) == "1 check failed in a"
    assert why([("a", Outcome.WARN)], True) == "no check failed; a table could not be updated"
    assert why([], False) == "the build ended early"
    assert why([(name, Outcome.FAIL) for name in "abcde"], True) == "5 checks failed in a, b, c and 2 more"


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([None, 3], "It ran in no other retained tick."),
        ([3, 3, 2], "It passed in none of the 3 ticks since tick 7 in which it ran."),
        ([0, None, 0, 2, 3],
         "It has not passed since tick 10; it passed in 2 of the 4 ticks since tick 7 in which it ran."),
        ([3, 0], "It passed in 1 of the 2 ticks since tick 7 in which it ran."),
    ],
)  # fmt: skip
def test_a_failure_says_since_when(ranks: list[int | None], expected: str) -> None:
    assert streak(7, ranks) == expected


def test_numbers_are_short_and_have_their_unit() -> None:
    durations = [amount(value, "seconds") for value in (0, 0.005, 9.5, 59, 90, 3600, 5400, 200_000, -7200)]
    assert durations == ["0 s", "0.01 s", "9.5 s", "59 s", "1.5 min", "60 min", "1.5 h", "2.3 d", "-2 h"]
    assert [amount(v, "share") for v in (0, 0.0012, 1)] == ["0 %", "0.12 %", "100 %"]
    assert [amount(v, "rows") for v in (0, 0.5, 12.4, 1_234_567)] == ["0", "0.50", "12", "1,234,567"]


def test_a_line_says_its_last_median_and_highest_number() -> None:
    drawn = grid(moments(3))

    assert line().summary(drawn) == "last 2, median 1, highest 2 in tick 3, 2026-01-10 12:15"
    assert line(places=((1, "low"),)).summary(drawn).endswith("; unusual once")
    assert line(values=(None, None, None)).summary(drawn) == "no value yet"
    assert filled(3, [(1, 2, 0.5)]) == ([None, 2, None], [None, 0.5, None])


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("drawn", "checks", "expected"),
    [
        (grid(moments(3)), [past()], f"Readers see tick 3; all 3 ticks were published; {CALM}"),
        (grid(moments(1)), [], f"Readers see tick 1; the one tick was published; {CALM}"),
        (grid(moments(3, 2)), [past(last="warn")],
         "Readers see tick 3; 1 of 3 ticks not published; 1 check warned when last run."),
        (grid(moments(3, 3)), [past(last="fail"), past("n", last="error"), past("o", last="fail")],
         "Readers see tick 2, tick 3 is not published; 1 of 3 ticks not published; 3 checks failed when last run: "
         "m.amount, n.amount and 1 more."),
        (grid(moments(1, 1)), [], f"Readers see nothing yet; 1 of 1 tick not published; {CALM}"),
    ],
)  # fmt: skip
def test_the_first_sentence_says_where_things_stand(drawn: Grid, checks: list[CheckPast], expected: str) -> None:
    found = Reader(page(drawn, checks))

    assert found.text.strip().startswith(expected)
    assert not found.wrong and not found.open


def test_what_failed_comes_before_what_passed() -> None:
    unusual = line(low=(0.0, 5.0, 0.0), high=(9.0, 9.0, 9.0), places=((1, "half as many as usual"),))
    checks = [past(last="fail"), past("calm", ranks=(0, 0, 0))]
    text = Reader(page(grid(moments(3, 2, 3)), checks, [unusual])).text

    assert in_order(
        text, "not published", "ticks 2–3", "1 check failed in m", "Unusual numbers", "events", "rows",
        "half as many as usual", "1", "5 to 9", "Checks that did not pass (1)", "m.amount", "failed in 1 of 3 ticks",
        "1 that always passed", "calm.amount", "Sources and tables", "last 2, median 1",
    )  # fmt: skip


def everywhere(text: str) -> tuple[Grid, list[CheckPast], list[Line], Subject]:
    """Put a text wherever text comes from outside."""
    check = past(text, expectation=text, columns=(text,), severity=text, last="fail")
    odd = line(subject=text, what=text, places=((1, text),))
    return grid(moments(3, 2, why=text)), [check], [odd], Subject(text, text, text, AT, (text,))


@pytest.mark.parametrize("text", [HOSTILE, "</script><!--<script>", "a" * 1_000_000, "é\0" * 500_000])
def test_no_text_becomes_part_of_the_page(text: str) -> None:
    written = page(*everywhere(text))
    found = Reader(written)

    assert found.shape == Reader(page(*everywhere("plain"))).shape
    assert not found.wrong and not found.open
    assert not {"\0", "\x1b", "\u202e", "\ud800", "\uffff"} & set(written)
    assert len(written) < 100_000 + len(PARTS.library)


def test_the_data_of_the_charts_can_not_end_their_script() -> None:
    drawn = grid(moments(3))
    text = history_page.embedded({"x": ["</script>", "<!--", "\u2028"]})

    assert "<" not in text and "\u2028" not in text
    assert json.loads(text) == {"x": ["</script>", "<!--", "\u2028"]}
    assert embedded(page(drawn, (), [line()]))["lines"][0]["value"] == [0, 1, 2]


def test_the_page_loads_nothing_and_runs_its_own_scripts_alone() -> None:
    text = page(grid(moments(3)), [past()], [line()])
    found = Reader(text)
    (policy,) = (a["content"] for tag, a in found.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    hashes = [f"'sha256-{b64encode(hashlib.sha256(body.encode()).digest()).decode()}'" for body in scripts]

    assert len(hashes) == 2
    assert policy == (
        f"default-src 'none'; script-src {' '.join(hashes)}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    assert not {tag for tag, _ in found.elements} & {"link", "iframe", "img", "object", "form", "base"}
    assert not {name for _, names in found.shape for name in names} & {"src", "srcset", "style", "onclick", "onload"}
    own = text.replace(PARTS.library, "")
    assert not [
        word for word in ("http://", "https://", "url(", "@import", "fetch(", "eval(", "innerHTML") if word in own
    ]


def test_a_check_that_was_removed_is_marked_and_does_not_count() -> None:
    kind = "expect_column_values_to_be_unique"
    checks = [
        past(last="fail", expectation=kind),
        past("n", last="fail", expectation=kind),
        past("o", expectation="volume"),
    ]
    text = Reader(page(grid(moments(3)), checks, (), replace(ABOUT, described={"n": "Sums <b>add</b> up."}))).text

    assert in_order(text, "1 check failed when last run: n.amount.", "m.amount", "This check was removed", "n.amount")
    assert text.count("This check was removed") == 1
    assert "Sums <b>add</b> up." in text


def test_ticks_in_a_row_that_failed_alike_are_one_entry() -> None:
    mixed = [*moments(6, 2, 3, 4, 6)[:3], *moments(6, 4, 6, why="another")[3:]]

    assert history_page.unpublished(mixed) == [
        ("tick 6", "2026-01-10 12:30", "another"),
        ("tick 4", "2026-01-10 12:20", "another"),
        ("ticks 2–3", "2026-01-10 12:10 to 2026-01-10 12:15", "1 check failed in m"),
    ]


def test_each_picture_says_what_it_shows() -> None:
    found = Reader(page(grid(moments(3, 2)), [past()], [line()]))
    pictures = [a for tag, a in found.elements if tag == "svg"]

    assert pictures
    assert [a for a in pictures if not (a.get("aria-hidden") or (a.get("role") == "img" and a.get("aria-label")))] == []
    assert [tag for tag, _ in found.elements if tag == "h1"] == ["h1"]


@pytest.mark.slow
def test_the_largest_history_is_written_quickly_and_stays_small() -> None:
    """A week of five minutes in which 500 checks fail every other time, and as many numbers as are drawn."""
    drawn = grid(moments(2016, *range(1, 2016, 3)), 500)
    width = len(drawn.columns)
    ranks = tuple(3 * (n % 2) for n in range(width))
    checks = [past(f"model_{n}", ranks, last="fail") for n in range(500)]
    lines = [
        line(width, subject=f"model_{n // 8}", what=str(n), values=tuple(n + 0.123456789 * m for m in range(width)))
        for n in range(400)
    ]
    page(drawn, checks[:1])
    begun = time.process_time()
    text = page(drawn, checks, lines)
    took = time.process_time() - begun

    assert took < 2
    assert len(text.encode()) < 4_000_000
    assert len(embedded(text)["lines"]) == history_page.MOST_LINES
    found = Reader(text)
    assert [n for n in range(500) if f"model_{n}.amount" not in found.text] == []


# ── what is read ─────────────────────────────────────────────────────────────────────────────────────────────────


def check(status: str, name: str = "m", unexpected: int = 0) -> CheckResult:
    place = Place("expectations/m.yml", 2, 5)
    return CheckResult(
        name, "t", ("a",), "critical", Outcome(status), 10, unexpected, (), 0.5, "", "", place, f"id_{name}"
    )


def result(tick: int, *checks: CheckResult, published: bool = True, seconds: float = 1.0) -> TickResult:
    stages = tuple(StageReceipt(t, "merge", "", 10 * tick, 1, Receipt(seconds)) for t in ("m__state_1", "m"))
    nodes = (NodeResult(1, 1, "m", "merge", "success", 0.5, stages=stages),)
    return TickResult(tick, AT + tick * FIVE, published, 1.0, nodes, checks)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Five ticks: the third failed, the fourth was cut off."""
    made = Ledger(str(tmp_path), "shop")
    for tick in range(1, 6):
        at = AT + tick * FIVE
        pinned = made.pin(tick, at, {}, at, "me")
        if tick in (1, 2, 5):
            made.publish(tick, at, {}, at, "me", pinned)
    for done in (
        result(1, check("pass"), check("warn", "n", 1)),
        result(2, check("pass"), seconds=3.0),
        result(3, check("fail", unexpected=5), check("error", "n"), published=False),
        result(5, check("pass"), check("pass", "n")),
    ):
        check_results.write(made.warehouse, done, AT)
        receipts.write(made.warehouse, done, "duckdb", AT)
    return made


@pytest.mark.slow
def test_what_the_books_hold_is_what_is_drawn(ledger: Ledger) -> None:
    with Books(ledger) as books:
        found = books.read()

    assert [(m.tick, m.published, m.why, m.warned) for m in found.grid.moments] == [
        (1, True, "", 1), (2, True, "", 0),
        (3, False, "1 check failed and 1 check could not be evaluated in m and n", 0),
        (4, False, "the build ended early", 0), (5, True, "", 0),
    ]  # fmt: skip
    assert [(c.check_id, c.ranks, c.shares, c.last, c.worst_tick) for c in found.checks] == [
        ("id_n", (2, None, 4, None, 0), (0.1, None, 0.0, None, 0.0), "pass", 3),
        ("id_m", (0, 0, 3, None, 0), (0.0, 0.0, 0.5, None, 0.0), "pass", 3),
    ]
    assert [c.summary() for c in found.checks] == [
        "warned in 1, could not be evaluated in 1 of 3 ticks, last in tick 3",
        "failed in 1 of 4 ticks, last in tick 3: 5 of 10 rows (50 %)",
    ]
    assert [(c.subject, c.what, c.values) for c in found.costs] == [
        ("m", "seconds", (2.0, 6.0, 2.0, None, 2.0)),
        ("m", "rows changed", (10.0, 20.0, 30.0, None, 50.0)),
    ]
    assert (found.lines, found.quarantined, found.checks_left) == ((), (), 0)


@pytest.mark.slow
def test_costs_that_cannot_be_are_drawn_as_none(ledger: Ledger) -> None:
    """Seconds beyond anything that a tick takes; their sum once ended `sqlrun history` with a stack of Python's."""
    receipts.write(ledger.warehouse, result(4, seconds=float("inf")), "duckdb", AT)
    with Books(ledger) as books:
        found = books.read().costs

    assert found[0].values == (2.0, 6.0, 2.0, 0.0, 2.0)


@pytest.mark.slow
def test_it_can_be_narrowed_to_models(ledger: Ledger) -> None:
    with Books(ledger, ("n", "it's")) as books:
        found = books.read()

    assert [c.model for c in found.checks] == ["n"]
    assert found.costs == ()


@pytest.mark.slow
def test_measures_have_their_band_and_what_is_unusual(ledger: Ledger) -> None:
    for tick, value in ((1, 5.0), (2, 1.0), (5, float("nan"))):
        low, odd = ("low", True) if tick == 2 else (None, False)
        rows = tuple(
            Measure("m", measure, value, source, 300.0, least, 9.0, odd, low)
            for source, measure, least in (
                (None, "null_share:a", None), ("s.m", "rows", 2.0), ("s.m", "freshness_seconds", None),
            )
        )  # fmt: skip
        measures.write(ledger.warehouse, TickResult(tick, AT + tick * FIVE, True, 1.0, (), (), rows), AT)

    with Books(ledger) as books:
        found = books.read().lines

    assert [(x.what, x.unit) for x in found] == [
        ("rows", "rows"), ("freshness: age of the newest row", "seconds"), ("share of NULL in a", "share"),
    ]  # fmt: skip
    assert found[0].values == (5.0, 1.0, None, None, None)
    assert found[0].low == (2.0, 2.0, None, None, 2.0)
    assert found[0].places == ((1, "low"),)
    assert (found[1].low, found[1].high) == ((None,) * 5, (9.0, 9.0, None, None, 9.0))


def test_a_warehouse_without_books_has_ticks_alone(tmp_path: Path) -> None:
    made = Ledger(str(tmp_path), "shop")
    made.pin(1, AT, {}, AT, "me")
    with Books(made) as books:
        found = books.read()

    assert [m.published for m in found.grid.moments] == [False]
    assert (found.checks, found.costs, found.lines, found.quarantined) == ((), (), (), ())


@pytest.mark.slow
def test_the_command_writes_the_page_of_real_builds(tmp_path: Path) -> None:
    shops = Shops(tmp_path / "shops")
    said = shops.run("history")
    assert shops.code == 2 and "nothing is published" in said
    shops.build(1, sale("a", 1, 3), sale("b", 1, 7), "no JSON")
    shops.build(2, sale("c", 1, -1))
    assert shops.code == 1

    said = shops.run("history")
    assert shops.code == 0 and said.strip().endswith("History: target/history.html")
    text = Reader((shops.root / "target" / "history.html").read_text()).text
    assert in_order(
        text, "Readers see tick 1, tick 2 is not published; 1 of 2 ticks not published; 1 check failed when last run: "
        "stg_sales.amount.", "tick 2", "1 check failed in stg_sales", "stg_sales.amount",
        "failed in 1 of 2 ticks, last in tick 2: 1 of 1 row (100 %)", "Quarantined lines, by reason", "stg_lines",
        "not a JSON object", "1 line, 1 of them in tick 1", "Seconds and rows, by model",
    )  # fmt: skip

    shops.run("history", "--select", "stg_sales", "--out", str(tmp_path / "out" / "h.html"))
    assert "Modelsstg_sales" in "".join(Reader((tmp_path / "out" / "h.html").read_text()).text.split())
    (tmp_path / "file").write_text("")
    assert "can't write" in shops.run("history", "--out", str(tmp_path / "file" / "h.html"))
    assert shops.code == 1
