"""A dozen suites in parallel return the same counts as one by one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from sqlrun.check.check_plan import Rows, Terms
from sqlrun.check.evaluate import run_checks
from sqlrun.events import CheckResult
from tests.check.test_quality import AS_OF, BETWEEN, IN_SET, NOT_NULL, QUERY, UNIQUE, expect, model, table

DOZEN, ROUNDS = 12, 3


def suite(number: int) -> tuple[CheckResult, ...]:
    """Each table has as many bad rows as its number; the third is clean."""
    count = 60
    bad = 0 if number == 3 else number
    rows = table(
        id=[0 if row < bad else row for row in range(count)],
        qty=[-1 if row < bad else None if row == count - 1 else 1 for row in range(count)],
        status=[f"s{number}" if row < bad else "fine" for row in range(count)],
    )
    asked = (
        expect(BETWEEN, column="qty", min_value=0),
        expect(NOT_NULL, column="qty", row_condition=f"id < {count}"),
        expect(IN_SET, column="status", value_set=["fine"]),
        expect(UNIQUE, column="id"),
        expect(QUERY, unexpected_rows_query="select * from {batch} where qty < 0"),
        expect(QUERY, unexpected_rows_query="select status, count(*) as n from {batch} group by status having n > 0"),
        expect("expect_table_row_count_to_equal", value=count + number % 2),
        expect("expect_column_values_to_match_regex", column="status", regex=r"^(\w+\s?)*$"),
    )
    found = run_checks(model("id", "qty", "status"), asked, Rows(rows, rows, lambda: rows), Terms(AS_OF))
    # The order of DuckDB's groups is nondeterministic, with one thread too.
    return tuple(replace(result, seconds=0.0, samples=tuple(sorted(result.samples))) for result in found)


@pytest.mark.long
@pytest.mark.slow
def test_parallel_suites_count_as_one_by_one():
    one_by_one = [suite(number) for number in range(DOZEN)]
    counts = [results[0].unexpected for results in one_by_one]
    assert counts == [0 if number == 3 else number for number in range(DOZEN)]
    assert {result.status for results in one_by_one for result in results} == {"pass", "fail"}

    start = Barrier(DOZEN)

    def at_once(number: int) -> tuple[CheckResult, ...]:
        start.wait()
        return suite(number)

    with ThreadPoolExecutor(DOZEN) as threads:
        for _ in range(ROUNDS):
            assert list(threads.map(at_once, range(DOZEN))) == one_by_one
