"""Every outcome of a check, in every severity, evaluated or not, in any tick, says one thing wherever it is shown.

`COMBINATIONS` are all that can be; each is rendered on the console, as HTML, Markdown, JUnit and run_results, and read
for words that contradict it or each other.
"""

from __future__ import annotations

import html as escapes
import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import product
from typing import get_args
from xml.etree import ElementTree

import pytest

from sqlrun.check.volume import usual
from sqlrun.errors import Place
from sqlrun.events import CheckResult, CheckStatus, TickResult
from sqlrun.report import gx_results, html_report, log_lines, outcomes, remedies, run_results, summaries
from tests.report.test_page import ABOUT, TEMPLATE
from tests.report.test_report import AS_OF, check, node

SEVERITIES = ("critical", "warning", "info")
TYPES = (
    "expect_column_values_to_be_between",
    "relationships",
    "freshness",
    "max_quarantined",
    "volume",
    "measures",
    "repeats",
)
PLACES = (Place("expectations/staging/stg_orders.yml", 12, 5), Place("models/staging/stg_orders.yml", 3, 5))
TICKS = (1, 2, 11)
# What a check's status may be in a severity; an error or nothing to compare with may be in each.
MAY: dict[CheckStatus, tuple[str, ...]] = {
    "pass": SEVERITIES,
    "fail": SEVERITIES,
    "warn": SEVERITIES,
    "info": ("info",),
    "error": SEVERITIES,
    "unjudged": SEVERITIES,
}
NOT = "not evaluated yet", "not yet evaluated", "not evaluated", "could not be evaluated", "not measured"


def combinations() -> list[tuple[CheckResult, int]]:
    found = []
    for status, severity, kind, place in product(get_args(CheckStatus), SEVERITIES, TYPES, PLACES):
        if severity not in MAY[status] or (kind == "measures" and status not in ("warn", "unjudged", "error")):
            continue
        for rows, bad in ((0, 0), (10, 0), (10, 3)):
            message = "a said thing" if status != "pass" else ""
            made = check(status, bad, severity=severity, type=kind, place=place, evaluated=rows, message=message)
            found += [(made, tick) for tick in TICKS]
    return found


COMBINATIONS = combinations()


def shown(one: CheckResult, number: int) -> dict[str, str]:
    """Render a tick with this check alone, as far as people and programs read of it."""
    blocks = outcomes.of_check(one).level == "blocks"
    result = TickResult(number, AS_OF, not blocks, 1.0, (node("merge", "stg_orders"),), (one,))
    about = replace(ABOUT, before=number - 1)
    lines = [*log_lines.checks([one]), *log_lines.closing(result, about.before)]
    text = html_report.html(TEMPLATE, result, about)
    body = escapes.unescape(re.sub("<[^>]*>", "", text[text.index("<h1") :]))
    return {
        "console": "\n".join(map(str, lines)),
        "page": body,
        "markdown": summaries.markdown(result, about).replace("\\", ""),
        "junit": summaries.junit(result, about),
        "run_results": str(run_results.check_result("shop", one, 1, AS_OF)),
        "documents": str(gx_results.documents(result, {})),
    }


@pytest.mark.slow
@pytest.mark.parametrize("status", get_args(CheckStatus))
def test_no_combination_contradicts_itself(status: CheckStatus) -> None:
    for one, number in COMBINATIONS:
        if one.status != status:
            continue
        called, texts = outcomes.of_check(one), shown(one, number)
        for where, text in texts.items():
            about = (one, number, where, text)
            if called.evaluated:
                assert not any(words in text for words in NOT), about
            else:
                assert "not as expected" not in text and "as expected" not in text, about
                assert "3 of 10" not in text and "10 rows" not in text, about
            assert number == 1 or "first tick" not in text, about
        counts(one, texts)
        advised(one, texts["page"])


def counts(one: CheckResult, texts: dict[str, str]) -> None:
    """Each form counts it as the same thing."""
    level = outcomes.of_check(one).level
    tally = {"good": "PASS=2", "note": "INFO=1", "warning": "WARN=1", "blocks": "ERROR=1"}[level]
    assert tally in texts["console"], (one, texts["console"])
    assert ("Completed successfully" in texts["console"]) == (level in ("good", "note"))
    headline = {"good": "passed", "note": "1 note from", "warning": "1 warning from", "blocks": "is NOT published"}
    for form in ("page", "markdown"):
        assert headline[level] in texts[form], (one, texts[form][:300])
    (case,) = [c for c in ElementTree.fromstring(texts["junit"]).iter("testcase") if c.get("file")]
    tags = [child.tag for child in case]
    unjudged = ["skipped"] if one.status == "unjudged" else ["system-out"]
    blocking = ["error"] if one.status == "error" else ["failure"]
    assert tags == {"good": [], "note": unjudged, "warning": ["system-out"], "blocks": blocking}[level]
    dbt = {"good": "pass", "note": "warn", "warning": "warn", "blocks": one.status}[level]
    assert f"'status': '{'skipped' if one.status == 'unjudged' else dbt}'" in texts["run_results"]
    assert ("stg_orders" in texts["documents"]) == (one.status != "unjudged")


def advised(one: CheckResult, text: str) -> None:
    """No advice tells to write what stands there already, or what the file has no word for."""
    said = remedies.advice(one)
    assert said.replace("`", "") in text
    in_contract = one.place.file.startswith("models/")
    assert "severity: warning" not in said or one.severity == "info"
    assert "on_fail" not in said or not in_contract
    assert "severity: warn}" not in said or (in_contract and one.status == "fail")
    assert "on_fail: warn" not in said or one.status == "fail"
    assert "on_fail: fail" not in said or one.status == "warn"
    assert bool(said) == (one.status != "pass")


def test_an_outcome_that_is_added_is_named_everywhere() -> None:
    """The set is closed: each has words, and no two have the same ones on a page."""
    every = get_args(outcomes.Outcome)
    assert {outcomes.of(status, "") for status in get_args(CheckStatus)} | {"unmeasured"} == {*every}
    assert len({outcomes.words(one).tag for one in every}) == len(every)
    assert {outcomes.words(one).level for one in every} == {*get_args(outcomes.Level)}
    assert set(html_report.OUTCOMES) == {*get_args(CheckStatus)}


def test_only_a_table_that_begins_has_lines_of_any_time() -> None:
    """Two ticks of one time are no first tick."""
    at = datetime(2026, 3, 15, 11, 30, tzinfo=timezone.utc)
    assert "begins with this tick" in str(usual([], at, None))
    assert usual([], at, 0.0) == "no time has passed since the tick before"
    assert "no past yet" in str(usual([], at, timedelta(minutes=5).total_seconds()))
