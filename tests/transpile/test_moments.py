"""Variances and regressions on DuckDB: in every place of a query, for values that aren't numbers, in little memory."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import duckdb
import pytest
import sqlglot

from sqlrun.transpile import calls as duckdb_calls
from sqlrun.transpile import moments as duckdb_moments
from sqlrun.transpile.dialect import DIALECT
from tests.support import memory
from tests.support.both_engines import Row, on_duckdb
from tests.support.odd_groups import table, values

pytestmark = pytest.mark.slow

CALLS = ("stddev(i)", "var_pop(distinct i)", "covar_pop(i, j)", "regr_slope(i, j)", "kurtosis(i)", "skewness(i)",
         "stddev(case when x > 0 then i end)")  # fmt: skip
GROWING = ("stddev(x)", "var_pop(x)", "covar_samp(x, y)", "corr(x, y)", "regr_slope(x, y)", "regr_sxx(x, y)",
           "regr_syy(x, y)", "regr_sxy(x, y)", "regr_intercept(x, y)", "regr_r2(x, y)")  # fmt: skip
# The same call in another place: the query's result for each group is compared with the plain call.
FORMS = {
    "having": "select g, {0} as c0 from ref.odd group by g having coalesce({0}, 1) > -1000",
    "case": "select g, case when {0} is null then null when 1 = 1 then {0} end as c0 from ref.odd group by g",
    "expression": "select g, ({0} + 1) - 1 as c0 from ref.odd group by g",
    "filter": "select g, {0} filter (where n < 99) as c0 from ref.odd group by g",
    "ordered": "select g, c0 from (select g, c0, row_number() over (order by c0, g) as r"
    " from (select g, {0} as c0 from ref.odd group by g)) where r < 99",
    "window": "select g, max({0}) over (partition by g) as c0 from ref.odd group by g",
}


def translated(call: str) -> str:
    tree = sqlglot.parse_one(call, read=DIALECT)
    return duckdb_calls.translated(tree.copy(), tree).sql("duckdb")


def results(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, float | None]:
    found = on_duckdb(connection, sql, ["g", "c0"], table())
    assert not isinstance(found, str), (sql, found)
    return dict(found)


@pytest.fixture(scope="module")
def odd() -> duckdb.DuckDBPyConnection:
    return table().on_duckdb(_numbers())


def _numbers() -> list[Row]:
    """Return the groups whose sums of squares fit in a double's digits."""
    return [row for row in values() if row[0] not in ("huge", "far from zero")]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("call", CALLS)
def test_a_moment_is_the_same_in_every_place(odd: duckdb.DuckDBPyConnection, form: str, call: str) -> None:
    alone = results(odd, f"select g, {call} as c0 from ref.odd group by g")
    found = results(odd, FORMS[form].format(call))

    assert found == pytest.approx(alone, nan_ok=True)


@pytest.mark.parametrize(
    ("call", "numbers", "wanted"),
    [
        ("stddev(x)", [math.nan], None),
        ("var_pop(x)", [math.nan], math.nan),
        ("var_pop(x)", [math.inf], math.nan),
        ("stddev(x)", [math.inf, 2.0], math.nan),
        ("stddev(x)", [1.0], None),
        ("var_pop(x)", [0.1, 0.1, 0.1], 0.0),
        ("regr_sxx(1.0, x)", [1.0, 3.0], 2.0),
        ("stddev(distinct x)", [1.0, 1.0, 3.0], statistics.stdev([1.0, 3.0])),
    ],
)
def test_values_that_are_not_numbers_give_none(call: str, numbers: list[float], wanted: float | None) -> None:
    """As Spark computes them."""
    connection = memory.connect()
    (row,) = connection.execute(f"select {translated(call)} from (select unnest(?) as x)", [numbers]).fetchall()

    assert row == (pytest.approx(wanted, nan_ok=True) if wanted is not None else None,)


@pytest.mark.parametrize("call", ["stddev(x)", "corr(x, y)", "regr_r2(x, y)"])
def test_squares_too_large_for_a_double_stop_the_tick(call: str) -> None:
    """Spark returns NaN or an infinity, depending on the order of merging its partial results."""
    connection = memory.connect()

    with pytest.raises(duckdb.Error):
        connection.execute(
            f"select {translated(call)} from (values (1e200::double, 1e200::double), (3e200, 4e200)) t(x, y)"
        ).fetchall()


@pytest.mark.parametrize("call", GROWING)
def test_a_large_group_is_computed_as_a_small_one(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two ways agree where a group grows past the limit."""
    connection = memory.connect()
    rows = "(select cast(i * i % 97 as double) as x, cast(i % 7 as double) as y from range(1, {}) r(i))"
    for size in (16, 17, 18, 33, 34):
        (own,) = connection.execute(f"select {translated(call)} from {rows.format(size)}").fetchall()
        with monkeypatch.context() as patched:
            patched.setattr(duckdb_moments, "MOST_VALUES", 1000)
            patched.setattr(duckdb_moments, "MOST_PAIRS", 1000)
            (collected,) = connection.execute(f"select {translated(call)} from {rows.format(size)}").fetchall()

        assert own == pytest.approx(collected, rel=1e-12), size


@pytest.mark.parametrize("call", ["var_pop(x)", "stddev(x)", "covar_pop(y, x)", "regr_sxx(y, x)", "regr_slope(y, x)"])
@pytest.mark.parametrize("odd", ["nan", "inf", "-inf"])
def test_a_large_group_with_a_value_that_is_not_a_number_has_none(call: str, odd: str) -> None:
    connection = memory.connect()
    rows = f"(select case when i = 77 then cast('{odd}' as double) else i end as x, i % 7 as y from range(300) r(i))"
    ((found,),) = connection.execute(f"select {translated(call)} from {rows}").fetchall()

    assert math.isnan(found)


def test_a_large_group_takes_no_more_memory_than_a_small_one(tmp_path: Path) -> None:
    """The values of three million rows would take 24 MB, and pairs twice as much."""
    connection = memory.connect()
    connection.execute(
        f"set memory_limit = '40MB'; set temp_directory = '{tmp_path}'; set max_temp_directory_size = '0MB'"
    )
    rows = "(select cast(i % 1000 as double) as x, cast(i % 77 as double) as y from range(3000000) r(i))"
    calls = ", ".join(translated(call) for call in ("stddev(x)", "corr(x, y)", "regr_intercept(x, y)"))
    ((spread, _, _),) = connection.execute(f"select {calls} from {rows}").fetchall()

    assert spread == pytest.approx(288.675, abs=0.01)
