"""Results of unit tests as JUnit XML for CI: a suite for each model, a case for each test. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from xml.etree import ElementTree

from sqlrun.report.findings import clean
from sqlrun.report.summaries import case_in, xml
from sqlrun.unit_tests.output.shown import Known, failures, nothing_known
from sqlrun.unit_tests.run.results import TestResult

LONGEST = 20_000


def junit(project: str, results: Sequence[TestResult], known: Known = nothing_known) -> str:
    """Return the results as XML; a failure contains the text that the terminal shows."""
    total = sum(result.seconds for result in results)
    root = ElementTree.Element("testsuites", name=clean(project), time=f"{total:.3f}")
    for model, group in groupby(sorted(results, key=lambda result: result.model), key=lambda result: result.model):
        found = list(group)
        seconds = sum(result.seconds for result in found)
        suite = ElementTree.SubElement(root, "testsuite", name=clean(model), time=f"{seconds:.3f}")
        for result in found:
            _case(suite, result, known)
    return xml(root)


def _case(suite: ElementTree.Element, result: TestResult, known: Known) -> None:
    case = case_in(suite, clean(result.model), clean(result.name), result.seconds)
    case.set("file", clean(result.place.file))
    case.set("line", str(result.place.line))
    if result.status == "pass":
        return
    tag, message = ("error", clean(result.message, 200)) if result.status == "error" else ("failure", "the rows differ")
    text = "\n".join(each.text for each in failures([result], known) if each.text)
    ElementTree.SubElement(case, tag, message=message).text = clean(text, LONGEST, "\n")
