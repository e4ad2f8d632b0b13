"""What to write instead of dbt's keys that sqlrun doesn't have. Pure."""

from __future__ import annotations

from collections.abc import Mapping

_INCREMENTAL = "Every table is kept incrementally, by rules that `sqlrun explain` shows: leave it out."
_HOOKS = "No statement runs around a model: a model is its query, and nothing else."
_NAMES = "A table has its file's name: rename the file."
_ALL = "A check counts every row: leave it out."
_FILES = "To leave a file out, move it elsewhere."
_WORDS = "It means nothing here: write it into `description`, or leave it out."
_AT_ONCE = "`severity` says whether a row that breaks the rule stops the tick; `mostly` in expectations/ takes a share."
# By dbt's key, with underscores for hyphens.
INSTEAD: Mapping[str, str] = {
    "unique_key": "Write `grain: [column]` in the contract.",
    "tests": "Write `data_tests:`.",
    "where": "A condition stands in expectations/, as `row_condition`.",
    "loaded_at_field": "`event_time` and `freshness` stand in the contract of the model that reads the source.",
    "column_types": "Types stand in the contract, as each column's `data_type`.",
    "on_schema_change": "It is a source's to say; an edited model is built anew.",
    "persist_docs": "Descriptions stand in the contract alone.",
    "grants": "Who may read is the file system's, or `sqlrun serve`'s, to say.",
    "store_failures": "Failing rows are in the report, with SQL that finds them: leave it out.",
    "cluster_by": "Write `partition_by`.",
    "constraints": "They stand with their columns.",
    **dict.fromkeys(("incremental_strategy", "full_refresh", "batch_size", "lookback"), _INCREMENTAL),
    **dict.fromkeys(("pre_hook", "post_hook", "sql_header", "on_run_start", "on_run_end"), _HOOKS),
    **dict.fromkeys(("alias", "schema", "database", "identifier"), _NAMES),
    **dict.fromkeys(("warn_if", "error_if", "fail_calc"), _AT_ONCE),
    **dict.fromkeys(("limit",), _ALL),
    **dict.fromkeys(("enabled",), _FILES),
    **dict.fromkeys(("meta", "docs", "group", "access", "loader"), _WORDS),
}


def instead(key: str) -> str:
    """Return advice for a key of dbt's, with a blank before it; "" for any other key.

    >>> instead("unique_key"), instead("pre-hook")[:24], instead("colour")
    (' Write `grain: [column]` in the contract.', ' No statement runs aroun', '')
    """
    found = INSTEAD.get(key.replace("-", "_"))
    return f" {found}" if found else ""
