"""Every outcome of a check, in every severity, evaluated or not, in any tick, says one thing wherever it is shown.

`COMBINATIONS` are all that can be; each is rendered on the console, as HTML, Markdown, JUnit and run_results, and read
for words that contradict it or each other.
"""

from __future__ import annotations

import ast
import html as escapes
import os
import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sqlrun import outcome
from sqlrun.check.volume import usual
from sqlrun.errors import Place
from sqlrun.events import CheckResult, TickResult
from sqlrun.outcome import BLOCKING, RANKED, STORED, WORST_FIRST, Level, Outcome
from sqlrun.project import SEVERITIES
from sqlrun.report import gx_results, html_report, log_lines, remedies, run_results, summaries
from tests.report.test_page import ABOUT, TEMPLATE
from tests.report.test_report import AS_OF, check, node

TYPES = (
    "expect_column_values_to_be_between",
    "relationships",
    "freshness",
    "max_quarantined",
    "volume",
    "repeats",
)
PLACES = (Place("expectations/staging/stg_orders.yml", 12, 5), Place("models/staging/stg_orders.yml", 3, 5))
TICKS = (1, 2, 11)
# What a check's status may be in a severity; an error or nothing to compare with may be in each.
MAY = {one: ("info",) if one is Outcome.INFO else SEVERITIES for one in Outcome}
NOT = "not evaluated yet", "not yet evaluated", "not evaluated", "could not be evaluated", "not measured"


def combinations() -> list[tuple[CheckResult, int]]:
    found = []
    for status, severity, kind, place in product(Outcome, SEVERITIES, TYPES, PLACES):
        if severity not in MAY[status]:
            continue
        kind = "measures" if status is Outcome.UNMEASURED else kind
        for rows, bad in ((0, 0), (10, 0), (10, 3)):
            message = "a said thing" if status is not Outcome.PASS else ""
            made = check(status, bad, severity=severity, type=kind, place=place, evaluated=rows, message=message)
            found += [(made, tick) for tick in TICKS]
    return found


COMBINATIONS = combinations()


def shown(one: CheckResult, number: int) -> dict[str, str]:
    """Render a tick with this check alone, as far as people and programs read of it."""
    result = TickResult(number, AS_OF, not one.status.blocks, 1.0, (node("merge", "stg_orders"),), (one,))
    about = replace(ABOUT, before=number - 1)
    lines = [*log_lines.checks([one]), *log_lines.closing(result, about.before)]
    text = html_report.html(TEMPLATE, result, about)
    body = escapes.unescape(re.sub("<[^>]*>", "", text[text.index("<h1") :]))
    return {
        "console": "\n".join(map(str, lines)),
        "page": body,
        "markdown": summaries.markdown(result, about).replace("\\", ""),
        "junit": summaries.junit(result, about),
        "run_results": str(run_results.check_result("shop", one, AS_OF)),
        "documents": str(gx_results.documents(result, {})),
    }


@pytest.mark.slow
@pytest.mark.parametrize("status", Outcome)
def test_no_combination_contradicts_itself(status: Outcome) -> None:
    for one, number in COMBINATIONS:
        if one.status is not status:
            continue
        texts = shown(one, number)
        for where, text in texts.items():
            about = (one, number, where, text)
            if status.evaluated:
                assert not any(words in text for words in NOT), about
            else:
                assert "not as expected" not in text and "as expected" not in text, about
                assert "3 of 10" not in text and "10 rows" not in text, about
            assert number == 1 or "first tick" not in text, about
        counts(one, texts)
        advised(one, texts["page"])


def counts(one: CheckResult, texts: dict[str, str]) -> None:
    """Each form counts it as the same thing."""
    level = one.status.level
    tally = {Level.GOOD: "PASS=2", Level.NOTE: "INFO=1", Level.WARNING: "WARN=1", Level.BLOCKS: "ERROR=1"}[level]
    assert tally in texts["console"], (one, texts["console"])
    assert ("Completed successfully" in texts["console"]) == (level in (Level.GOOD, Level.NOTE))
    headline = {
        Level.GOOD: "passed", Level.NOTE: "1 note from", Level.WARNING: "1 warning from",
        Level.BLOCKS: "is NOT published",
    }  # fmt: skip
    for form in ("page", "markdown"):
        assert headline[level] in texts[form], (one, texts[form][:300])
    (case,) = [c for c in ElementTree.fromstring(texts["junit"]).iter("testcase") if c.get("file")]
    tags = [child.tag for child in case]
    unjudged = ["skipped"] if one.status is Outcome.UNJUDGED else ["system-out"]
    blocking = ["error"] if one.status is Outcome.ERROR else ["failure"]
    assert tags == {
        Level.GOOD: [], Level.NOTE: unjudged, Level.WARNING: ["system-out"], Level.BLOCKS: blocking,
    }[level]  # fmt: skip
    dbt = {Level.GOOD: "pass", Level.NOTE: "warn", Level.WARNING: "warn", Level.BLOCKS: one.status.value}[level]
    assert f"'status': '{'skipped' if one.status == 'unjudged' else dbt}'" in texts["run_results"]
    assert ("stg_orders" in texts["documents"]) == (one.status is not Outcome.UNJUDGED)


def advised(one: CheckResult, text: str) -> None:
    """No advice tells to write what stands there already, or what the file has no word for."""
    said = remedies.advice(one)
    assert said.replace("`", "") in text
    in_contract = one.place.file.startswith("models/")
    assert "severity: warning" not in said or one.severity == "info"
    assert "on_fail" not in said or not in_contract
    assert "severity: warn}" not in said or (in_contract and one.status is Outcome.FAIL)
    assert "on_fail: warn" not in said or one.status is Outcome.FAIL
    assert "on_fail: fail" not in said or one.status is Outcome.WARN
    assert bool(said) == (one.status is not Outcome.PASS)


def test_outcomes_are_distinct() -> None:
    """No two have the same words on a page; each level and each place of a past is somebody's."""
    assert len({one.words.tag for one in Outcome}) == len(Outcome)
    assert {one.level for one in Outcome} == {*Level}
    assert [one.rank for one in RANKED] == [*range(len(RANKED))]
    assert all(one.blocks == (one in BLOCKING) for one in Outcome)
    assert [one.level.place for one in WORST_FIRST] == sorted((one.level.place for one in Outcome), reverse=True)


def test_a_stored_word_is_read_back() -> None:
    """What is stored of each outcome is plain text; a word of a later version is no pass."""
    for one in Outcome:
        assert type(one.stored) is str and f"{one}" == str(one) == one.stored
        assert outcome.read(one.stored).level is one.level
    assert [outcome.read(one.stored) for one in STORED] == [*STORED]
    assert outcome.read("a later word") is Outcome.ERROR


# ── nobody else spells an outcome out ────────────────────────────────────────────────────────────────────────────

PACKAGE = Path(outcome.__file__).parent
WRITTEN = PACKAGE / "serve" / "pages" / "outcomes.js"
# Words that are another vocabulary's, too: a step's and a style's `error`.
SHARED = {"error"}
# What follows a failure, and how bad it is, is declared in the nouns; dbt's words for it, and those for a schema that
# changes, where they are read or imported; a unit test passes or fails by itself; lines of a log have dbt's levels, and
# selectors take dbt's words.
ELSEWHERE = {
    "outcome.py", "project.py", "load/constraints.py", "load/sources.py", "serve/openapi.py", "report/json_log.py",
    "render/dbt_names.py", "scaffold/dbt_tests.py", "graph/selectors.py", *(
        path.relative_to(PACKAGE).as_posix() for path in (PACKAGE / "unit_tests").rglob("*.py")
    ),
}  # fmt: skip


def spelled(text: str) -> list[str]:
    """List the lines of a module that spell an outcome out, as a text of its own or as a literal of SQL."""
    words, found = {one.value for one in Outcome}, []
    for part in ast.walk(ast.parse(text)):
        match part:
            case ast.Constant(value=str(said)):
                if said in words - SHARED or any(f"='{word}'" in said.replace(" ", "") for word in words):
                    found.append(f"{part.lineno}: {said}")
                if any(f"('{word}'," in said for word in words):
                    found.append(f"{part.lineno}: {said}")
            # The word that others share is an outcome's where a check is asked for it.
            case ast.Compare(left=ast.Attribute(value=ast.Name(id="check" | "c"), attr="status")):
                said_of = {inner.value for inner in ast.walk(part) if isinstance(inner, ast.Constant)}
                found += [f"{part.lineno}: {word}" for word in said_of & SHARED]
    return found


def in_pages(text: str) -> list[str]:
    """List the places of a page, its script or its template that spell an outcome out."""
    words = "|".join({one.value for one in Outcome} - {"info"})
    compared = rf"""(?:[=!]==?|\bin \(|,) ?["'](?:{words})["']"""
    return re.findall(rf"""{compared}|\bclass="(?:tag )?(?:fail|pass|error)"|\b(?:{words}): ["']""", text)


def test_no_other_module_spells_an_outcome_out() -> None:
    """What a check came to is asked of the enum alone; an outcome that is added is known everywhere at once."""
    modules = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.py")}

    assert {name: found for name, text in modules.items() if name not in ELSEWHERE and (found := spelled(text))} == {}


def test_no_page_spells_an_outcome_out() -> None:
    """Templates and scripts are handed classes and words."""
    pages = [path for folder in ("report", "serve") for path in (PACKAGE / folder / "pages").iterdir()]
    texts = {path.name: path.read_text() for path in pages if path.suffix in (".j2", ".js", ".html")}
    states = {"operator.js": [', "warn"']}  # a source's, which is unusual

    found = {name: wrong for name, text in texts.items() if name != WRITTEN.name and (wrong := in_pages(text))}
    assert found == states


@pytest.mark.parametrize(
    "text",
    [
        'bad = [check for check in checks if check.status == "fail"]',
        'bad = [check for check in checks if check.status in ("error", "other")]',
        'def f():\n    """Docs."""\n    return {"pass": 1}',
        "sql = f\"select * from book where status in ('fail', 'error') and {more}\"",
        'match status:\n    case "unjudged":\n        pass',
    ],
)
def test_a_planted_word_is_found(text: str) -> None:
    assert spelled(text)


@pytest.mark.parametrize(
    "text", ['row.status === "pass"', 'const KINDS = { fail: "bad" }', "{% if f.kind in ('warn', 'info') %}"]
)
def test_a_word_planted_in_a_page_is_found(text: str) -> None:
    assert in_pages(text)


def test_the_script_of_outcomes_is_current() -> None:
    """`SQLRUN_WRITE=1` writes it anew."""
    if os.environ.get("SQLRUN_WRITE"):
        WRITTEN.write_text(outcome.script())

    assert WRITTEN.read_text() == outcome.script()


def test_each_style_sheet_knows_the_classes() -> None:
    """A rank that is drawn has a colour, and so has what blocks or warns."""
    report, history = ((PACKAGE / "report" / "pages" / f"{name}.html.j2").read_text() for name in ("report", "history"))
    assert [one for one in RANKED if f".rank{one.rank} {{" not in report] == []
    assert [one for one in RANKED if f"path.{one.css} {{" not in history] == []
    for one in Outcome:
        rules = {Level.GOOD: [f".tag.{one.css}"], Level.WARNING: [f".tag.{one.css}"], Level.BLOCKS: [f".{one.css}"]}
        assert [rule for rule in rules.get(one.level, []) if not re.search(rf"{re.escape(rule)}[ ,]", report)] == []
    served = (PACKAGE / "serve" / "pages" / "operator.css").read_text()
    for level in (Level.WARNING, Level.BLOCKS):
        assert f"article.{level.css} {{" in report and f"article.{level.css} {{" in history
        assert f".state.{level.css} {{" in served


def test_only_a_table_that_begins_has_lines_of_any_time() -> None:
    """Two ticks of one time are no first tick."""
    at = datetime(2026, 3, 15, 11, 30, tzinfo=timezone.utc)
    assert "first tick of the table" in str(usual([], at, None))
    assert usual([], at, 0.0) == "no time has passed since the previous tick"
    assert "no history yet" in str(usual([], at, timedelta(minutes=5).total_seconds()))
