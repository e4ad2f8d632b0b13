"""Which engine maintains a table: by predicted seconds, whatever receipts say that can't be true."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sqlrun.engines.auto import size_of
from sqlrun.plan.engine_cost import COLD_START, ENOUGH, USUAL, Cost, Past, Work, basis, choose, cost_of, told

GIB = 1 << 30
# 5 million changed rows.
LARGE = Work("fct", changed=5_000_000, rows=20_000_000, bytes=GIB)
NONSENSE = [
    ("spark", -1, 1.0), ("spark", 10, -1.0), ("spark", 10, math.nan), ("spark", math.nan, 1.0), ("spark", 10, math.inf),
    ("spark", 1e300, 1.0), ("spark", 10, 1e300), ("flink", 10, 1.0), ("", 10, 1.0), ("spark", None, 1.0),
    ("spark", 10, None), ("spark", 0, 0.0),
]  # fmt: skip


def slow(engine: str, per_row: float, table: str = "fct") -> list[Past]:
    """Make receipts of ticks that took so long a row."""
    sizes = (1_000_000, 2_000_000, 4_000_000, 8_000_000)
    return [Past(engine, table, rows, rows, 1.0 + rows * per_row) for rows in sizes]


@pytest.mark.parametrize("rows", [0, 1, 1_000, 100_000, 1_000_000])
@pytest.mark.parametrize("spark_is_up", [True, False])
def test_small_changes_are_maintained_by_duckdb(rows: int, spark_is_up: bool) -> None:
    assert choose(Work("fct", rows, rows), (), None, spark_is_up=spark_is_up).engine == "duckdb"


def test_receipts_decide_where_there_are_enough() -> None:
    """DuckDB that is slow here gives way to Spark; two receipts aren't enough to say so."""
    past = slow("duckdb", 40e-6)

    assert choose(LARGE, past, None, spark_is_up=True).engine == "spark"
    assert choose(LARGE, past[: ENOUGH - 1], None, spark_is_up=True).engine == "duckdb"


def test_a_cold_start_counts() -> None:
    """What Spark would just win once it runs isn't worth starting it."""
    work = Work("fct", 1_000_000, 1_000_000)
    past = [*slow("duckdb", 8e-6), *slow("spark", 2.5e-6)]

    warm, cold = (choose(work, past, None, spark_is_up=up) for up in (True, False))

    assert (warm.engine, cold.engine) == ("spark", "duckdb")
    assert cold.spark - warm.spark == pytest.approx(COLD_START)


def test_a_table_of_its_own_past_is_judged_by_that() -> None:
    past = [*slow("duckdb", 40e-6, "other"), *slow("duckdb", 1e-6)]

    assert choose(LARGE, past, None, spark_is_up=True).engine == "duckdb"


def test_a_slow_machine_is_slow_for_both() -> None:
    """One engine's seconds on a busy machine are not held against the other's on an idle one.

    What a first tick of a million orders took while others kept both cores busy once sent five million to Spark, which
    took four times the processor time for the first of the tables alone.
    """
    took = {
        "stg_orders": (1_326_603, 26.5), "fct_restaurant_slots": (1_004_750, 7.9),
        "fct_restaurant_hours": (377_366, 2.9), "fct_restaurant_dish_slots": (1_004_750, 22.3),
        "state_1": (377_366, 0.7), "state_2": (1_098_184, 2.0), "restaurant_windows": (32_004, 0.3),
    }  # fmt: skip
    past = [Past("duckdb", table, 0, rows, seconds) for table, (rows, seconds) in took.items()]

    for table in ("stg_orders", "fct_restaurant_slots", "new"):
        found = choose(Work(table, 6_588_000, 13_176_000, bytes=220_000_000), past, 2 * GIB, spark_is_up=True)

        assert found.engine == "duckdb", table


def test_a_table_that_duckdb_alone_is_slow_with_goes_to_spark() -> None:
    """Its own receipts are slow, those of the others as usual: that isn't the machine."""
    past = [*slow("duckdb", 1e-6, "other"), *slow("duckdb", 40e-6)]

    assert choose(LARGE, past, None, spark_is_up=True).engine == "spark"


def test_one_busy_moment_changes_little() -> None:
    """A receipt a hundred times too slow moves neither of the two costs."""
    past = [*slow("duckdb", 1e-6), *slow("duckdb", 1e-6), Past("duckdb", "fct", 3_000_000, 3_000_000, 400.0)]

    found = cost_of("duckdb", "fct", past)

    assert found.per_row == pytest.approx(1e-6, rel=0.2) and found.fixed == pytest.approx(1.0, rel=0.2)


def test_rows_of_one_size_say_what_is_fixed() -> None:
    """Equal ticks tell nothing of a row's cost, which stays the usual one."""
    found = cost_of("spark", "fct", [Past("spark", "fct", 100, 100, 3.0)] * 9)

    assert found.per_row == USUAL["spark"].per_row
    assert found.fixed == pytest.approx(3.0, abs=0.01)


@pytest.mark.parametrize(("engine", "read", "seconds"), NONSENSE)
def test_receipts_that_cannot_be_true_are_ignored(engine: str, read: Any, seconds: Any) -> None:
    past = [Past(engine, "fct", 10, read, seconds)] * 20

    assert choose(LARGE, past, None, spark_is_up=False) == choose(LARGE, (), None, spark_is_up=False)


@pytest.mark.parametrize("changed", [None, 0, -5, math.nan, math.inf])
def test_changed_rows_that_cannot_be_true_predict_no_rows(changed: Any) -> None:
    past = [Past("duckdb", "fct", changed, 1_000_000, 1.0)] * 9

    found = choose(LARGE, past, None, spark_is_up=False)

    assert math.isfinite(found.duckdb) and found.duckdb > 0 and found.engine == "duckdb"


def test_receipts_of_shrinking_seconds_give_no_negative_cost() -> None:
    past = [Past("duckdb", "fct", rows, rows, 100.0 - rows / 1e6) for rows in range(1_000_000, 9_000_000, 1_000_000)]

    found = cost_of("duckdb", "fct", past)

    assert found.per_row > 0 and found.fixed >= 0


def test_what_does_not_fit_goes_to_spark() -> None:
    """However much sooner DuckDB is predicted to be done, and told with both sizes."""
    found = choose(LARGE, (), GIB, spark_is_up=False)

    assert found.engine == "spark"
    assert told("fct", found) == (
        "fct is maintained by Spark in this tick: about 6.0 GiB to work on, DuckDB may use 1.0 GiB"
    )
    assert choose(LARGE, (), 8 * GIB, spark_is_up=False).engine == "duckdb"


def test_what_fits_the_disk_takes_longer_and_may_stay() -> None:
    """Up to four times the memory DuckDB spills, in twice the time; whoever is done first then has the turn."""
    roomy, tight = (choose(LARGE, (), size * GIB, spark_is_up=False) for size in (8, 2))
    # Between the two of DuckDB's predictions: where it needs no disk it is the faster one.
    past = [*slow("duckdb", 1.5e-6), *slow("spark", 2.0e-6)]

    assert tight.duckdb == pytest.approx(2 * roomy.duckdb) and tight.spark == roomy.spark
    assert choose(LARGE, past, 8 * GIB, spark_is_up=True).engine == "duckdb"
    assert choose(LARGE, past, 2 * GIB, spark_is_up=True).engine == "spark"


@pytest.mark.parametrize("memory", [None, 0, -1])
def test_memory_that_is_not_known_refuses_nothing(memory: int | None) -> None:
    assert choose(LARGE, (), memory, spark_is_up=False).engine == "duckdb"


def test_a_whole_query_is_predicted_by_its_rows() -> None:
    """What changes read before says nothing of it."""
    past = [Past("duckdb", "fct", 1, 1_000, 0.1)] * 9

    found = choose(Work("fct", 5, 1_000_000, whole=True), past, None, spark_is_up=False)

    assert found.duckdb == pytest.approx(cost_of("duckdb", "fct", past).seconds(1_000_000))


def test_nothing_is_told_of_what_is_usual() -> None:
    assert told("fct", choose(Work("fct", 1, 1), (), None, spark_is_up=False)) == ""


@pytest.mark.parametrize("text", ["", "nan", "1e9", "-1 GB", "1 XB", "GiB", "80%"])
def test_sizes_that_are_none(text: str) -> None:
    assert size_of(text) is None


def test_a_cost_is_never_below_its_fixed_part() -> None:
    assert Cost(2.0, 1e-6).seconds(-5) == 2.0


def test_small_ticks_do_not_say_what_a_large_change_takes() -> None:
    """What a row costs is noise in ticks of 20,000: fifty milliseconds more or less would be minutes for 20 million."""
    busy = [Past("duckdb", "fct", 1_000, 20_000 + 12_000 * n, 0.2 + 0.3 * n) for n in range(3)]

    found = choose(LARGE, busy, None, spark_is_up=False)

    assert found.engine == "duckdb" and found.duckdb < 60


def test_large_changes_of_the_past_say_what_a_larger_one_takes() -> None:
    """Up to four times as large, that is: there receipts count, however far from the usual."""
    past = slow("duckdb", 20e-6)

    assert cost_of("duckdb", "fct", past).seconds(32_000_000) == pytest.approx(1.0 + 32_000_000 * 20e-6, rel=0.01)
    more = cost_of("duckdb", "fct", past).seconds(42_000_000) - cost_of("duckdb", "fct", past).seconds(32_000_000)
    assert more == pytest.approx(10_000_000 * USUAL["duckdb"].per_row)


def test_what_a_prediction_goes_by_is_told() -> None:
    own, other = slow("duckdb", 1e-6), slow("duckdb", 1e-6, "other")

    assert basis("duckdb", "fct", own) == "4 ticks of its own"
    assert basis("duckdb", "fct", other) == "4 ticks of all tables"
    assert basis("duckdb", "fct", [*own[:1], *other]) == "5 ticks of all tables"
    assert basis("duckdb", "fct", own[:1]) == basis("spark", "fct", own) == "what is usual on two cores"
