"""Great Expectations' core expectations and one of sqlrun: arguments, and the rows that each needs. Pure."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal

# row: single rows. key: the rows that share a key. table: the whole table. schema: names only.
# past: measures of past ticks.
Scope = Literal["row", "key", "table", "schema", "past"]
QUERY = "unexpected_rows_expectation"
# The only type that isn't from Great Expectations.
VOLUME = "expect_landed_row_count_against_past_weeks_to_be_between"

# Number of weeks that a tick is compared with.
WEEKS = 6
_CONDITION = ("row_condition", "condition_parser")
_MOSTLY = ("mostly", *_CONDITION)
_BOUNDS = ("min_value", "max_value", "strict_min", "strict_max")


@dataclass(frozen=True, slots=True)
class Kind:
    """One expectation type. `columns`: arguments that name columns; `refused`: why sqlrun can't run it, else empty."""

    name: str
    scope: Scope
    columns: tuple[str, ...]
    required: tuple[str, ...]
    optional: tuple[str, ...]
    refused: str = ""

    @property
    def allowed(self) -> tuple[str, ...]:
        """Return all arguments that `kwargs` may have."""
        return self.columns + self.required + self.optional

    @property
    def counts_rows(self) -> bool:
        """Return whether the expectation counts unexpected rows (a map expectation), so that `mostly` applies."""
        return "mostly" in self.optional


def _kind(name: str, scope: Scope, columns: str, required: str = "", optional: str = "", refused: str = "") -> Kind:
    words = optional.replace("BOUNDS", " ".join(_BOUNDS)).replace("MOSTLY", " ".join(_MOSTLY))
    words = words.replace("CONDITION", " ".join(_CONDITION))
    return Kind(name, scope, tuple(columns.split()), tuple(required.split()), tuple(words.split()), refused)


def _values(name: str, scope: Scope = "row", required: str = "", optional: str = "") -> Kind:
    refused = _REFUSED.get(name, "")
    return _kind(f"expect_column_{name}", scope, "column", required, f"MOSTLY {optional}", refused)


def _aggregate(name: str, required: str = "", optional: str = "BOUNDS") -> Kind:
    return _kind(f"expect_column_{name}", "table", "column", required, f"CONDITION {optional}")


_LIKE = "LIKE patterns have no pandas implementation in Great Expectations; write the pattern as a regex"
_TYPES = "the contract sets the types, and every tick is written with them"
_ORDER = "the rows of a table have no order"
_REFUSED = {
    "values_to_match_like_pattern": _LIKE,
    "values_to_not_match_like_pattern": _LIKE,
    "values_to_match_like_pattern_list": _LIKE,
    "values_to_not_match_like_pattern_list": _LIKE,
    "values_to_be_of_type": _TYPES,
    "values_to_be_in_type_list": _TYPES,
    "values_to_be_increasing": _ORDER,
    "values_to_be_decreasing": _ORDER,
}

_ALL = (
    _values("values_to_not_be_null"),
    _values("values_to_be_null"),
    _values("values_to_be_between", optional="BOUNDS"),
    _values("values_to_be_in_set", required="value_set"),
    _values("values_to_not_be_in_set", required="value_set"),
    _values("values_to_match_regex", required="regex"),
    _values("values_to_not_match_regex", required="regex"),
    _values("values_to_match_regex_list", required="regex_list", optional="match_on"),
    _values("values_to_not_match_regex_list", required="regex_list"),
    _values("values_to_match_like_pattern", required="like_pattern", optional="escape"),
    _values("values_to_not_match_like_pattern", required="like_pattern", optional="escape"),
    _values(
        "values_to_match_like_pattern_list",
        required="like_pattern_list",
        optional="match_on escape",
    ),
    _values("values_to_not_match_like_pattern_list", required="like_pattern_list", optional="escape"),
    _values("value_lengths_to_be_between", optional="BOUNDS"),
    _values("value_lengths_to_equal", required="value"),
    _values("values_to_be_dateutil_parseable"),
    _values("values_to_be_json_parseable"),
    _values("values_to_match_json_schema", required="json_schema"),
    _values("values_to_match_strftime_format", required="strftime_format"),
    _values("values_to_be_of_type", required="type_"),
    _values("values_to_be_in_type_list", required="type_list"),
    _values("values_to_be_increasing", optional="strictly"),
    _values("values_to_be_decreasing", optional="strictly"),
    _values("values_to_be_unique", "key"),
    # Whether a value is an outlier depends on all other values.
    _values("values_to_not_be_outliers", "table", optional="method multiplier"),
    _values("value_z_scores_to_be_less_than", "table", required="threshold double_sided"),
    _kind(
        "expect_column_pair_values_to_be_equal",
        "row",
        "column_A column_B",
        "",
        "MOSTLY ignore_row_if",
    ),
    _kind(
        "expect_column_pair_values_a_to_be_greater_than_b",
        "row",
        "column_A column_B",
        "",
        "MOSTLY ignore_row_if or_equal",
    ),
    _kind(
        "expect_column_pair_values_to_be_in_set",
        "row",
        "column_A column_B",
        "value_pairs_set",
        "MOSTLY ignore_row_if",
    ),
    _kind("expect_compound_columns_to_be_unique", "key", "column_list", "", "MOSTLY ignore_row_if"),
    _kind(
        "expect_select_column_values_to_be_unique_within_record",
        "row",
        "column_list",
        "",
        "MOSTLY ignore_row_if",
    ),
    _kind("expect_multicolumn_values_to_be_equal", "row", "column_list", "", "MOSTLY ignore_row_if"),
    _kind("expect_multicolumn_sum_to_equal", "row", "column_list", "sum_total", "MOSTLY ignore_row_if"),
    _aggregate("sum_to_be_between"),
    _aggregate("min_to_be_between"),
    _aggregate("max_to_be_between"),
    _aggregate("mean_to_be_between"),
    _aggregate("median_to_be_between"),
    _aggregate("stdev_to_be_between"),
    _aggregate("proportion_of_unique_values_to_be_between"),
    _aggregate("proportion_of_non_null_values_to_be_between"),
    _aggregate("unique_value_count_to_be_between"),
    _aggregate("quantile_values_to_be_between", "quantile_ranges", "allow_relative_error"),
    _aggregate("distinct_values_to_be_in_set", "value_set", ""),
    _aggregate("distinct_values_to_contain_set", "value_set", ""),
    _aggregate("distinct_values_to_equal_set", "value_set", ""),
    _aggregate("most_common_value_to_be_in_set", "value_set", "ties_okay"),
    _aggregate(
        "kl_divergence_to_be_less_than",
        "partition_object threshold",
        "internal_weight_holdout tail_weight_holdout bucketize_data min_value max_value",
    ),
    _kind("expect_table_row_count_to_be_between", "table", "", "", "BOUNDS CONDITION"),
    _kind("expect_table_row_count_to_equal", "table", "", "value", "CONDITION"),
    _kind(
        "expect_table_row_count_to_equal_other_table",
        "table",
        "",
        "other_table_name",
        "CONDITION",
        "a check sees one table; compare the two in a model and check its rows",
    ),
    _kind(
        "expect_query_results_to_match_comparison",
        "table",
        "",
        "base_query comparison_data_source_name comparison_query",
        "mostly",
        "a check sees one table; compare the two in a model and check its rows",
    ),
    # `column` may name a missing column: this is what these check.
    _kind("expect_column_to_exist", "schema", "", "column", "column_index"),
    _kind("expect_column_type_to_be", "schema", "column", "type_", "", _TYPES),
    _kind("expect_table_column_count_to_equal", "schema", "", "value"),
    _kind("expect_table_column_count_to_be_between", "schema", "", "", "min_value max_value"),
    _kind("expect_table_columns_to_match_ordered_list", "schema", "", "column_list"),
    _kind("expect_table_columns_to_match_set", "schema", "", "column_set", "exact_match"),
    _kind(QUERY, "table", "", "unexpected_rows_query"),
    _kind(VOLUME, "past", "", "", "min_ratio max_ratio weeks"),
)
CATALOGUE = {kind.name: kind for kind in _ALL}


def near(name: str, names: tuple[str, ...]) -> str:
    """Return a suggestion for a misspelled name, or the list of names if it is short; else "".

    >>> near("statu", ("order_id", "status"))
    'Did you mean `status`?'
    """
    close = difflib.get_close_matches(name, names, 2, 0.6)
    if close:
        return "Did you mean " + " or ".join(f"`{found}`" for found in close) + "?"
    return "Known: " + ", ".join(names) + "." if 0 < len(names) <= 12 else ""
