"""What unit tests said, in lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from sqlrun.report import Line, Style, counted, message_lines
from sqlrun.rows import aligned, escaped
from sqlrun.unit.choosing import key
from sqlrun.unit.results import TestResult

NOTHING = "No unit tests: nothing that was selected has any."


def line(result: TestResult, place: int, total: int) -> Line:
    """Tell of one test that ran."""
    word = result.status.upper()
    style: Style = "good" if result.status == "pass" else "error"
    text = f"{place} of {total} {word} {key(result.model, result.name)}"
    return Line(text, f"[{word} in {result.seconds:.2f}s]", style)


def brief(results: Sequence[TestResult]) -> list[Line]:
    """Tell of all tests in one line, and of the failures in full; nothing where there are none."""
    if not results:
        return []
    failed = sum(result.status != "pass" for result in results)
    seconds = sum(result.seconds for result in results)
    word, style = (f"FAIL {failed} of", "error") if failed else ("PASS", "good")
    tag = f"[{word.removesuffix(' of')} in {seconds:.2f}s]"
    first = Line(f"{word} {counted(len(results), 'unit test')}", tag, "error" if style == "error" else "good")
    return [first, *failures(results)]


def failures(results: Sequence[TestResult]) -> list[Line]:
    """Tell of each test that didn't pass, in full."""
    return [each for result in results if result.status != "pass" for each in (Line(""), *_details(result))]


def closing(results: Sequence[TestResult], total: int) -> list[Line]:
    """Sum up, as dbt does; `total` counts those that didn't run too."""
    counts = {word: sum(result.status == word for result in results) for word in ("pass", "fail", "error")}
    told = " ".join(f"{word.upper()}={count}" for word, count in counts.items())
    left = total - len(results)
    style: Style = "good" if counts["pass"] == len(results) else "error"
    return [Line(""), Line(f"Done. {told}{f' NOT RUN={left}' if left else ''} TOTAL={total}", style=style)]


def as_json(results: Sequence[TestResult]) -> list[dict[str, object]]:
    """Write the results for other programs; rows are lists of texts in the order of `columns`."""
    return [{**asdict(result), "place": str(result.place)} for result in results]


def _details(result: TestResult) -> Iterator[Line]:
    word = "Failure" if result.status == "fail" else "Error"
    yield Line(f"{word} in unit test {result.name} of {result.model} ({result.place})", style="error")
    yield from message_lines(result.message)
    marked = [("-", *row) for row in result.missing] + [("+", *row) for row in result.unexpected]
    if marked:
        yield Line("  - expected but missing, + not expected:", style="detail")
        cells = [[escaped(text) for text in row] for row in marked]
        header = ["", *result.columns]
        for text in aligned(header, cells, "<" * len(header)):
            yield Line(f"  {text}", style="detail")
