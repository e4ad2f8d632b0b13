"""Random tables, queries and changes: after each tick the maintained tables equal the whole query.

The seeds are fixed: each run tries the same examples. `make fuzz MINUTES=10` tries others. A failing example is reduced
to the smallest one and written as a `.case` file.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

import pytest

from tests.fuzz import writing
from tests.fuzz.running import Failed, Statistics, check, made, play, search
from tests.fuzz.variants import VARIANTS
from tests.support.case_files import Case, Step, read
from tests.support.memory import Table, View

pytestmark = pytest.mark.long

# 300 queries and their ticks; SQLRUN_EXHAUSTIVE tries 1,000, `make fuzz` any number.
ALL = bool(os.environ.get("SQLRUN_EXHAUSTIVE"))
SHARDS, EXAMPLES, VARIED = 8, 125 if ALL else 40, 25 if ALL else 8
FOUND = Path(__file__).parents[2] / "target" / "found"


def search_or_write(number: int, examples: int, checked, statistics: Statistics) -> None:
    try:
        search(number, examples, checked, statistics)
    except Failed as failed:
        path = writing.write(failed.case, str(failed.error), FOUND)
        pytest.fail(f"{failed.error}\nThe smallest example is in {path}")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SHARDS))
def test_random_queries(number: int) -> None:
    """The tables are correct, and most queries are maintained from changes, so the result is meaningful."""
    statistics = Statistics()

    search_or_write(number, EXAMPLES, check, statistics)

    print(statistics.text())
    kept = sum(count for method, count in statistics.methods.items() if method != "full")
    # Of forty, five happen to be.
    assert sum(statistics.refused.values()) <= 0.2 * statistics.examples, statistics.text()
    assert kept >= 0.5 * sum(statistics.methods.values()), statistics.text()


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_equivalent_tick_sequences_agree(name: str) -> None:
    """Merged, split, reordered, replayed or undone ticks lead to the same tables."""

    def checked(case: Case, statistics: Statistics) -> None:
        memory = made(case, statistics)
        if memory is None:
            return
        plain = play(case, memory, statistics, evaluated=False)
        memory = made(VARIANTS[name](case), statistics)
        assert memory is not None

        varied = play(VARIANTS[name](case), memory, statistics, evaluated=False)

        assert varied == plain, name

    search_or_write(100 + sorted(VARIANTS).index(name), VARIED, checked, Statistics())


CASE = Case(
    "a case with all that can be written",
    "",
    [
        Table("t0", (("i0", "int"), ("xs1", "array<int>")), ("i0",), True, False, ("i0",)),
        Table("t1", (("s0", "string"), ("m1", "decimal(10,2)"), ("r1", "struct<x:int,y:string>")), repeats=True),
    ],
    [
        View("v1", "select i0 as c1, xs1 as c2 from t0", ("c1",), "view"),
        View("v2", "select s0 as c3, sum(m1) as c4, " + " + ".join(["count(*)"] * 20) + " as c5 from t1 group by s0",
             (), "table", ("c3",)),
    ],
    steps=[
        Step(0, datetime(2026, 1, 1, 12, tzinfo=timezone.utc), [
            ("t0", [(1, ("1", "[1, 2]")), (1, ("2", None))]),
            ("t1", [(2, ("a", "1.50", "{'x': 1, 'y': a}")), (1, ("b", None, None))]),
        ]),
        Step(0, datetime(2026, 1, 1, 12, 5, tzinfo=timezone.utc)),
        Step(0, datetime(2026, 1, 2, tzinfo=timezone.utc), [("t1", [(-1, ("a", "1.50", "{'x': 1, 'y': a}"))])]),
    ],
)  # fmt: skip


@pytest.mark.slow
def test_a_written_case_is_read_back(tmp_path: Path) -> None:
    """The written file parses to the same case, with the expected changes of its steps."""
    wanted = writing.with_expected(CASE)

    path = writing.write(CASE, "AssertionError: something\nwas wrong", tmp_path)

    (again,) = read(path)
    views = [View(v.name, " " + v.sql, v.grain, v.materialized, v.partition_by) for v in wanted.views]
    assert (again.name, again.tables, again.views) == (wanted.name, wanted.tables, views)
    assert [(s.as_of, s.changes, s.expected) for s in again.steps] == [
        (s.as_of, s.changes, s.expected) for s in wanted.steps
    ]
    assert [s.expected for s in wanted.steps] == [
        [(1, ("a", "3.00", "40")), (1, ("b", None, "20"))],
        [],
        [(-1, ("a", "3.00", "40")), (1, ("a", "1.50", "20"))],
    ]


@pytest.mark.slow
def test_a_failing_example_is_reduced() -> None:
    """The search finds a fault that only some examples have, and reduces it to a small one."""

    def checked(case: Case, statistics: Statistics) -> None:
        assert sum(weight < 0 for step in case.steps for _, rows in step.changes for weight, _ in rows) == 0, (
            "a row left"
        )

    with pytest.raises(Failed) as caught:
        search(1, 200, checked, Statistics())

    rows = [row for step in caught.value.case.steps for _, rows in step.changes for row in rows]
    assert len(rows) <= 3, rows
    assert len(caught.value.case.views) == 1
