"""What became of landed lines: the same numbers on the console, in run_results.json and in the report."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

from sqlrun.engine_api import Receipt
from sqlrun.events import Measure, NodeResult, StageReceipt, TickResult
from sqlrun.report import html_report, log_lines
from sqlrun.report.run_results import node_result
from sqlrun.source_api import NO_SUMS, NUMBERS
from sqlrun.system_tables import line_sums
from tests.report.test_page import ABOUT, TEMPLATE

AT = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)
PART = "<script>alert(1)</script>/0"


def row(**numbers: Any) -> dict[str, Any]:
    given = dict.fromkeys((*NUMBERS, "dropped_because", "lost_because", "accepted_by"))
    return {**given, "source": "shop.orders", "part": PART, "tick": 3, "landed": 0, "quarantined": 0, **numbers}


ROWS = (
    row(read=9, landed=6, quarantined=2, dropped=1, gaps=4, unexplained=0, dropped_because='{"test order": 1}'),
    row(lost=3, lost_because="offsets [2, 5) of <b>", accepted_by="Ops, night, 2026-05-04T12:00:00+00:00"),
)


def landing(rows: tuple[dict[str, Any], ...] = ROWS) -> NodeResult:
    stage = StageReceipt("stg", "append", "", 6, 4, Receipt(0.1), lines=line_sums.of(rows))
    return NodeResult(
        1, 1, "stg", "landing", "success", 0.1, rows=6, quarantined=2, stages=(stage,), dropped=(("x", 1),)
    )


def result(node: NodeResult) -> TickResult:
    return TickResult(3, AT, True, 1.0, (node,), measures=(Measure("stg", "rows", 6.0, source="shop.orders"),))


def page(node: NodeResult) -> str:
    return html_report.html(TEMPLATE, result(node), ABOUT)


def test_sums_and_losses_of_rows() -> None:
    sums = line_sums.of(ROWS)

    assert tuple(sums.numbers.values()) == (9, 6, 2, 1, 4, 3, 0)
    assert sums.arithmetic() == "9 lines read = 6 landed + 2 quarantined + 1 dropped + 0 unexplained; 3 lost"
    assert [(one.by, one.at, one.lines) for one in sums.losses] == [("Ops, night", "2026-05-04T12:00:00+00:00", 3)]
    assert sums.reasons == {"test order": 1} and line_sums.of(()) == NO_SUMS
    assert line_sums.of((row(landed=5),)).arithmetic().startswith("an unknown number of lines read = 5 landed")


def test_the_line_of_a_landing_names_what_did_not_land() -> None:
    assert log_lines.line(landing()).tag == "[OK 6 rows, 2 quarantined, 1 dropped, 4 gaps, 3 lost in 0.10s]"
    unknown = landing((row(lost_because="the topic was deleted", accepted_by="Ops, now"),))
    assert "lines lost" in log_lines.line(unknown).tag
    wrong = landing((row(unexplained=-2),))
    assert "-2 unexplained" in log_lines.line(wrong).tag


def test_run_results_have_the_numbers_and_the_losses() -> None:
    response: Any = json.loads(json.dumps(node_result("shop", landing(), AT)["adapter_response"]))

    assert {name: response["lines"][name] for name in NUMBERS} == dict(line_sums.of(ROWS).numbers)
    assert response["lines"]["losses"][0]["what"] == "offsets [2, 5) of <b>"
    assert "lines" not in response["tables"][0]


def test_the_report_has_a_row_for_each_source_with_its_arithmetic() -> None:
    text = page(landing())

    assert "9 lines read = 6 landed + 2 quarantined + 1 dropped + 0 unexplained; 3 lost" in text
    assert "source <bdi>shop.orders</bdi>" in text and "Accepted by Ops, night" in text
    assert "<script>alert" not in text and "of <b>" not in text and "&lt;b&gt;" in text
    assert 'id="lines"' not in page(landing(()))
