"""What of models no unit test reaches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlrun import pipeline
from sqlrun.unit_tests import project_tests
from sqlrun.unit_tests.output import coverage, covered
from sqlrun.unit_tests.output.covered import Covered
from tests.support import broken, tested

TEST = """\
unit_tests:
  - name: it_counts
    model: counted
    given:
      - {{input: ref('lines'), rows: [{rows}]}}
{names}    expect: {{rows: [{{n: 1}}]}}
"""


def measured(root: Path, sql: str, rows: str) -> Covered:
    """Measure one test of a query with one column, `n`, over lines (order_id, price) and names (order_id, name)."""
    tested.project(root)
    test = TEST.format(rows=rows, names=NAMES if "names" in sql else "")
    broken.write(
        root,
        {
            "models/names.sql": "select 1 as order_id, 'one' as name\n",
            "models/names.yml": broken.contract("names", "order_id", "name string"),
            "models/counted.sql": sql,
            "models/counted.yml": broken.contract("counted", "n bigint") + test,
        },
    )
    prepared = pipeline.prepare(root)
    (found,) = coverage.measure(prepared, ["counted"], project_tests.tests_of(prepared))
    return found


def left(found: Covered) -> list[str]:
    return [f"{branch.what} {branch.never}" for branch, taken, unknown in found.branches if not taken and not unknown]


NAMES = "      - {input: ref('names'), rows: [{order_id: 1, name: one}]}\n"
LINES = "from {{ ref('lines') }} as l"
ONE = "{order_id: 1, price: 2}"
BOTH = "{order_id: 1, price: 2}, {order_id: 2, price: -2}"


@pytest.mark.parametrize(
    ("sql", "rows", "expected"),
    [
        (f"select case when price > 0 then 1 when price < 0 then 2 else 3 end as n {LINES}", BOTH,
         ["case's else never taken"]),
        (f"select case price when 2 then 1 when 3 then 2 end as n {LINES}", ONE,
         ["case branch `3` never taken", "case's else never taken"]),
        # A condition that also holds is not taken: the first one is.
        (f"select case when price > 0 then 1 when price > 1 then 2 else 3 end as n {LINES}", BOTH,
         ["case branch `l.price > 1` never taken"]),
        (f"select sum(case when price > 0 then 1 else 0 end) as n {LINES} group by order_id", ONE,
         ["case's else never taken"]),
        (f"select case when sum(price) > 0 then 1 else 0 end as n {LINES} group by order_id", BOTH, []),
        (f"select case when sum(price) > 0 then 1 else 0 end as n {LINES}", BOTH,
         ["case branch `sum(l.price) > 0` never taken"]),
        (f"select coalesce(price, order_id, 7) as n {LINES}", ONE,
         ["coalesce's `l.order_id` never taken", "coalesce's `7` never taken"]),
        (f"select if(price > 0, 1, 2) as n {LINES}", ONE, ["if's else never taken"]),
        (f"select price as n {LINES} where price > 0", ONE, ["filter `l.price > 0` never drops a row"]),
        (f"select price as n {LINES} where price > 5", ONE, ["filter `l.price > 5` never keeps a row"]),
        (f"select count(*) as n {LINES} group by order_id having count(*) > 0", ONE,
         ["having `count(*) > 0` never drops a row"]),
        (f"select price as n {LINES} qualify row_number() over (partition by order_id order by price) = 1",
         "{order_id: 1, price: 2}, {order_id: 1, price: 3}", []),
        (f"select price as n {LINES} left join {{{{ ref('names') }}}} as m on l.order_id = m.order_id", ONE,
         ["left join on `l.order_id = m.order_id` never without a match"]),
        (f"with paid as (select * {LINES} where price > 0) "
         "select case when price > 0 then 1 else 2 end as n from paid", BOTH, ["case's else never taken"]),
        # The inner case is asked only where the outer one leads to it.
        (f"select case when price > 0 then case when order_id = 1 then 1 else 2 end else 3 end as n {LINES}", BOTH,
         ["case's else never taken"]),
        (f"select coalesce(price, case when order_id = 1 then 1 else 2 end) as n {LINES}", ONE,
         ["coalesce's `case when l.order_id = 1 then 1 else 2 end` never taken",
          "case branch `l.order_id = 1` never taken", "case's else never taken"]),
        (f"select price as n {LINES} where case when price > 0 then true else false end", ONE,
         ["filter `case when l.price > 0 then true else false end` never drops a row", "case's else never taken"]),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_a_branch_is_covered_where_a_row_took_it(sql: str, rows: str, expected: list[str], tmp_path: Path) -> None:
    found = measured(tmp_path, sql, rows)

    assert left(found) == expected
    assert not [branch.what for branch, _, unknown in found.branches if unknown]


def test_what_cannot_be_asked_is_not_measured_and_not_covered(tmp_path: Path) -> None:
    sql = f"""select price as n {LINES}
    join {{{{ ref('names') }}}} as m on case when l.price > 0 then l.order_id else 0 end = m.order_id"""
    found = measured(tmp_path, sql, BOTH)

    assert [(taken, unknown) for _, taken, unknown in found.branches] == [(False, True), (False, True)]
    assert any(line.text.endswith("case branch `l.price > 0` not measured") for line in covered.lines([found]))
    assert round(covered.share([found])) == 33


@pytest.mark.slow
def test_a_branch_has_its_place_and_a_column_that_is_not_compared_its_name(tmp_path: Path) -> None:
    root = tested.project(tmp_path)
    result = tested.run(root, "--coverage")

    assert (
        tested.said(result)[-7:]
        == [
            "model   tests  columns  branches  covered",
            "------  -----  -------  --------  -------",
            "lines       1   2 of 2    0 of 0    100 %",
            "totals      2   2 of 3    3 of 4     71 %",
            "all         3                        78 %",
            "",
            "  models/totals.yml column `size` is compared in no test",
            "  models/totals.sql:9:15 case branch `sum(paid.price) > 10` never taken",
        ][-7:]
    )
    written = json.loads((root / coverage.FILE).read_text())
    assert [one["percent"] for one in written["models"]] == [100.0, 71.4]
    assert {one["status"] for one in written["models"][1]["branches"]} == {"covered", "not covered"}


@pytest.mark.slow
def test_a_model_without_tests_is_told_once_and_counts(tmp_path: Path) -> None:
    root = tested.project(tmp_path)
    file = root / "models/totals.yml"
    file.write_text(file.read_text().partition("unit_tests:")[0])
    result = tested.run(root, "--coverage")

    assert "  models/totals.yml no test" in tested.said(result)
    assert "totals      0   0 of 3    0 of 4      0 %" in tested.said(result)


@pytest.mark.parametrize(("least", "code"), [("70", 0), ("80", 1)])
@pytest.mark.slow
def test_too_little_coverage_fails(least: str, code: int, tmp_path: Path) -> None:
    result = tested.run(tested.project(tmp_path), "--min-coverage", least)

    assert result.exit_code == code
    assert ("Coverage is 77.8 %, but must be at least 80 %." in result.output) == (code == 1)


@pytest.mark.slow
def test_only_what_was_selected_is_measured(tmp_path: Path) -> None:
    result = tested.run(tested.project(tmp_path), "--coverage", "-s", "lines")

    assert not [line for line in tested.said(result) if line.startswith("totals")]
