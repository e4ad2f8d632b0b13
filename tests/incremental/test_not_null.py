"""Columns that can't be NULL in the rows that pass a filter."""

from __future__ import annotations

import pytest

from tests.support.memory import Memory, Table, View

TABLE = Table("t", (("id", "int"), ("a", "int"), ("b", "int"), ("s", "struct<f:int>")))
CONDITIONS = {
    "a is not null": {"a"},
    "a > 1 and (b <> a)": {"a", "b"},
    "1 = b": {"b"},
    "a > 1 or b > 1": set(),
    "a is null": set(),
    "a <=> b": set(),
    "not (a > 1) or a is null": set(),
    "coalesce(a, 0) >= 0": set(),
    "s.f > 1": set(),
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_compared_column_has_no_nulls(condition: str) -> None:
    (compiled,) = Memory([TABLE], [View("v", f"select id, a, b, s from t where {condition}", ("id",))]).compiled
    assert compiled.own.node is not None
    assert {name for name, kind in compiled.own.node.types().items() if not kind.nullable} == CONDITIONS[condition]
