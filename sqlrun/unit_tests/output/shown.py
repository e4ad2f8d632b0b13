"""Results of unit tests as lines. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal, InvalidOperation

from sqlrun.report.log_lines import Line, Style, message_lines
from sqlrun.runtime.text_table import counted, escaped
from sqlrun.unit_tests.choosing import key
from sqlrun.unit_tests.output.column_origin import UNKNOWN, Facts
from sqlrun.unit_tests.output.differences import WIDEST, cut, table
from sqlrun.unit_tests.output.pairing import Paired, paired
from sqlrun.unit_tests.run.results import TestResult

# Function from a model's name to its facts.
Known = Callable[[str], Facts]
MOST_NOTES = 5
LONGEST_TYPE = 20

NOTHING = "No unit tests: no selected model has one."


def line(result: TestResult, place: int, total: int) -> Line:
    """Return the line of one finished test."""
    word = result.status.upper()
    style: Style = "good" if result.status == "pass" else "error"
    text = f"{place} of {total} {word} {key(result.model, result.name)}"
    return Line(text, f"[{word} in {result.seconds:.2f}s]", style)


def nothing_known(_: str) -> Facts:
    """Return empty facts for any model."""
    return UNKNOWN


def brief(results: Sequence[TestResult], known: Known = nothing_known, seconds: float | None = None) -> list[Line]:
    """Return one line for all tests, then the failures in full; empty if there are no tests.

    `seconds` passed while they ran, by default the sum of their own; 0 where all had passed before, unchanged since.
    """
    if not results:
        return []
    failed = sum(result.status != "pass" for result in results)
    seconds = sum(result.seconds for result in results) if seconds is None else seconds
    word, style = (f"FAIL {failed} of", "error") if failed else ("PASS", "good")
    took = f"in {seconds:.2f}s" if seconds else "before, unchanged since"
    tag = f"[{word.removesuffix(' of')} {took}]"
    first = Line(f"{word} {counted(len(results), 'unit test')}", tag, "error" if style == "error" else "good")
    return [first, *failures(results, known)]


def failures(results: Sequence[TestResult], known: Known = nothing_known) -> list[Line]:
    """Return the details of each failure and error."""
    wrong = [result for result in results if result.status != "pass"]
    return [each for result in wrong for each in (Line(""), *_details(result, known(result.model)))]


def closing(results: Sequence[TestResult], total: int, seconds: float | None = None) -> list[Line]:
    """Return the summary line, as dbt prints it; `total` includes tests that didn't run."""
    counts = {word: sum(result.status == word for result in results) for word in ("pass", "fail", "error")}
    summary = " ".join(f"{word.upper()}={count}" for word, count in counts.items())
    left = total - len(results)
    style: Style = "good" if counts["pass"] == len(results) else "error"
    tag = "" if seconds is None else f"[{'PASS' if style == 'good' else 'FAIL'} in {seconds:.2f}s]"
    done = Line(f"Done. {summary}{f' NOT RUN={left}' if left else ''} TOTAL={total}", tag, style)
    return [done] if style == "good" else [Line(""), done]


def as_json(results: Sequence[TestResult]) -> list[dict[str, object]]:
    """Return the results for JSON; rows are lists of texts in the order of `columns`."""
    return [{**asdict(result), "place": str(result.place)} for result in results]


def _details(result: TestResult, tested: Facts) -> Iterator[Line]:
    word = "Failure" if result.status == "fail" else "Error"
    yield Line(f"{word} in unit test {result.name} of {result.model} ({result.place})", style="error")
    yield from message_lines(result.message)
    if not result.missing and not result.unexpected:
        return
    for text in filter(None, (_compared(result), tested.file and f"The query is {tested.file}.")):
        yield Line(f"  {escaped(text)}", style="detail")
    rows = paired(result.columns, result.missing, result.unexpected, tested.grain)
    yield from table(result.columns, rows, tested.grain)
    yield from _notes(result.columns, rows, tested)


def _compared(result: TestResult) -> str:
    """Return a sentence on what was compared; empty for the table itself before the first step."""
    after = f"after step {result.step}" if result.step else "before the first step"
    match result.compared:
        case "change":
            return f"The change of step {result.step}: the rows added to the table and the rows removed from it."
        case "quarantined":
            return f"The quarantined lines{f', {after}' if result.step else ''}."
        case "whole":
            return f"The table as maintained by its changes, {after}; expected is the result of the whole query."
        case "contract":
            return f"The table {after}: these rows break the contract, and no build would publish them."
        case "parity":
            return f"The whole query {after}: expected is the result of DuckDB; that of Spark differs."
        case _:
            return f"The table {after}." if result.step else ""


def _notes(columns: Sequence[str], rows: Paired, tested: Facts) -> Iterator[Line]:
    """Yield lines on the differing columns: type, where they are computed, differences that the table hides."""
    differing = [name for at, name in enumerate(columns) if any(a[at] != b[at] for a, b in rows.pairs)]
    for name in differing[:MOST_NOTES]:
        made, at = tested.column(name), columns.index(name)
        if made.place:
            text = f"{name} ({cut(made.type, LONGEST_TYPE)}) is computed at {made.place}: {' '.join(made.sql.split())}"
            yield Line(f"  {cut(escaped(text), WIDEST)}", style="detail")
        hint = next(filter(None, (_hint(made.type, a[at], b[at]) for a, b in rows.pairs)), "")
        if hint:
            yield Line(f"  {escaped(name)}: {hint}", style="detail")
    if len(differing) > MOST_NOTES:
        yield Line(f"  {len(differing) - MOST_NOTES} more columns differ", style="detail")


def _hint(kind: str, expected: str, came: str) -> str:
    """Return how two values differ that look the same, or would be equal in another type; "" if neither holds.

    >>> _hint("string", "5.0", "5")
    'the column is a string: as numbers 5.0 and 5 would be equal, as text they are not'
    """
    if expected == came:
        return ""
    if expected.strip() == came.strip():
        return "they differ in leading or trailing blanks"
    if unicodedata.normalize("NFKC", expected) == unicodedata.normalize("NFKC", came):
        return "they look the same, but have other characters"
    if expected.casefold() == came.casefold():
        return "they differ in upper and lower case"
    if kind == "string" and _number(expected) is not None and _number(expected) == _number(came):
        return f"the column is a string: as numbers {expected} and {came} would be equal, as text they are not"
    return ""


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except InvalidOperation:
        return None
