"""Reports of a tick for other systems: a Markdown summary and JUnit XML for CI. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

from sqlrun.events import CheckResult, NodeResult, TickResult
from sqlrun.outcome import NEVER_PASS, Outcome
from sqlrun.report import findings, html_report
from sqlrun.report.findings import About, Finding, clean, message
from sqlrun.report.log_lines import subject

# Characters that Markdown may read as markup. An underscore within a word is none; an address would become a link.
MARKS = re.compile(r"[\\`*\[\]#|~$@]|(?<!\w)_|_(?!\w)|(?<=:)//|(?<=www)\.")
MOST = 50
# CI shows a JUnit case in a narrow window; the HTML page has more.
FEW = 5


def markdown(result: TickResult, about: About) -> str:
    """Return the headline, tables of findings, and the quarantined lines as Markdown."""
    facts = [f"{name.lower()} {plain(value)}" for name, value in html_report.facts(result, about)]
    lines = [f"# {plain(findings.headline(result, about))}", "", ", ".join(facts)]
    lines += _table("What is wrong", findings.failures(result, about))
    lines += _table("Warnings", findings.warnings(result, about))
    lines += _table("Notes", findings.notes(result, about))
    quarantined = findings.quarantined(result.nodes)
    if quarantined:
        lines += ["", "## Quarantined lines", "", "| model | reason | lines |", "|---|---|---:|"]
        lines += [f"| {plain(q.model)} | {plain(r)} | {n:,} |" for q in quarantined for r, n in q.reasons]
        lines += [f"| {plain(q.model)} | other reasons | {q.more:,} |" for q in quarantined if q.more]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Return a text with Markdown and HTML markup escaped.

    >>> plain("a|b <i>")
    'a\\\\|b &lt;i&gt;'
    """
    text = MARKS.sub(r"\\\g<0>", " ".join(text.split()))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _table(title: str, found: Sequence[Finding]) -> list[str]:
    if not found:
        return []
    lines = ["", f"## {title} ({len(found):,})", "", "| where | rule | rows | what | not updated because of it |"]
    lines.append("|---|---|---|---|---|")
    for finding in found[:MOST]:
        detail = clean(finding.detail, findings.LONGEST_SAMPLE, "\n")
        match finding.kind:
            case Outcome.ERROR:
                what = f"{NEVER_PASS}: {detail}"
            case Outcome.UNJUDGED:
                what = detail
            case _:
                what = finding.description or detail
        held = ", ".join(finding.held_back[:10]) + (" ..." if len(finding.held_back) > 10 else "")
        cells = (finding.where, finding.rule or "-", finding.amount or "-", what, held or "-")
        lines.append(f"| {' | '.join(map(plain, cells))} |")
    if len(found) > MOST:
        lines += ["", f"and {len(found) - MOST:,} more in report.html"]
    return lines


def junit(result: TickResult, about: About) -> str:
    """Return a test suite for each model as JUnit XML: a case for each check, and for each failed or skipped step."""
    checks = findings.by_model(result.checks)
    steps = {node.name: node for node in result.nodes if node.status in ("error", "skipped")}
    root = ElementTree.Element("testsuites", name=clean(about.project), time=f"{result.seconds:.3f}")
    if about.problem:
        case = case_in(_suite(root, "build", (), result), "build", "the build", 0.0)
        ElementTree.SubElement(case, "error", message="the build ended early").text = message(about.problem)
    for name in dict.fromkeys([*checks, *steps]):
        suite = _suite(root, name, checks.get(name, ()), result)
        if name in steps:
            _step(suite, steps[name])
        numbers: Counter[str] = Counter()
        for check in checks.get(name, ()):
            # CI tracks a case by its name, so the name must not contain a line number.
            what = f"{clean(check.type)} {clean(subject(check))}"
            numbers[what] += 1
            _check(suite, check, f"{what} {numbers[what]}" if numbers[what] > 1 else what)
    return xml(root)


def xml(root: ElementTree.Element) -> str:
    """Return JUnit suites as text, with their cases counted."""
    for suite in (root, *root):
        cases = list(suite.iter("testcase"))
        suite.set("tests", str(len(cases)))
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(count, str(sum(1 for case in cases if case.find(tag) is not None)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(
    root: ElementTree.Element, name: str, checks: Sequence[CheckResult], result: TickResult
) -> ElementTree.Element:
    seconds = sum(check.seconds for check in checks)
    at = f"{result.as_of:%Y-%m-%dT%H:%M:%S}"
    return ElementTree.SubElement(root, "testsuite", name=clean(name), timestamp=at, time=f"{seconds:.3f}")


def case_in(suite: ElementTree.Element, model: str, name: str, seconds: float) -> ElementTree.Element:
    """Add a case to a JUnit suite."""
    return ElementTree.SubElement(suite, "testcase", classname=model, name=name, time=f"{seconds:.3f}")


def _step(suite: ElementTree.Element, node: NodeResult) -> None:
    case = case_in(suite, clean(node.name), f"{clean(node.kind or 'model')} {clean(node.name)}", node.seconds)
    if node.status == "skipped":
        ElementTree.SubElement(case, "skipped", message="an input failed")
    else:
        error = ElementTree.SubElement(case, "error", message="it could not be updated")
        error.text = message(node.message)


def _check(suite: ElementTree.Element, check: CheckResult, name: str) -> None:
    place = clean(str(check.place))
    case = case_in(suite, clean(check.model), name, check.seconds)
    case.set("file", clean(check.place.file))
    tag = check.status.junit
    if not tag:
        return
    samples = [clean(sample, findings.LONGEST_SAMPLE) for sample in check.samples[:FEW]]
    detail = message(check.status.sentence(findings.amount(check), check.message))
    text = "\n".join(filter(None, [clean(check.description, findings.LONGEST_SAMPLE), place, *samples]))
    if check.status.blocks:
        ElementTree.SubElement(case, tag, message=detail, type=clean(check.severity)).text = text
    elif check.status.has_past:
        ElementTree.SubElement(case, tag).text = f"{check.status.words.tag}: {detail}\n{text}"
    else:
        ElementTree.SubElement(case, tag, message=detail)
