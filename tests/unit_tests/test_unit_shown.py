"""What a unit test's failure looks like."""

from __future__ import annotations

import io
import os
import pty
from pathlib import Path

import pytest

from sqlrun.errors import Place
from sqlrun.report.console import Console
from sqlrun.report.log_lines import Line
from sqlrun.unit_tests.output import differences, shown
from sqlrun.unit_tests.output.column_origin import Facts
from sqlrun.unit_tests.output.pairing import Paired, paired
from sqlrun.unit_tests.run.results import TestResult
from tests.support import tested

PLACE = Place("models/totals.yml", 12, 5)


def failure(
    columns: tuple[str, ...], missing: list[tuple[str, ...]], unexpected: list[tuple[str, ...]], **more: object
) -> TestResult:
    return TestResult("sums", "totals", PLACE, "fail", 0.1, columns, tuple(missing), tuple(unexpected), **more)  # type: ignore[arg-type]


def drawn(result: TestResult, grain: tuple[str, ...] = ()) -> str:
    known = Facts("models/totals.sql", grain)
    return "\n".join(line.text for line in shown.failures([result], lambda _: known)[1:])


def test_rows_are_paired_and_only_what_differs_is_marked() -> None:
    missing = [("o1", "open", "12.00"), ("o2", "shut", "1.00")]
    unexpected = [("o1", "open", "12.50"), ("o3", "shut", "7.00")]

    assert (
        drawn(failure(("id", "status", "total"), missing, unexpected), ("id",))
        == """\
Failure in unit test sums of totals (models/totals.yml:12:5)
  The query is models/totals.sql.
  ~ 1 row differs (expected -> actual), - 1 row is missing, + 1 row is not expected:
     id  status  total
     --  ------  --------------
  ~  o1  open    12.00 -> 12.50
  -  o2  shut    1.00
  +  o3  shut    7.00"""
    )


def test_rows_with_one_key_are_a_pair_however_little_else_they_share() -> None:
    rows = paired(("id", "a", "b", "c"), [("1", "x", "x", "x")], [("2", "x", "x", "x"), ("1", "y", "y", "y")], ("id",))

    assert rows.pairs == ((("1", "x", "x", "x"), ("1", "y", "y", "y")),)
    assert rows.unexpected == (("2", "x", "x", "x"),)


def test_without_a_grain_a_row_goes_with_the_one_that_is_most_like_it() -> None:
    rows = paired(("id", "a", "b"), [("1", "x", "y"), ("2", "x", "z")], [("2", "x", "y"), ("9", "q", "r")])

    # Both share two cells with the first: the first columns decide.
    assert rows.pairs == ((("2", "x", "z"), ("2", "x", "y")),)
    assert rows.missing == (("1", "x", "y"),)
    assert rows.unexpected == (("9", "q", "r"),)


def test_a_grain_that_was_compared_in_part_is_no_key() -> None:
    rows = paired(("id", "a", "b"), [("1", "x", "y")], [("2", "x", "y")], ("id", "day"))

    assert rows.pairs == ((("1", "x", "y"), ("2", "x", "y")),)


def test_one_row_and_one_row_are_a_pair_with_nothing_in_common() -> None:
    assert paired(("n",), [("5",)], [("6",)]) == Paired(((("5",), ("6",)),), (), ())


def test_very_many_rows_are_shown_apart_at_once() -> None:
    rows = paired(("n", "m"), [(str(n), "x") for n in range(600)], [(str(n), "y") for n in range(600)])

    assert (len(rows.pairs), len(rows.missing), len(rows.unexpected)) == (0, 600, 600)


def test_at_most_twenty_rows_are_shown_and_all_are_counted() -> None:
    text = drawn(failure(("id",), [(f"o{n}",) for n in range(1500)], []))

    assert "- 1,500 rows are missing:" in text
    assert text.count("\n  -  ") == 20
    assert "  ... and 1,480 rows more" in text


def test_letters_that_a_terminal_obeys_and_blanks_can_be_seen() -> None:
    text = drawn(failure(("name",), [("a\x1b[2J\n",)], [("",)]))

    assert "~  'a\\x1b[2J\\n' -> ''" in text


def test_long_values_are_cut_where_they_differ() -> None:
    text = drawn(failure(("list",), [(f"[{'dish, ' * 50}soup]",)], [(f"[{'dish, ' * 50}cake]",)]))

    assert "~  ..., dish, soup] -> ..., dish, cake]" in text


@pytest.mark.parametrize("columns", [4, 40])
def test_a_table_has_a_hundred_columns_at_most_and_names_what_it_leaves_out(columns: int) -> None:
    names = tuple(f"column_{n:02}" for n in range(columns))
    row = tuple("a rather long value that is cut" for _ in names)
    changed = (*row[:-1], "another rather long value")
    lines = shown.failures([failure(names, [row, row], [changed])], lambda _: Facts("", ("column_03",)))

    assert max(len(line.text) for line in lines) <= 90
    header = next(line.text for line in lines if "column_03" in line.text)
    assert names[-1] in header  # it differs
    assert any(line.text.startswith("  not shown: column_0") for line in lines) == (columns == 40)


def test_wide_letters_stay_in_their_columns() -> None:
    lines = differences.table(("name", "n"), paired(("name", "n"), [("寿司", "1"), ("a", "2")], []))

    assert [line.text for line in lines[3:]] == ["  -  寿司  1", "  -  a     2"]


@pytest.mark.parametrize(
    ("expected", "came", "hint"),
    [
        ("5.0", "5", "the column is a string: as numbers 5.0 and 5 would be equal, as texts they are not"),
        ("Open", "open", "they differ in upper and lower case"),
        ("open", "open ", "they differ in leading or trailing blanks"),
        ("ﬁne", "fine", "they look the same, but have other characters"),
    ],
)
def test_values_that_look_the_same_are_told_apart(expected: str, came: str, hint: str) -> None:
    known = Facts("", (), {"status": "string"}, lambda _: ("", ""))
    lines = shown.failures([failure(("status",), [(expected,)], [(came,)])], lambda _: known)

    assert f"  status: {hint}" in [line.text for line in lines]


@pytest.mark.parametrize(
    ("step", "compared", "sentence"),
    [
        (2, "rows", "The table after step 2."),
        (2, "change", "The change of step 2: the rows that came to the table and those that left it."),
        (0, "quarantined", "The quarantined lines."),
        (
            1,
            "whole",
            "The table as maintained by its changes, after step 1; expected is the result of the whole query.",
        ),
    ],
)
def test_a_step_has_its_own_sentence(step: int, compared: str, sentence: str) -> None:
    assert f"\n  {sentence}\n" in drawn(failure(("n",), [("1",)], [], step=step, compared=compared))


@pytest.mark.slow
def test_the_place_is_told_where_the_column_is_made(tmp_path: Path) -> None:
    result = tested.run(tested.project(tmp_path, five="6"))

    assert "~  1         6 -> 5" in result.output
    assert "total (bigint) is made at models/totals.sql:8:5: cast(sum(paid.price) as bigint)" in result.output


def test_a_build_tells_all_that_passed_in_one_line() -> None:
    good = TestResult("keys", "totals", PLACE, "pass", 0.05)
    bad = failure(("n",), [("1",)], [])

    assert str(shown.brief([good])[0]) == f"{'PASS 1 unit test '.ljust(80, '.')} [PASS in 0.05s]"
    assert str(shown.brief([good, bad])[0]) == f"{'FAIL 1 of 2 unit tests '.ljust(80, '.')} [FAIL 1 in 0.15s]"
    assert shown.brief([]) == []


def test_cells_that_differ_are_green_and_red_on_a_terminal() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as out:
        console = Console(out=out, err=io.StringIO(), environ={"TERM": "xterm"})
        console.lines([Line("  1 -> 2", style="detail", spans=((2, 3, "good"), (7, 8, "error")))])
        said = os.read(ours, 1000).decode()
    os.close(ours)

    assert "  \x1b[32m1\x1b[0m -> \x1b[31m2\x1b[0m" in said
