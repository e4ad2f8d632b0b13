"""The generic tests that come along from dbt and its packages: each finds the rows that are wrong, and no others."""

from __future__ import annotations

import duckdb
import pytest

from sqlrun.load import built_in_macros
from tests.support import dbt_macros
from tests.support.both_engines import Rows, on_duckdb

TABLE = Rows(
    "t",
    (
        ("id", "int"), ("n", "int"), ("word", "string"), ("part", "string"), ("lower", "int"), ("upper", "int"),
        ("at", "timestamp"), ("same", "int"), ("nothing", "string"),
    ),
    (),
)  # fmt: skip
ROWS = [
    (1, 10, "tea", "a", 0, 5, "2026-01-01 00:00:00", 7, None),
    (2, 20, "bun", "a", 5, 9, "2026-01-02 00:00:00", 7, None),
    (3, 20, " ", "b", 4, 3, "2025-12-30 00:00:00", 7, None),
    (4, None, None, "b", 6, 8, "2025-12-31 00:00:00", 7, None),
]
# A call after the model, and the number of wrong rows. The tick is of 2026-01-02 03:04:05.
CALLS: tuple[tuple[str, str, int], ...] = (
    ("dbt", "accepted_values(column_name='word', values=['tea', 'bun', ' '])", 0),
    ("dbt", "accepted_values(column_name='word', values=['tea', \"bun's\"])", 2),
    ("dbt", "accepted_values(column_name='n', values=[10], quote=false)", 2),
    ("dbt", "not_null(column_name='id')", 0),
    ("dbt", "not_null(column_name='n')", 1),
    ("dbt", "relationships(column_name='n', to=ref('t'), field='n')", 0),
    ("dbt", "relationships(column_name='n', to=ref('t'), field='id')", 3),
    ("dbt", "unique(column_name='id')", 0),
    ("dbt", "unique(column_name='n')", 1),
    ("dbt_utils", "accepted_range(column_name='n', min_value=10, max_value=20)", 0),
    ("dbt_utils", "accepted_range(column_name='n', min_value=10, inclusive=false)", 1),
    ("dbt_utils", "accepted_range(column_name='n', max_value='id + 10')", 2),
    ("dbt_utils", "at_least_one(column_name='n')", 0),
    ("dbt_utils", "at_least_one(column_name='nothing')", 1),
    ("dbt_utils", "cardinality_equality(column_name='id', to=ref('t'), field='id')", 0),
    ("dbt_utils", "cardinality_equality(column_name='id', to=ref('t'), field='same')", 5),
    ("dbt_utils", "equality(compare_model=ref('t'))", 0),
    ("dbt_utils", "equality(compare_model='(select * from ' ~ ref('t') ~ ' where id < 4) as u')", 1),
    ("dbt_utils", "equality(compare_model='(select id from ' ~ ref('t') ~ ') as u', compare_columns=['id'])", 0),
    ("dbt_utils", "equal_rowcount(compare_model=ref('t'))", 0),
    ("dbt_utils", "equal_rowcount(compare_model='(select * from ' ~ ref('t') ~ ' where id < 4) as u')", 1),
    ("dbt_utils", "expression_is_true(expression='lower < upper', column_name=none)", 1),
    ("dbt_utils", "expression_is_true(expression='>= 10', column_name='n')", 0),
    ("dbt_utils", "fewer_rows_than(compare_model=ref('t'))", 1),
    ("dbt_utils", "fewer_rows_than(compare_model='(select 1 as x from ' ~ ref('t') ~ ' union all select 1) as u')", 0),
    ("dbt_utils", "mutually_exclusive_ranges(lower_bound_column='lower', upper_bound_column='upper')", 3),
    (
        "dbt_utils",
        "mutually_exclusive_ranges(lower_bound_column='id', upper_bound_column='id + 1', gaps='not_allowed')",
        0,
    ),
    (
        "dbt_utils",
        "mutually_exclusive_ranges(lower_bound_column='lower', upper_bound_column='upper', partition_by='part')",
        1,
    ),
    ("dbt_utils", "not_accepted_values(column_name='word', values=['cake'])", 0),
    ("dbt_utils", "not_accepted_values(column_name='word', values=['tea', 'bun'])", 2),
    ("dbt_utils", "not_constant(column_name='n')", 0),
    ("dbt_utils", "not_constant(column_name='same')", 1),
    ("dbt_utils", "not_empty_string(column_name='word')", 1),
    ("dbt_utils", "not_empty_string(column_name='word', trim_whitespace=false)", 0),
    ("dbt_utils", "not_null_proportion(column_name='n', at_least=0.75)", 0),
    ("dbt_utils", "not_null_proportion(column_name='n', at_least=0.8)", 1),
    ("dbt_utils", "not_null_proportion(column_name='n', at_least=0.1, at_most=0.5)", 1),
    ("dbt_utils", "recency(field='at', datepart='hour', interval=4)", 0),
    ("dbt_utils", "recency(field='at', datepart='hour', interval=3)", 1),
    ("dbt_utils", "recency(field='at', datepart='day', interval=1, ignore_time_component=true)", 0),
    ("dbt_utils", "relationships_where(column_name='n', to=ref('t'), field='id', from_condition='n = 10')", 1),
    ("dbt_utils", "relationships_where(column_name='id', to=ref('t'), field='id', to_condition='id < 3')", 2),
    ("dbt_utils", "relationships_where(column_name='id', to=ref('t'), field='id')", 0),
    ("dbt_utils", "sequential_values(column_name='id')", 0),
    ("dbt_utils", "sequential_values(column_name='n', interval=10)", 1),
    ("dbt_utils", "sequential_values(column_name='at', datepart='day')", 0),
    ("dbt_utils", "unique_combination_of_columns(combination_of_columns=['id', 'part'])", 0),
    ("dbt_utils", "unique_combination_of_columns(combination_of_columns=['same', 'part'], quote_columns=true)", 2),
    ("dbt_expectations", "expression_is_true(expression='lower < upper')", 1),
    ("dbt_expectations", "expression_is_true(expression='lower < upper', row_condition='id <> 3')", 0),
    ("dbt_expectations", "expect_column_distinct_count_to_equal(column_name='n', value=2)", 0),
    ("dbt_expectations", "expect_column_distinct_count_to_equal(column_name='n', value=3)", 1),
    ("dbt_expectations", "expect_column_distinct_values_to_be_in_set(column_name='n', value_set=[10, 20])", 0),
    ("dbt_expectations", "expect_column_distinct_values_to_be_in_set(column_name='n', value_set=[10])", 2),
    ("dbt_expectations", "expect_column_max_to_be_between(column_name='n', max_value=20)", 0),
    ("dbt_expectations", "expect_column_max_to_be_between(column_name='n', max_value=20, strictly=true)", 1),
    ("dbt_expectations", "expect_column_mean_to_be_between(column_name='id', min_value=2, max_value=3)", 0),
    ("dbt_expectations", "expect_column_mean_to_be_between(column_name='id', min_value=3)", 1),
    ("dbt_expectations", "expect_column_min_to_be_between(column_name='n', min_value=10)", 0),
    ("dbt_expectations", "expect_column_min_to_be_between(column_name='n', min_value=11)", 1),
    ("dbt_expectations", "expect_column_sum_to_be_between(column_name='n', min_value=50, max_value=50)", 0),
    ("dbt_expectations", "expect_column_sum_to_be_between(column_name='n', max_value=49)", 1),
    ("dbt_expectations", "expect_column_pair_values_A_to_be_greater_than_B(column_A='upper', column_B='lower')", 1),
    (
        "dbt_expectations",
        "expect_column_pair_values_A_to_be_greater_than_B(column_A='id', column_B='id', or_equal=true)",
        0,
    ),
    ("dbt_expectations", "expect_column_pair_values_to_be_equal(column_A='id', column_B='id')", 0),
    ("dbt_expectations", "expect_column_pair_values_to_be_equal(column_A='id', column_B='n')", 3),
    ("dbt_expectations", "expect_column_unique_value_count_to_be_between(column_name='n', min_value=2)", 0),
    ("dbt_expectations", "expect_column_unique_value_count_to_be_between(column_name='n', min_value=3)", 1),
    ("dbt_expectations", "expect_column_value_lengths_to_be_between(column_name='word', min_value=1, max_value=3)", 0),
    ("dbt_expectations", "expect_column_value_lengths_to_be_between(column_name='word', min_value=2)", 1),
    ("dbt_expectations", "expect_column_value_lengths_to_equal(column_name='word', value=3)", 1),
    ("dbt_expectations", "expect_column_value_lengths_to_equal(column_name='part', value=1)", 0),
    ("dbt_expectations", "expect_column_values_to_be_between(column_name='n', min_value=0, max_value=20)", 0),
    ("dbt_expectations", "expect_column_values_to_be_between(column_name='n', min_value=15)", 1),
    ("dbt_expectations", "expect_column_values_to_be_in_set(column_name='part', value_set=['a', 'b'])", 0),
    ("dbt_expectations", "expect_column_values_to_be_in_set(column_name='part', value_set=['a'])", 2),
    ("dbt_expectations", "expect_column_values_to_be_null(column_name='nothing')", 0),
    ("dbt_expectations", "expect_column_values_to_be_null(column_name='n', row_condition='id > 2')", 1),
    ("dbt_expectations", "expect_column_values_to_be_unique(column_name='id')", 0),
    ("dbt_expectations", "expect_column_values_to_be_unique(column_name='part')", 2),
    ("dbt_expectations", "expect_column_values_to_match_regex(column_name='part', regex='^[ab]$')", 0),
    ("dbt_expectations", "expect_column_values_to_match_regex(column_name='word', regex='^\\\\w+$')", 1),
    ("dbt_expectations", "expect_column_values_to_not_be_in_set(column_name='n', value_set=[30])", 0),
    ("dbt_expectations", "expect_column_values_to_not_be_in_set(column_name='n', value_set=[20])", 2),
    ("dbt_expectations", "expect_column_values_to_not_be_null(column_name='id')", 0),
    ("dbt_expectations", "expect_column_values_to_not_be_null(column_name='n')", 1),
    ("dbt_expectations", "expect_column_values_to_not_match_regex(column_name='part', regex='c')", 0),
    ("dbt_expectations", "expect_column_values_to_not_match_regex(column_name='word', regex='u')", 1),
    ("dbt_expectations", "expect_compound_columns_to_be_unique(column_list=['id', 'n'])", 0),
    ("dbt_expectations", "expect_compound_columns_to_be_unique(column_list=['same', 'part'])", 2),
    ("dbt_expectations", "expect_multicolumn_sum_to_equal(column_list=['id', 'same'], sum_total=8)", 3),
    ("dbt_expectations", "expect_multicolumn_sum_to_equal(column_list=['same', 'same'], sum_total=14)", 0),
    ("dbt_expectations", "expect_row_values_to_have_recent_data(column_name='at', datepart='day', interval=1)", 0),
    ("dbt_expectations", "expect_row_values_to_have_recent_data(column_name='at', datepart='hour', interval=3)", 1),
    ("dbt_expectations", "expect_table_row_count_to_be_between(min_value=1, max_value=4)", 0),
    ("dbt_expectations", "expect_table_row_count_to_be_between(max_value=4, strictly=true)", 1),
    ("dbt_expectations", "expect_table_row_count_to_equal(value=4)", 0),
    ("dbt_expectations", "expect_table_row_count_to_equal(value=4, row_condition='id > 1')", 1),
    ("dbt_expectations", "expect_table_row_count_to_equal_other_table(compare_model=ref('t'))", 0),
    (
        "dbt_expectations",
        "expect_table_row_count_to_equal_other_table(compare_model=ref('t'), compare_row_condition='id = 1')",
        1,
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return TABLE.on_duckdb(ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("package", ["dbt", "dbt_utils", "dbt_expectations"])
def test_a_test_finds_the_wrong_rows(connection: duckdb.DuckDBPyConnection, package: str) -> None:
    """As many as there are."""
    wrong = {call: wrong for name, call, wrong in CALLS if name == package}
    calls = [f"{{{{ {package}.test_{call.replace('(', chr(40) + 'ref(' + repr('t') + '), ', 1)} }}}}" for call in wrong]
    texts = dbt_macros.rendered("\n;\n".join(calls)).sql.split("\n;\n")
    found = {
        call: on_duckdb(connection, f"select count(*) as c from ({sql}) as wrong", ("c",), TABLE)
        for call, sql in zip(wrong, texts, strict=True)
    }

    assert found == {call: [(number,)] for call, number in wrong.items()}


def test_each_test_is_right_once_and_wrong_once() -> None:
    """A test that never finds anything would pass."""
    library = {(m.package, m.name) for m in built_in_macros.beside(()) if m.name.startswith("test_")}
    called = {
        is_wrong: {(package, f"test_{call.partition('(')[0]}") for package, call, n in CALLS if bool(n) == is_wrong}
        for is_wrong in (True, False)
    }

    assert called == {True: library, False: library}
