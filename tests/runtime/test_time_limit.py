"""A check that runs forever is stopped and becomes an error; the table's other checks return their results."""

from __future__ import annotations

import re
import time

import pytest

from sqlrun.check import great_expectations
from sqlrun.check.check_plan import Rows, Terms
from sqlrun.check.comparable_columns import prepare
from sqlrun.check.evaluate import run_checks
from sqlrun.check.regex_guard import KINDS, stoppable
from sqlrun.expectations.regex_cost import may_run_away
from sqlrun.load import profile
from sqlrun.runtime.time_limit import OutOfTimeError, searched, within
from tests.check.test_quality import AS_OF, BETWEEN, NOT_NULL, QUERY, check, expect, model, table

# Great Expectations takes seconds to import.
pytestmark = pytest.mark.slow

EVIL = r"^(\w+\s?)*$"
TRAP = "a" * 40 + "!"


def test_finished_work_returns_its_result():
    assert within(5, lambda: 3) == 3
    with pytest.raises(KeyError, match="x"):
        within(5, lambda: {}["x"])


def test_endless_work_is_stopped():
    def stubborn():
        while True:
            try:
                time.sleep(0.01)
            except Exception:
                continue

    started = time.monotonic()
    with pytest.raises(OutOfTimeError, match=r"longer than 0\.1 s and was stopped"):
        within(0.1, stubborn)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    "pattern",
    [EVIL, "(a|a)*b", "(a|b|ab)*c", "(x+x+)+y", "a?" * 40 + "a" * 40, r"(.*)(.*)(.*)(.*)(.*)(.*)[0-9]z", "(?=(a+)+b)",
     "(a{1,30}){1,30}b", "(?:(a)|b)*(?(1)(c+)+|d)"],
)  # fmt: skip
def test_runaway_patterns_are_recognized(pattern):
    re.compile(pattern)
    assert may_run_away(pattern, 60, 1)


@pytest.mark.parametrize(
    "pattern", ["", "abc", "^[A-Z]{2}-[0-9]{4}$", "^a+$", "x|y|z", r"\d{1,3}(?:\.\d{1,3}){3}", "^[^@]+@[^@]+[.][^@]+$"]
)
def test_safe_patterns_are_recognized(pattern):
    assert not may_run_away(pattern, 30, 100)


@pytest.mark.slow
def test_a_runaway_regex_is_an_error_and_stops_nothing_else():
    rows = table(id=[1, 2], status=[TRAP, "ok"], qty=[1, -1])
    asked = (
        expect("expect_column_values_to_match_regex", column="status", regex=EVIL),
        expect(BETWEEN, column="qty", min_value=0),
        expect(NOT_NULL, column="status"),
    )
    started = time.monotonic()
    evil, bad, good = run_checks(model(), asked, Rows(rows), Terms(AS_OF, 3))

    assert time.monotonic() - started < 30
    assert (evil.status, evil.message) == ("error", "it ran longer than 3 s and was stopped")
    assert (bad.status, bad.unexpected, good.status) == ("fail", 1, "pass")


def test_a_runaway_regex_on_a_private_column_is_reported():
    rows = table(id=[1], email=[TRAP])
    asked = (expect("expect_column_values_to_match_regex", column="email", regex=EVIL),)
    (found,) = run_checks(model(), asked, Rows(rows), Terms(AS_OF, 0.3))

    assert (found.status, found.message) == ("error", "it ran longer than 0.3 s and was stopped")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("match_on", ["any", "all"])
def test_a_search_in_another_process_finds_the_same(kind, match_on):
    texts = ["aa", "b", "a b", "", None, "é\n", "x" * 9 + "!", "\ud7ff\U0001f600", "aa"]
    rows = table(id=range(len(texts)), status=texts)
    kwargs = {"regex_list": [EVIL, "a"]} if "list" in kind else {"regex": EVIL}
    if kind == KINDS[2]:
        kwargs["match_on"] = match_on
    prepared = prepare(kind, {"column": "status", **kwargs}, rows)

    here = great_expectations._validated(_frame(kind, prepared, rows), [_asked(kind, kwargs, prepared)], "SUMMARY", 60)
    import sqlrun.check.regex_guard

    apart = _apart(sqlrun.check.regex_guard, kind, prepared)
    assert apart.kwargs["column"].startswith("found:")
    there = great_expectations._validated(_frame(kind, apart, rows), [_asked(kind, kwargs, apart)], "SUMMARY", 60)
    for name in ("unexpected_count", "partial_unexpected_index_list", "success", "missing_count"):
        assert here[0][name] == there[0][name]


def _asked(kind, kwargs, prepared):
    return great_expectations.Asked(0, expect(kind, column="status", **kwargs), prepared)


def _frame(kind, prepared, rows):
    return great_expectations._frame([_asked(kind, {}, prepared)], rows.num_rows)


def _apart(module, kind, prepared):
    before, module._risky = module._risky, lambda *_: True
    try:
        return stoppable(kind, prepared, 10)
    finally:
        module._risky = before


def test_a_searching_process_is_killed():
    started = time.monotonic()
    with pytest.raises(OutOfTimeError):
        searched([EVIL], [TRAP], 0.3)
    assert time.monotonic() - started < 20
    assert searched(["a", "^$"], ["", "a"], 10) == [[False, True], [True, False]]


@pytest.mark.slow
def test_endless_sql_is_stopped_and_the_next_statement_runs():
    rows = table(id=range(200_000))
    endless = "select a.* from {batch} a, {batch} b, {batch} c where a.id + b.id + c.id = -1"
    started = time.monotonic()
    asked = (
        expect(QUERY, unexpected_rows_query=endless),
        expect(QUERY, unexpected_rows_query="select * from {batch} where id < 0"),
        expect(BETWEEN, column="id", min_value=0, row_condition="id >= 0"),
    )
    first, *others = run_checks(model(), asked, Rows(rows, whole=lambda: rows), Terms(AS_OF, 3))

    assert time.monotonic() - started < 30
    assert (first.status, first.message) == ("error", "it ran longer than 3 s and was stopped")
    assert [result.status for result in others] == ["pass", "pass"]


@pytest.mark.slow
def test_long_running_python_is_stopped():
    rows = table(id=range(30_000), status=["January 31st, 2024 at 12:05:06 PM"] * 30_000)
    asked = (
        expect("expect_column_values_to_be_dateutil_parseable", column="status"),
        expect(NOT_NULL, column="status"),
    )
    slow, good = run_checks(model(), asked, Rows(rows), Terms(AS_OF, 0.5))

    assert (slow.status, good.status) == ("error", "pass")
    assert slow.message == "it ran longer than 0.5 s and was stopped"


@pytest.mark.parametrize("query", ["qty / (qty - 1) > 5", "qty % (qty - 1) > 5", "qty div (qty - 1) > 5", "1 / 0 > 5"])
def test_a_division_by_zero_is_never_a_pass(query):
    asked = (expect(QUERY, unexpected_rows_query=f"select * from {{batch}} where {query}"),)
    (result,) = run_checks(model("id", "qty"), asked, Rows(table(id=[1], qty=[1])), Terms(AS_OF))

    assert result.status == "error" and "division by zero" in result.message.lower()


def test_a_row_condition_that_divides_by_zero_is_an_error_too():
    result = check(expect(NOT_NULL, column="id", row_condition="1 / qty > 0"), table(id=[1], qty=[0]))
    assert result.status == "error"


def test_the_profile_sets_the_time_limit(tmp_path):
    (tmp_path / "profiles").mkdir()
    file = tmp_path / "profiles" / "own.yml"
    file.write_text("engine: duckdb\nwarehouse: w\ncheck_timeout: 7\n")
    assert profile.load(tmp_path, "own").check_timeout == 7
