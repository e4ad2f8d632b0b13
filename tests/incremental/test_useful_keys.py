"""The columns of a grain by which a tick finds affected rows: those that restrict what is read."""

from __future__ import annotations

import pytest

from sqlrun.incremental.operators.window import useful
from tests.support.memory import Memory, Table, View

COLUMNS = (("shop", "string"), ("dish", "string"), ("since", "int"), ("at", "timestamp"))
PRICES = Table("prices", COLUMNS, ("shop", "dish", "since"))
FOUND = {
    "a window computes all rows of its partition": (
        "select shop, dish, since, lead(since) over (partition by shop, dish order by since) as until from prices",
        ("shop", "dish", "since"),
        ("shop", "dish"),
    ),
    "another branch is restricted by all": (
        "with spans as ("
        "select shop, dish, lead(since) over (partition by shop order by dish, since) as until from prices), "
        "most as (select shop, dish, max(since) as last from prices group by shop, dish) "
        "select m.shop, m.dish, m.last, s.until from most m left join spans s on s.shop = m.shop and s.dish = m.dish",
        ("shop", "dish"),
        ("shop", "dish"),
    ),
    "groups are dropped by a computed key": (
        "select shop, date(at) as day, max(since) as last from prices group by shop, date(at)",
        ("shop", "day"),
        ("shop", "day"),
    ),
    "no key restricts anything": (
        "select shop, dish, since, lead(since) over (partition by at order by shop, dish, since) as until from prices",
        ("shop", "dish", "since"),
        ("shop", "dish", "since"),
    ),
}


@pytest.mark.parametrize(("query", "grain", "expected"), FOUND.values(), ids=FOUND)
def test_keys_that_a_window_function_computes_anyway_are_left_out(
    query: str, grain: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    (compiled,) = Memory([PRICES], [View("v", query, grain)]).compiled
    assert compiled.own.method == "keys"
    assert compiled.own.node is not None
    assert useful(compiled.own.node, compiled.own.key) == expected
