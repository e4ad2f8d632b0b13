"""A model's checks are planned before any row is read: evaluator, rows, and order of results."""

from __future__ import annotations

from typing import Any

import pytest

from sqlrun.check.check_plan import CheckPlan, plan
from sqlrun.errors import Place
from sqlrun.expectations.catalogue import QUERY, VOLUME
from sqlrun.load.constraints import RELATIONSHIPS
from sqlrun.project import Column, Config, Expectation, Model

PLACE = Place("expectations/t.yml", 3, 5)
COLUMNS = tuple(
    Column(name, kind, "", PLACE) for name, kind in (("id", "bigint"), ("shop", "string"), ("price", "double"))
)
MODEL = Model("orders", "o.sql", "", "o.yml", "", ("id",), False, COLUMNS, Config(), ())
UNIQUE = "expect_column_values_to_be_unique"
NOT_NULL = "expect_column_values_to_not_be_null"
PAIR = "expect_column_pair_values_to_be_equal"


def expect(kind: str, **kwargs: Any) -> Expectation:
    return Expectation(kind, kwargs, "critical", "fail", "", PLACE)


ASKED = (
    expect(NOT_NULL, column="id"),
    expect(UNIQUE, column="shop"),
    expect(RELATIONSHIPS, column="shop", to="shops", field="id"),
    expect(UNIQUE, column="id"),
    expect(VOLUME, min_ratio=0.5),
    expect(PAIR, column_A="id", column_B="id", mostly=0.5),
    expect(UNIQUE, column="price"),
    expect("expect_table_row_count_to_be_between", min_value=1),
    expect("expect_column_to_exist", column="id"),
    expect(QUERY, unexpected_rows_query="select * from {batch} where price < 0"),
)
DECLARED = tuple(one for one in ASKED if one.type not in (RELATIONSHIPS, VOLUME))


def kinds(planned: CheckPlan) -> dict[tuple[str, ...], list[int]]:
    """Return the indexes of each lot's expectations."""
    return {
        lot.key: sorted([*lot.held, *(place for placed in lot.ways.values() for place in placed)])
        for lot in planned.lots
    }


@pytest.mark.parametrize("held", [True, False])
def test_each_expectation_is_in_one_lot(held: bool) -> None:
    """Checks of keys group by their columns, all others by the grain; relationships and volume aren't in a lot."""
    planned = plan(MODEL, ASKED, held=held)

    assert planned.count == len(DECLARED)
    assert kinds(planned) == {("id",): [0, 2, 3, 5, 6, 7], ("shop",): [1], ("price",): [4]}
    for lot in planned.lots:
        assert bool(lot.held) == held and bool(lot.ways) != held
        assert {id(one) for one in lot.expectations} <= {id(one) for one in DECLARED}


def test_a_large_change_is_evaluated_in_several_ways() -> None:
    """The engine doesn't count keys of doubles, whose zeros differ; a share over two columns needs all rows at once."""
    found = [(way, place) for lot in plan(MODEL, ASKED, held=False).lots for way in lot.ways for place in lot.ways[way]]

    assert sorted(found) == [
        ("keys", 1), ("keys", 2), ("parts", 0), ("parts", 7), ("piece", 3), ("schema", 6), ("whole", 4), ("whole", 5),
    ]  # fmt: skip


def test_results_have_the_order_of_declared_expectations() -> None:
    """However the lots were evaluated; a missing result is no pass."""
    planned = plan(MODEL, ASKED, held=True)
    found: dict[int, Any] = {place: place for lot in reversed(planned.lots) for place in lot.held}

    assert planned.in_order(found) == tuple(range(planned.count))
    del found[4]
    with pytest.raises(KeyError):
        planned.in_order(found)
