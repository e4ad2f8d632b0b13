"""Values of rows that a check shows: whatever they hold, no screen, page, summary, XML or JSON obeys it or bursts."""

from __future__ import annotations

import io
import json
import unicodedata
from contextlib import redirect_stdout
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sqlrun.check.check_plan import Rows, Terms
from sqlrun.check.evaluate import run_checks
from sqlrun.events import CheckResult, TickResult
from sqlrun.report import log_lines
from sqlrun.report.console import Console
from sqlrun.report.html_report import html
from sqlrun.report.run_results_file import Artifacts
from sqlrun.report.summaries import junit, markdown
from sqlrun.run import alerts
from sqlrun.system_tables import check_results
from tests.check.test_quality import AS_OF, IN_SET, QUERY, expect, model, table
from tests.report.test_page import ABOUT, TEMPLATE, Reader

# Great Expectations takes seconds to import.
pytestmark = pytest.mark.slow

HOSTILE = {
    "html": "<script>alert(1)</script><img src=http://evil.example onerror=alert(1)></bdi></li>",
    "quotes": "\"'`\\ '' \"\" {{ 7 * 7 }} {% x %} ${HOME} %s {0}",
    "lines": "a\nb\r\nc\x0bd\x0ce\u2028f\u2029g\x85h",
    "nul": "a\x00b",
    "control": "\x1b[2J\x1b]0;title\x07\x08\x7f\x9b31m",
    "emoji": "😀👩‍👩‍👧‍👦🇦🇶",
    "rtl": "\u202eevil\u202c \u2066x\u2069 שלום \u200f\ufeff\u061c",
    "xml": "]]> & &amp; &#0; <!-- --> \ufffe\uffff",
    "markdown": "| a | b |\n|---|---|\n[x](http://evil.example) **b** `c` # h @team",
    "csv": "=cmd|' /C calc'!A0",
    "long": "x" * 10_000_000,
    "long line ends": "\n" * 1_000_000,
    "wide": "\u0301" * 100_000,
}


@pytest.fixture(scope="module")
def result() -> TickResult:
    rows = table(id=range(len(HOSTILE)), status=list(HOSTILE.values()))
    asked = (
        expect(IN_SET, column="status", value_set=["fine"]),
        expect(IN_SET, "info", "warn", column="status", value_set=["fine"]),
        expect(QUERY, "warning", "warn", unexpected_rows_query="select * from {batch}"),
    )
    checks = run_checks(model("id", "status"), asked, Rows(rows, whole=lambda: rows), Terms(AS_OF))
    assert [len(check.samples) for check in checks] == [len(HOSTILE)] * 3
    return TickResult(5, AS_OF, False, 1.0, (), checks)


def unseen(text: str) -> set[str]:
    """Characters that a screen would obey; a line end is none."""
    return {
        letter for letter in text if letter != "\n" and unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp", "Cs")
    }


# What joins the parts of a picture, or is nothing at all, moves nothing on a screen.
JOINERS = {"\u200d", "\ufeff"}


def test_the_page(result):
    page = html(TEMPLATE, result, ABOUT)
    shown = Reader(page)
    assert len(page) < 200_000 and not shown.wrong
    assert not {"script", "img"} & {tag for tag, _ in shown.elements}
    assert not any(name.startswith("on") for _, attributes in shown.elements for name in attributes)
    assert unseen(page) <= JOINERS
    assert "<script>alert(1)</script>" in shown.text and "{{ 7 * 7 }}" in shown.text


def test_the_summary(result):
    text = markdown(result, ABOUT)
    assert len(text) < 50_000 and unseen(text) <= JOINERS and "<script" not in text


def test_junit(result):
    text = junit(result, ABOUT)
    root = ElementTree.fromstring(text)
    assert len(text) < 50_000 and unseen(text) <= JOINERS
    assert len(list(root.iter("testcase"))) == 3
    assert "<script>alert(1)</script>" in "".join(root.itertext())


def test_the_console(result):
    lines = "\n".join(map(str, log_lines.closing(result, 4)))
    assert len(lines) < 50_000 and unseen(lines) <= JOINERS
    for check in result.checks:
        assert len(str(log_lines.line(check))) < 500
    shown = io.StringIO()
    with redirect_stdout(shown):
        Console().lines(log_lines.closing(result, 4))
    assert unseen(shown.getvalue()) <= JOINERS


def test_run_results(result, tmp_path):
    artifacts = Artifacts(tmp_path, "shop", lambda: datetime(2026, 1, 1, tzinfo=timezone.utc))
    for check in result.checks:
        artifacts.emit(check)
    artifacts.finish(result)
    data = (tmp_path / "run_results.json").read_bytes()
    found = json.loads(data)
    assert len(data) < 100_000 and data.isascii()
    samples = found["results"][0]["adapter_response"]["samples"]
    assert len(samples) == len(HOSTILE) and max(map(len, samples)) < 120
    assert "id=3, status=a\x00b" in samples


def test_what_is_kept_or_sent_has_no_samples(result):
    for text in (alerts.payload("broken", result, ABOUT, None), str(check_results.rows_of(result, AS_OF))):
        assert "alert(1)" not in text and len(text) < 10_000


@pytest.mark.parametrize("name", HOSTILE)
def test_an_error_that_quotes_a_value(name):
    """A cast that fails names what it failed on."""
    rows = table(id=[1], status=[HOSTILE[name]])
    asked = (expect(QUERY, unexpected_rows_query="select * from {batch} where cast(status as int) > 1"),)
    (check,) = run_checks(model("id", "status"), asked, Rows(rows), Terms(AS_OF))
    assert check.status == "error" and len(check.message) < 1_000
    text = "\n".join(map(str, log_lines.failures(TickResult(5, AS_OF, False, 1.0, (), (check,)))))
    assert unseen(text) <= JOINERS
    assert isinstance(check, CheckResult) and Path(check.place.file).suffix == ".yml"
