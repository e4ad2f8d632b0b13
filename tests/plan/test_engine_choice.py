"""The static rule of `engine: auto`: Spark for what is many times as large as DuckDB's memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrun.plan.engine_choice import MOST_SPILLED, UNPACKED, too_large

GIB = 1 << 30


@pytest.mark.parametrize("memory", [None, 0, -1])
def test_unknown_memory_sends_nothing_to_spark(memory: int | None) -> None:
    assert too_large(1 << 60, memory) == ""


def test_duckdb_may_spill_to_disk() -> None:
    most = int(GIB * MOST_SPILLED / UNPACKED)

    assert too_large(most, GIB) == ""
    assert too_large(most + 1, GIB) == "it needs about 4.0 GiB, but DuckDB may use 1.0 GiB"


@given(st.integers(0, 1 << 62), st.integers(1, 1 << 50), st.integers(0, 1 << 50))
def test_more_memory_never_sends_more_to_spark(size: int, memory: int, more: int) -> None:
    assert not (too_large(size, memory + more) and not too_large(size, memory))
