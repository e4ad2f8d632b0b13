"""The texts that a user reads, whole: what they say is what is tested."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from sqlrun.engine_api import Receipt
from sqlrun.errors import Place
from sqlrun.events import CheckResult, NodeResult, StageReceipt, Started, Status, TickResult
from sqlrun.outcome import Outcome
from sqlrun.project import Profile
from sqlrun.report import html_report, log_lines
from sqlrun.report.findings import About
from sqlrun.report.log_lines import Line
from sqlrun.runtime.text_table import escaped, json_text, value_text

PLACE = Place("expectations/staging/stg_orders.yml", 12, 5)
AS_OF = datetime(2026, 1, 1, 12, 5, tzinfo=timezone.utc)


def check(
    status: str = "pass", unexpected: int = 0, columns: tuple[str, ...] = ("order_total",), **more: Any
) -> CheckResult:
    values: dict[str, Any] = {
        "model": "stg_orders",
        "type": "expect_column_values_to_be_between",
        "severity": "warning" if status == "warn" else "critical",
        "evaluated": 1234,
        "samples": (),
        "seconds": 0.01,
        "message": "",
        "description": "An order's total is not negative.",
        "place": PLACE,
        **more,
    }
    return CheckResult(status=Outcome(status), unexpected=unexpected, columns=columns, **values)


def node(kind: str, name: str, status: Status = "success", **more: Any) -> NodeResult:
    return NodeResult(2, 8, name, kind, status, more.pop("seconds", 1.2), **more)


ABOUT = About("shop", "duckdb", "lake", "", 11, AS_OF)


def tick(*nodes: NodeResult, checks: tuple[CheckResult, ...] = (), published: bool = True) -> TickResult:
    return TickResult(12, AS_OF, published, 4.2149, nodes, checks)


def texts(lines: list[Line]) -> str:
    return "\n".join(str(line) for line in lines)


@pytest.mark.parametrize(
    ("event", "what", "expected"),
    [
        (Started(1, 8, "seed dishes"), "", "1 of 8 START seed dishes ....... [RUN]"),
        (node("seed", "dishes", rows=40), "", "2 of 8 OK loaded seed dishes ... [OK 40 rows in 1.20s]"),
        (
            node("landing", "stg_order_events", rows=1234, quarantined=3),
            "",
            "2 of 8 OK landed stg_order_events  [OK 1,234 rows, 3 quarantined in 1.20s]",
        ),
        (node("merge", "orders", rows=1), "", "2 of 8 OK merge model orders ... [OK 1 row in 1.20s]"),
        (node("keys", "orders", "no-op"), "", "2 of 8 NO-OP keys model orders . [NO-OP in 1.20s]"),
        (node("full", "orders", "skipped"), "", "2 of 8 SKIP full model orders .. [SKIP]"),
        (node("merge", "orders", "error"), "", "2 of 8 ERROR creating merge model orders  [ERROR in 1.20s]"),
        (node("", "dishes", "error"), "seed dishes", "2 of 8 ERROR loading seed dishes  [ERROR in 1.20s]"),
        (node("", "events", "error"), "landing events", "2 of 8 ERROR landing events .... [ERROR in 1.20s]"),
        (node("", "orders", "error"), "", "2 of 8 ERROR creating orders ... [ERROR in 1.20s]"),
    ],
)  # fmt: skip
def test_a_step_is_a_line_as_in_dbt(event: Any, what: str, expected: str) -> None:
    line = log_lines.line(event, what)

    assert line.head(32) + line.tag == expected


def test_dots_end_where_dbt_ends_them() -> None:
    line = log_lines.line(Started(1, 8, "seed dishes"))

    assert str(line) == f"{'1 of 8 START seed dishes '.ljust(80, '.')} [RUN]"
    assert len(line.head()) == 81


def test_checks_that_passed_are_one_line() -> None:
    found = log_lines.checks(
        [
            check(),
            check("fail", 3),
            check("warn", 2, ("order_id", "line")),
            check("fail", columns=()),
            check("error"),
            check(),
        ]
    )

    assert [f"{line.text} {line.tag} {line.style}" for line in found] == [
        "FAIL 3 expect_column_values_to_be_between stg_orders.order_total [FAIL 3 in 0.01s] error",
        "WARN 2 expect_column_values_to_be_between stg_orders(order_id, line) [WARN 2 in 0.01s] warning",
        "FAIL expect_column_values_to_be_between stg_orders [FAIL in 0.01s] error",
        "ERROR expect_column_values_to_be_between stg_orders.order_total [ERROR in 0.01s] error",
        "PASS 2 checks of stg_orders [PASS in 0.02s] good",
    ]
    assert log_lines.checks([]) == []


def test_a_good_tick_ends_in_a_few_lines() -> None:
    result = tick(
        node("landing", "events", rows=5),
        node("seed", "dishes", "no-op"),
        node("seed", "places", rows=2),
        node("merge", "orders", rows=5),
        checks=(check(), check()),
    )

    assert (
        texts(log_lines.closing(result))
        == """\
Finished running 1 landing, 2 seeds, 1 model, 2 checks in 4.21 seconds.
Completed successfully
Tick 12 published: as_of 2026-01-01 12:05 UTC
Done. PASS=5 WARN=0 ERROR=0 SKIP=0 NO-OP=1 TOTAL=6"""
    )


def test_what_is_only_worth_knowing_is_no_warning() -> None:
    noted = check("info", 2, severity="info")
    lines = log_lines.closing(tick(node("merge", "orders", rows=5), checks=(noted, check())))
    said = texts(lines)

    assert "Completed successfully, with 1 note:" in said and "Warning" not in said
    assert "Note of check expect_column_values_to_be_between of stg_orders" in said and "(severity info)" in said
    assert "Done. PASS=2 WARN=0 INFO=1 ERROR=0 SKIP=0 NO-OP=0 TOTAL=3" in said
    assert "INFO 2 expect_column_values_to_be_between" in str(log_lines.checks([noted])[0])
    assert not {line.style for line in lines} & {"warning", "error"}
    both = texts(log_lines.closing(tick(checks=(noted, check("warn", 1)))))
    assert "Completed with 1 warning and 1 note:" in both
    assert both.index("Warning in") < both.index("Note of")


def test_one_cause_of_several_steps_is_reported_once() -> None:
    """A broker that is away is the cause for every source that it has."""
    away = "SR748 the broker doesn't answer"
    names = ("customers", "items", "orders")
    failed = [node("landing", name, "error", message=away) for name in names]
    result = tick(*failed, node("keys", "slots", "error", message="no space"), published=False)

    said = texts(log_lines.closing(result))
    assert said.count(away) == 1 and "Completed with 4 errors:" in said
    assert "Error in landing customers, landing items and landing orders\n  SR748" in said


def test_a_failed_tick_reports_what_where_and_what_follows() -> None:
    bad = check("fail", 3, samples=(*(f"order_id=o{n}, order_total=-1.00" for n in range(6)), "order_id=o9"))
    result = tick(
        node("merge", "orders", rows=5),
        node("keys", "slots", "error", message="[COLUMN] no such column\n\n  line two\x1b[31m"),
        node("full", "windows", "skipped"),
        checks=(check("warn", message="observed 5", columns=()), bad, check("error", message="no column `x`"), check()),
        published=False,
    )

    assert (
        texts(log_lines.closing(result, before=11))
        == r"""Finished running 3 models, 4 checks in 4.21 seconds.
Completed with 3 errors, 1 skipped and 1 warning:

Error in keys model slots
  [COLUMN] no such column
    line two\x1b[31m

Failure in check expect_column_values_to_be_between of stg_orders.order_total (expectations/staging/stg_orders.yml:12:5)
  An order's total is not negative.
  Got 3 of 1,234 rows not as expected (severity critical):
    order_id=o0, order_total=-1.00
    order_id=o1, order_total=-1.00
    order_id=o2, order_total=-1.00
    order_id=o3, order_total=-1.00
    order_id=o4, order_total=-1.00

Error in check expect_column_values_to_be_between of stg_orders.order_total (expectations/staging/stg_orders.yml:12:5)
  An order's total is not negative.
  It could not be evaluated, which is never a pass: no column `x` (severity critical)

Warning in check expect_column_values_to_be_between of stg_orders (expectations/staging/stg_orders.yml:12:5)
  An order's total is not negative.
  observed 5 (severity warning)

Tick 12 is not published; readers still see tick 11.
Done. PASS=2 WARN=1 ERROR=3 SKIP=1 NO-OP=0 TOTAL=7"""
    )


@pytest.mark.parametrize(
    ("before", "expected"),
    [(None, "readers still see the tick before."), (0, "readers see nothing yet."), (7, "readers still see tick 7.")],
)
def test_what_readers_see_after_a_failure(before: int | None, expected: str) -> None:
    result = tick(node("merge", "orders", "error"), published=False)

    assert f"Tick 12 is not published; {expected}" in texts(log_lines.closing(result, before))


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (59.999, "in 1 minute 0.00 seconds."),
        (3725.5, "in 1 hour 2 minutes 5.50 seconds."),
    ],
)
def test_time_is_rounded_before_it_is_split(seconds: float, expected: str) -> None:
    assert expected in texts(log_lines.closing(TickResult(1, AS_OF, True, seconds, ())))


def test_requests_to_a_store_are_reported() -> None:
    at_work = node("merge", "orders", stages=(StageReceipt("orders", "merge", "SR501", 2, 3, Receipt(0.5)),))
    result = replace(tick(at_work), requests=1168)
    number = "1,168 requests"

    assert f" seconds, {number}." in texts(log_lines.closing(result))
    assert log_lines.tick_line(result).text.endswith(f"s, {number})")
    assert log_lines.receipts_table(result)[-1] == f"{number} to the object store"
    assert ("Requests to the store", number.split()[0]) in html_report.facts(result, ABOUT)
    assert "request" not in texts([*log_lines.closing(tick()), log_lines.tick_line(tick())])


def test_a_long_message_is_cut() -> None:
    result = tick(node("merge", "orders", "error", message="\n".join(f"line {n}" for n in range(50))), published=False)
    found = texts(log_lines.closing(result))

    assert "  line 19\n  ... 30 lines more in run_results.json" in found
    assert "line 20" not in found


def test_when_quiet_a_failure_keeps_its_details_and_a_warning_is_left_out() -> None:
    result = tick(checks=(check("warn", message="observed 5"), check("fail", 1, samples=("a=1",))), published=False)
    loud = [line.text for line in log_lines.closing(result) if line.style in log_lines.LOUD]

    assert "    a=1" in loud
    assert not [text for text in loud if "observed 5" in text or "Finished" in text]


def test_receipts_add_up() -> None:
    events = StageReceipt("events", "append", "SR500", 1234, 3, Receipt(1.1, 1237, 345678, 2, 1237, 98765, 1, 4, 1))
    orders = StageReceipt(
        "orders", "merge", "SR501", 20, 3, Receipt(0.7, rows_written=20, bytes_written=999, commits=1),
        check_seconds=0.25,
    )  # fmt: skip

    both = node("merge", "orders", stages=(events, orders))
    assert log_lines.receipts_table(tick(both)) == [
        "table   strategy  reason  rows changed  rows read  bytes read  files read  rows written  bytes written"
        "  files written  commits  jobs  seconds  check seconds",
        "------  --------  ------  ------------  ---------  ----------  ----------  ------------  -------------"
        "  -------------  -------  ----  -------  -------------",
        "events  append    SR500          1,234      1,237      346 kB           2         1,237        98.8 kB"
        "              1        1     4     1.10              -",
        "orders  merge     SR501             20          -           -           -            20          999 B"
        "              -        1     -     0.70           0.25",
        "total                            1,254      1,237      346 kB           2         1,257        99.8 kB"
        "              1        2     4     1.80           0.25",
    ]
    assert log_lines.receipts_table(tick()) == ["No table changed."]


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (99_949, "99.9 kB"), (99_960, "100 kB"),
     (999_700, "1.0 MB"), (5 * 10**9, "5.0 GB"), (7 * 10**15, "7,000.0 TB")],
)  # fmt: skip
def test_bytes_are_short(size: int, expected: str) -> None:
    assert log_lines.byte_size(size) == expected


@pytest.mark.slow
def test_opening_counts_the_project() -> None:
    from tests.support import projects

    lines = log_lines.opening(projects.prepared(projects.ROOT), Profile("local", "spark", "warehouse", 4, {}))

    assert str(lines[0]).startswith("Running with sqlrun=")
    assert "1 view, " in str(lines[1]) and " checks, " in str(lines[1]) and str(lines[1]).endswith(" unit tests")
    assert str(lines[2]) == "Concurrency: 4 threads (profile='local', engine='spark')"


def test_what_runs_fits_a_narrow_terminal() -> None:
    steps = [(f"merge model a_model_with_a_long_name_{n}", n * 1.5) for n in range(10)]
    lines = log_lines.running(steps, 3, 20, 40, most=2)

    assert lines == [
        "     13.5s merge model a_model_with_a_l",
        "     12.0s merge model a_model_with_a_l",
        "           and 8 more",
        "[#.......] 3 of 20 done, 10 running",
    ]
    assert log_lines.running([], 0, 0, 10) == ["[....] 0 "]


def test_a_table_aligns_what_it_shows() -> None:
    rows = [
        ("o1", Decimal("12.50"), datetime(2026, 1, 1, 12, 5), [{"rank": 1, "dish_id": "d001"}], True),
        ("寿司\x1b[2J", Decimal("-3.00"), datetime(2026, 1, 1, 13, 5, 0, 7, timezone(timedelta(hours=1))), None, None),
    ]

    assert log_lines.table(("id", "total", "at", "top", "open"), rows) == [
        "id           total  at                          top                         open",
        "-----------  -----  --------------------------  --------------------------  ----",
        "o1           12.50  2026-01-01 12:05:00         [{rank: 1, dish_id: d001}]  true",
        r"寿司\x1b[2J  -3.00  2026-01-01 12:05:00.000007  NULL                        NULL",
    ]
    assert log_lines.table(("n",), [(1,), (20,), (300,)], 2) == [" n", "--", " 1", "20", "... and 1 more"]
    assert log_lines.table(("n",), []) == ["n", "-"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("1E+3"), "1000"),
        ([("a", 1), ("b", None)], "{a: 1, b: NULL}"),
        ([], "[]"),
        (b"\x00\xff", "0x00ff"),
        (date(2026, 1, 31), "2026-01-31"),
    ],
)
def test_values_are_written_plainly(value: object, expected: str) -> None:
    assert value_text(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("plain é 寿", "plain é 寿"), ("a\tb\nc", "a\\tb\\nc"), ("\x9b1m", "\\x9b1m"), ("\u202edab", "\\u202edab"),
     ("\ud800", "\\ud800")],
)  # fmt: skip
def test_a_terminal_never_obeys_a_value(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_json_keeps_every_digit() -> None:
    rows: list[dict[str, object]] = [
        {
            "total": Decimal("12345678901234567.10"),
            "at": datetime(2026, 1, 1, tzinfo=timezone.utc),
            "day": date(2026, 1, 1),
        },
        {"total": None, "at": None, "top": [{"n": "é\x1b"}], "map": [("k", 1)], "x": float("nan"), "y": Decimal("NaN")},
    ]
    text = log_lines.as_json(rows)

    assert (
        text
        == r"""[
  {"total": 12345678901234567.10, "at": "2026-01-01T00:00:00Z", "day": "2026-01-01"},
  {"total": null, "at": null, "top": [{"n": "\u00e9\u001b"}], "map": {"k": 1}, "x": "nan", "y": "NaN"}
]"""
    )
    assert json.loads(text, parse_float=Decimal)[0]["total"] == Decimal("12345678901234567.10")
    assert log_lines.as_json([]) == "[]"
    assert json_text(b"\x01") == '"0x01"'


def test_csv_distinguishes_null_from_an_empty_text() -> None:
    rows: list[dict[str, object]] = [
        {"a": None, "b": "", "c": 'say "hi", twice'},
        {"a": Decimal("1.50"), "b": "x\ny", "c": [{"rank": 1}]},
    ]

    assert log_lines.as_csv(["a", "b", "c"], rows) == 'a,b,c\n,"","say ""hi"", twice"\n1.50,"x\ny","[{""rank"": 1}]"'
