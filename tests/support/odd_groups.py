"""Each aggregate of the function list over odd groups: empty, one row, all NULL, constant, NaN, infinities, huge.

tests/spark/test_odd_groups_spark.py compares DuckDB's results for sqlrun's SQL with Spark's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tests.support.both_engines import Row, Rows

COLUMNS = (("g", "string"), ("n", "int"), ("i", "int"), ("j", "int"), ("b", "bigint"), ("d", "decimal(10,2)"),
           ("x", "double"), ("y", "double"), ("o", "boolean"), ("s", "string"))  # fmt: skip
ONE = (3, 4, 5, "1.50", 0.5, 2.0, True, "a")
NONE = (None,) * 8
# The rows of each group, without the group's name and a row's number.
GROUPS: dict[str, list[Row]] = {
    "one row": [ONE],
    "one row of NULLs": [NONE],
    "all NULL": [NONE, NONE, NONE],
    "two rows": [ONE, (1, 7, -2, "-0.25", 1.5, -1.0, False, "b")],
    "three rows and a NULL": [ONE, (1, 7, -2, "-0.25", 1.5, -1.0, False, "b"), NONE,
                              (2, 2, 9, "9.99", 0.25, 8.0, None, "")],
    "constant": [ONE, ONE, ONE],
    "constant x alone": [(3, 4, 5, "1.50", 0.5, 2.0, True, "a"), (3, 5, 5, "1.50", 0.5, 3.0, True, "a"),
                         (3, 9, 5, "1.50", 0.5, 7.5, True, "a")],
    "constant y alone": [(1, 4, 1, "1.00", 1.0, 0.1, True, "a"), (2, 4, 2, "2.00", 2.0, 0.1, True, "b"),
                         (5, 4, 3, "5.00", 5.0, 0.1, True, "c")],
    "NULL beside a value": [(1, None, 1, "1.00", 1.0, None, None, "a"), (None, 2, None, None, None, 2.0, True, None),
                            (3, 4, 3, "3.00", 3.0, 4.0, True, "b"), (5, 9, 3, "3.50", 3.5, 4.5, True, "b")],
    "a NaN": [(1, 1, 1, "1.00", math.nan, 1.0, True, "a"), (2, 2, 2, "2.00", 2.0, 2.5, True, "b")],
    "NaN alone": [(1, 1, 1, "1.00", math.nan, math.nan, True, "a")],
    "an infinity": [(1, 1, 1, "1.00", math.inf, 1.0, True, "a"), (2, 2, 2, "2.00", 2.0, 2.5, True, "b")],
    "both infinities": [(1, 1, 1, "1.00", math.inf, 1.0, True, "a"), (2, 2, 2, "2.00", -math.inf, 2.5, True, "b")],
    "huge": [(2**31 - 1, -(2**31), 2**62, "99999999.99", 1e60, 1e70, True, "a"),
             (2**31 - 1, 2**30, 2**61, "99999999.98", -1e60, 1e-60, True, "b"),
             (-(2**31), 0, -(2**62), "-99999999.99", 2e59, 3.0, False, "c")],
    "far from zero": [(1000000001, 1, 10**15 + 1, "90000000.01", 1e9 + 0.1, 1.0, True, "a"),
                      (1000000002, 2, 10**15 + 2, "90000000.02", 1e9 + 0.2, 2.0, True, "b"),
                      (1000000004, 4, 10**15 + 4, "90000000.04", 1e9 + 0.4, 4.5, True, "c")],
    "zeros of both signs": [(0, 0, 0, "0.00", 0.0, -0.0, False, ""), (0, 0, 0, "0.00", -0.0, 0.0, False, "")],
    "five rows": [(k, k * k, k, f"{k}.50", k / 4, k * 1.5 - 2, k > 2, "abcde"[k]) for k in range(5)],
}  # fmt: skip
_NUMBERS = ("i", "b", "d", "x")
# Groups in which doubles cancel out, and Spark's own last digits depend on the order of rows.
ROUGH = frozenset({"far from zero", "huge"})
_PAIRS = ("x, y", "y, x", "i, j", "d, x", "x, x")
ONE_NUMBER = (
    "avg", "mean", "sum", "min", "max", "count", "median", "stddev", "std", "stddev_samp", "stddev_pop", "variance",
    "var_samp", "var_pop", "kurtosis", "skewness", "try_sum", "try_avg", "count(distinct {})", "sum(distinct {})",
    "avg(distinct {})", "percentile({}, 0.3)", "percentile_cont(0.25) within group (order by {})",
    "percentile_disc(0.4) within group (order by {})", "percentile_cont(0.25) within group (order by {} desc)",
    "max(struct({}, n))", "min(struct({}, n))", "sort_array(collect_list({}))", "sort_array(collect_set({}))",
    "sum({}) filter (where n > 1)", "stddev({}) filter (where n > 99)", "count({}) filter (where n > 1)",
)  # fmt: skip
TWO_NUMBERS = (
    "corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2",
    "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "corr({}) filter (where n > 1)", "count({})",
)  # fmt: skip
OTHERS = (
    "bool_and(o)", "bool_or(o)", "every(o)", "some(o)", "count_if(o)", "bit_and(i)", "bit_or(b)", "bit_xor(i)",
    "min(s)", "max(s)", "min(o)", "max(o)", "count(distinct s)", "count(distinct i, s)", "max(d) - min(d)",
    "listagg(s, ',') within group (order by s)", "string_agg(s, '') within group (order by s desc)", "count(*)",
    "sort_array(collect_list(struct(s, i)))", "percentile(i, 0.5)", "first_value(i) filter (where n = 1)",
)  # fmt: skip


# Calls that Spark or sqlrun has no window for.
_GROUPED = ("distinct", "filter", "within group", "sort_array", "percentile", "string_agg", "any_value", "first_value")
OVER = (
    "partition by g",
    "partition by g order by n",
    "partition by g order by n rows between 1 preceding and current row",
)


def calls(numbers: tuple[str, ...] = _NUMBERS, pairs: tuple[str, ...] = _PAIRS) -> list[str]:
    """Return the compared calls."""

    def of(form: str, arguments: str) -> str:
        return form.format(arguments) if "{}" in form else f"{form}({arguments})"

    found = [of(form, column) for form in ONE_NUMBER for column in numbers]
    found += [of(form, pair) for form in TWO_NUMBERS for pair in pairs]
    return [*found, *OTHERS]


def windows() -> list[str]:
    """Return calls over windows: the whole group, a growing and a sliding frame."""
    plain = [call for call in calls(("d", "x"), ("i, j",)) if not any(word in call for word in _GROUPED)]
    return [f"{call} over ({window})" for call in plain for window in OVER]


def values() -> Iterator[Row]:
    """Yield the rows as Python values."""
    for name, group in GROUPS.items():
        for number, row in enumerate(group, 1):
            yield (name, number, *row)


def table() -> Rows:
    """Return the table of all groups."""
    literals = (tuple(None if value is None else f"'{value}'" for value in row) for row in values())
    return Rows("odd", COLUMNS, tuple(literals))


def statement(items: list[str], source: str) -> str:
    """Return one query with all groups and an empty one; over windows, with a row for each row."""
    each = ", ".join(f"{call} as c{number}" for number, call in enumerate(items))
    if any(" over (" in call for call in items):
        return f"select concat(g, ' ', cast(n as string)) as g, {each} from {source}"
    none = f"select 'no row' as g, {each} from {source} {'and' if ' where ' in source else 'where'} n > 1000"
    return f"select g, {each} from {source} group by g union all {none}"


def names(items: list[str]) -> list[str]:
    return ["g", *(f"c{number}" for number in range(len(items)))]
