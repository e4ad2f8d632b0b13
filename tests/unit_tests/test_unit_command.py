"""`sqlrun test`: selection, output, and memory of earlier runs."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sqlrun.unit_tests.run import last_run
from tests.support import tested


@pytest.mark.slow
def test_all_tests_run_and_are_counted(tmp_path: Path) -> None:
    root = tested.project(tmp_path)
    result = tested.run(root, "--verbose")

    assert result.exit_code == 0
    assert tested.said(result)[:3] == [
        "1 of 3 PASS lines::a_line_is_a_line",
        "2 of 3 PASS totals::prices_are_added",
        "3 of 3 PASS totals::free_lines_are_left_out",
    ]
    assert tested.said(result)[-1] == "Done. PASS=3 FAIL=0 ERROR=0 TOTAL=3"
    assert tested.said(tested.run(root)) == ["Done. PASS=3 FAIL=0 ERROR=0 TOTAL=3"]


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        (["-s", "totals"], ["totals::prices_are_added", "totals::free_lines_are_left_out"]),
        (["-s", "totals::free*"], ["totals::free_lines_are_left_out"]),
        (["-s", "test_name:a_line_is_a_line"], ["lines::a_line_is_a_line"]),
        (["-s", "+totals", "--exclude", "test_name:free*"], ["lines::a_line_is_a_line", "totals::prices_are_added"]),
        (["-s", "totals,test_name:p*"], ["totals::prices_are_added"]),
        (["-s", "test_type:unit,lines", "unit_test:p*"], ["lines::a_line_is_a_line", "totals::prices_are_added"]),
        (
            ["-s", "totals", "--exclude", "test_type:data"],
            ["totals::prices_are_added", "totals::free_lines_are_left_out"],
        ),
        (["-s", "totals", "--exclude", "test_type:unit"], []),
        (["-s", "lines totals::p*"], ["lines::a_line_is_a_line", "totals::prices_are_added"]),
    ],
)
@pytest.mark.slow
def test_tests_are_selected_by_model_and_by_name(selectors: list[str], expected: list[str], tmp_path: Path) -> None:
    result = tested.run(tested.project(tmp_path), *selectors, "--json")

    assert [f"{one['model']}::{one['name']}" for one in json.loads(result.stdout)] == expected


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("totals::price_are_added", "Did you mean `totals::prices_are_added`?"),
        ("test_name:nothing_like_it", "unknown unit test `nothing_like_it`"),
        ("totale", "Did you mean `totals`?"),
        ("test_type:units", "Did you mean `unit`?"),
        ("+unit_test:prices_are_added", "tests have no neighbors"),
    ],
)
def test_a_selector_that_matches_nothing_is_an_error(selector: str, message: str, tmp_path: Path) -> None:
    result = tested.run(tested.project(tmp_path), "-s", selector)

    assert result.exit_code == 2
    assert message in result.output


def test_a_selection_without_tests_passes_with_a_warning(tmp_path: Path) -> None:
    root = tested.project(tmp_path)
    file = root / "models/lines.yml"
    file.write_text(file.read_text().partition("unit_tests:")[0])

    result = tested.run(root, "-s", "lines")

    assert result.exit_code == 0
    assert tested.said(result) == ["No unit tests: no selected model has one."]


@pytest.mark.slow
def test_failed_runs_failed_tests_until_they_pass(tmp_path: Path) -> None:
    root = tested.project(tmp_path, five="6")
    assert tested.run(root).exit_code == 1

    again = tested.run(root, "--failed")
    assert again.exit_code == 1
    assert tested.said(again)[0] == "1 of 1 FAIL totals::prices_are_added"

    tested.project(tmp_path)
    fixed = tested.run(root, "--failed")
    assert fixed.exit_code == 0
    assert tested.said(fixed) == ["Done. PASS=1 FAIL=0 ERROR=0 TOTAL=1"]

    nothing = tested.run(root, "--failed")
    assert nothing.exit_code == 0
    assert tested.said(nothing) == ["No unit test failed in its last run, so there is nothing to run."]


@pytest.mark.slow
def test_a_partial_run_retains_other_results(tmp_path: Path) -> None:
    root = tested.project(tmp_path, five="6")
    tested.run(root)
    tested.run(root, "-s", "lines")

    assert (last_run.read(root) or {})["totals::prices_are_added"] == "fail"


@pytest.mark.slow
def test_a_deleted_failed_test_is_skipped_with_a_warning(tmp_path: Path) -> None:
    root = tested.project(tmp_path, five="6")
    tested.run(root)
    file = root / "models/totals.yml"
    file.write_text(file.read_text().replace("prices_are_added", "sums_are_right"))

    result = tested.run(root, "--failed")

    assert tested.said(result)[0] == "Left out, as they no longer exist: totals::prices_are_added"
    assert result.exit_code == 0


@pytest.mark.parametrize("text", [None, "{", "[]", '{"tests": {"a": 1}}'])
@pytest.mark.slow
def test_failed_runs_everything_without_an_earlier_run(text: str | None, tmp_path: Path) -> None:
    root = tested.project(tmp_path)
    if text is not None:
        (root / "target").mkdir()
        (root / last_run.FILE).write_text(text)

    result = tested.run(root, "--failed")

    assert (
        tested.said(result)[0]
        == "No earlier run is known: target/unit_tests.json is missing or corrupt. Running all tests."
    )
    assert tested.said(result)[-1] == "Done. PASS=3 FAIL=0 ERROR=0 TOTAL=3"


@pytest.mark.slow
def test_unsaved_results_are_reported(tmp_path: Path) -> None:
    root = tested.project(tmp_path)
    (root / "target").write_text("a file where the folder belongs")

    assert "can't be written, so --failed ignores" in tested.run(root).output


@pytest.mark.slow
def test_fail_fast_stops_and_counts_skipped_tests(tmp_path: Path) -> None:
    result = tested.run(tested.project(tmp_path, five="6"), "-x")

    assert result.exit_code == 1
    assert tested.said(result)[-1] == "Done. PASS=1 FAIL=1 ERROR=0 NOT RUN=1 TOTAL=3"


@pytest.mark.slow
def test_quiet_prints_only_failures(tmp_path: Path) -> None:
    assert tested.run(tested.project(tmp_path), "-q").output == ""

    result = tested.run(tested.project(tmp_path, five="6"), "-q")
    assert "Failure in unit test prices_are_added of totals" in result.output
    assert "PASS lines" not in result.output


@pytest.mark.slow
def test_junit_has_a_case_for_each_test(tmp_path: Path) -> None:
    root = tested.project(tmp_path, five="6")
    tested.run(root, "--junit", str(tmp_path / "out/junit.xml"))

    tree = ElementTree.parse(tmp_path / "out/junit.xml").getroot()
    assert (tree.get("tests"), tree.get("failures"), tree.get("errors")) == ("3", "1", "0")
    (case,) = (case for case in tree.iter("testcase") if case.find("failure") is not None)
    assert (case.get("classname"), case.get("name")) == ("totals", "prices_are_added")
    assert case.get("file") == "models/totals.yml"
    failure = case.find("failure")
    assert failure is not None
    assert "prices_are_added of totals" in str(failure.text)


@pytest.mark.slow
def test_stdout_has_only_json_with_failures_and_coverage(tmp_path: Path) -> None:
    result = tested.run(tested.project(tmp_path, five="6"), "--json", "--coverage")

    assert [one["status"] for one in json.loads(result.stdout)] == ["pass", "fail", "pass"]
    assert json.loads(result.stdout)[1]["missing"] == [["1", "6"]]
