"""Unit tests with ticks: added, removed and updated rows, and the comparisons of maintained tables."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlrun.errors import Place
from sqlrun.incremental.operators.temporal import Temporal
from sqlrun.pipeline import Prepared
from sqlrun.project import Change, Expected, Given, Step, UnitTest
from sqlrun.unit_tests.run import run as runner
from sqlrun.unit_tests.run.results import TestResult
from tests.support.projects import prepared

ROOT = Path(__file__).parents[2]
PLACE = Place("models/x.yml", 3, 5)
ORDERS = "ref('stg_orders')"
EVENTS, SOURCE = "ref('stg_order_events')", "source('orders', 'events')"


@pytest.fixture(scope="module")
def project() -> Prepared:
    return prepared(ROOT)


def played(project: Prepared, *tests: UnitTest) -> list[TestResult]:
    queries = {query.name: query for query in project.queries}
    items = [(test, queries[test.model]) for test in tests]
    return list(runner.run(project.project, queries, items, models=project.workspace.models))


def result(project: Prepared, test: UnitTest) -> TestResult:
    return played(project, test)[0]


def given(**inputs: Iterable[dict[str, Any]]) -> tuple[Given, ...]:
    return tuple(Given(f"ref('{name}')", tuple(rows), PLACE) for name, rows in inputs.items())


def order(key: str, total: str = "1.00", at: str = "2026-05-04 12:01:00", **other: Any) -> dict[str, Any]:
    row = {"order_id": key, "restaurant_id": "r1", "order_total": total, "is_cancelled": False, "ordered_at": at}
    return row | other


def slots(*steps: Step, rows: Any = None) -> UnitTest:
    first = given(stg_orders=[order("o1"), order("o2", "2.00")])
    return UnitTest("t", "fct_restaurant_slots", first, Expected(rows), PLACE, steps=steps)


def step(*changes: Change, line: int = 9, as_of: str = "", **expect: Any) -> Step:
    return Step(Place("models/x.yml", line, 7), as_of, changes, Expected(**expect))


def change(**kinds: tuple[dict[str, Any], ...]) -> Change:
    return Change(ORDERS, Place("models/x.yml", 10, 9), **kinds)


@pytest.mark.slow
def test_each_step_starts_from_the_state_of_the_one_before(project: Prepared) -> None:
    found = result(
        project,
        slots(
            step(change(came=(order("o3", "4.00"),)), rows=({"n_orders": 3, "total_sales": 7},)),
            step(
                change(updated=({"order_id": "o1", "is_cancelled": True},)), rows=({"n_orders": 2, "total_sales": 6},)
            ),
            step(change(left=({"order_id": "o2"}, {"order_id": "o3"})), rows=()),
            rows=({"n_orders": 2, "total_sales": 3},),
        ),
    )

    assert found.status == "pass", found


@pytest.mark.slow
def test_a_failed_step_is_reported_with_number_and_place(project: Prepared) -> None:
    wrong = step(change(came=(order("o3", "4.00"),)), line=30, rows=({"n_orders": 9},))
    found = result(project, slots(step(change(came=(order("o4"),))), wrong))

    assert (found.status, found.step, found.compared) == ("fail", 2, "rows")
    assert (found.missing, found.unexpected, found.columns) == ((("9",),), (("4",),), ("n_orders",))
    assert "models/x.yml:30:7" in found.message


@pytest.mark.slow
def test_came_and_left_are_the_change_of_the_table(project: Prepared) -> None:
    late = change(came=(order("o3", "4.00"),))
    right = step(late, came=({"n_orders": 3},), left=({"n_orders": 2},))
    wrong = step(late, came=({"n_orders": 3}, {"n_orders": 1}), left=())

    assert result(project, slots(right)).status == "pass"
    found = result(project, slots(wrong))
    assert (found.status, found.compared, found.missing, found.unexpected) == ("fail", "change", (("1",),), ())


@pytest.mark.slow
def test_the_same_batch_again_changes_nothing(project: Prepared) -> None:
    event = {"event_id": "e1", "order_id": "o1", "order_version": 1, "order_total": 2}
    came = Change(EVENTS, PLACE, came=(event,))
    test = UnitTest("t", "stg_orders", given(stg_order_events=[event]), Expected(), PLACE)
    found = result(project, replace(test, steps=(step(came, came=(), left=()),)))

    assert found.status == "pass", found


@pytest.mark.slow
def test_windows_move_with_as_of_without_new_rows(project: Prepared) -> None:
    first = given(stg_orders=[order("o1", customer_id="c1")])
    test = UnitTest("t", "restaurant_customers", first, Expected(), PLACE, as_of="2026-05-04 12:05:00")
    later = step(as_of="2026-05-04 13:01:00", left=({"window_hours": 1, "n_customers": 1},), came=())
    found = result(project, replace(test, steps=(later, step(as_of="2026-06-04 13:00:00", rows=()))))

    assert found.status == "pass", found


@pytest.mark.slow
def test_a_wrong_rule_is_found_without_expected_rows(project: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Temporal.changes
    monkeypatch.setattr(Temporal, "changes", lambda node, script: right(node, script)[:-1])
    first = given(stg_orders=[order("o1", customer_id="c1")])
    test = UnitTest("t", "restaurant_customers", first, Expected(), PLACE, as_of="2026-05-04 12:05:00")
    found = result(project, replace(test, steps=(step(as_of="2026-05-04 13:01:00", line=40),)))

    assert (found.status, found.compared, found.step) == ("fail", "whole", 1)
    assert found.unexpected == (("1", "r1", "1"),)
    assert "models/x.yml:40:7" in found.message


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (change(left=({"order_id": "o9"},)), "no row of ref('stg_orders') has order_id: o9"),
        (change(left=({"restaurant_id": "r1"},)), "more than one row of ref('stg_orders') has restaurant_id: r1"),
        (change(updated=({"order_total": "3.00"},)), "the updated row lacks `order_id`"),
        (Change(SOURCE, PLACE, came=({"event_id": "e1"},)), "but fct_restaurant_slots doesn't read it"),
    ],
)
@pytest.mark.slow
def test_an_impossible_change_is_an_error(project: Prepared, wrong: Change, said: str) -> None:
    found = result(project, slots(step(wrong)))

    assert found.status == "error"
    assert found.message.startswith("SR121 models/x.yml:")
    assert said in found.message


@pytest.mark.slow
def test_time_does_not_go_back(project: Prepared) -> None:
    found = result(project, slots(step(as_of="1999-01-01 00:00:00")))

    assert (found.status, "as_of goes back" in found.message) == ("error", True)


def test_a_violated_contract_is_reported(project: Prepared) -> None:
    event = {"event_id": "e1", "order_id": "o1", "order_version": 1}
    expect = Expected(({"order_id": "o1", "restaurant_id": None},))
    found = result(project, UnitTest("t", "stg_orders", given(stg_order_events=[event]), expect, PLACE))

    assert (found.status, found.compared) == ("fail", "contract")
    assert "restaurant_id is NULL" in found.message


@pytest.mark.slow
def test_a_difference_names_given_rows_that_break_their_contract(project: Prepared) -> None:
    wrong = given(stg_orders=[order("o1") | {"order_total": None}])
    found = result(project, replace(slots(step(as_of="2026-05-05 00:00:00")), given=wrong))

    assert (found.status, found.compared) == ("fail", "whole")
    assert "The rows of ref('stg_orders') break its contract" in found.message


@pytest.mark.slow
def test_the_text_null_is_not_null(project: Prepared) -> None:
    first = given(stg_orders=[order("o1", restaurant_id="NULL")])
    found = result(project, replace(slots(rows=({"restaurant_id": None},)), given=first))

    assert (found.status, found.missing, found.unexpected) == ("fail", (("NULL",),), (("'NULL'",),))


@pytest.mark.long
@pytest.mark.slow
def test_unit_tests_load_neither_spark_nor_great_expectations() -> None:
    code = (
        "import sys; from pathlib import Path; from sqlrun.unit_tests.project_tests import results_of, tests_of\n"
        "from sqlrun.pipeline import prepare; p = prepare(Path('.'))\n"
        "assert all(r.status == 'pass' for r in results_of(p, tests_of(p)))\n"
        "print([m for m in ('pyspark', 'py4j', 'great_expectations', 'pandas') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "[]"
