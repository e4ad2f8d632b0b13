"""What to write instead of dbt's keys that sqlrun doesn't have. Pure."""

from __future__ import annotations

from collections.abc import Mapping

_INCREMENTAL = "Remove it: sqlrun maintains every table incrementally. `sqlrun explain` shows how."
_HOOKS = "Remove it: sqlrun runs no statements before or after a model."
_NAMES = "Rename the file instead: a table has the name of its file."
_ALL = "Remove it: a check counts every row."
_BELOW = "Write it below `config` of a model."
_WORDS = "Remove it, or write it into `description`: sqlrun ignores it."
_AT_ONCE = "Use `severity` to stop the tick or only warn. In expectations/, `mostly` takes a share of rows."
# By dbt's key, with underscores for hyphens.
INSTEAD: Mapping[str, str] = {
    "unique_key": "Use `grain: [column]` in the contract.",
    "where": "Write the check in expectations/, with the condition as `row_condition`.",
    "loaded_at_field": "Set `event_time` and `freshness` in the contract of the model that reads the source.",
    "column_types": "Set each column's `data_type` in the contract.",
    "on_schema_change": "Set it on a source. A build recomputes an edited model from scratch.",
    "persist_docs": "Remove it: descriptions are in the contract only.",
    "grants": "Use file permissions, or the tokens of `sqlrun serve`.",
    "store_failures": "Remove it: the report shows failing rows, with SQL that finds them.",
    "cluster_by": "Use `partition_by`.",
    "config": "Remove it: only models have settings. Set each column's `data_type` for its type.",
    "constraints": "Write each constraint below its column.",
    **dict.fromkeys(("incremental_strategy", "full_refresh", "batch_size", "lookback"), _INCREMENTAL),
    **dict.fromkeys(("pre_hook", "post_hook", "sql_header", "on_run_start", "on_run_end"), _HOOKS),
    **dict.fromkeys(("schema", "database", "identifier"), _NAMES),
    **dict.fromkeys(("warn_if", "error_if", "fail_calc"), _AT_ONCE),
    **dict.fromkeys(("limit",), _ALL),
    **dict.fromkeys(("alias", "enabled"), _BELOW),
    **dict.fromkeys(("meta", "docs", "group", "access", "loader"), _WORDS),
}


def instead(key: str) -> str:
    """Return advice for a key of dbt's, with a blank before it; "" for any other key.

    >>> instead("unique_key"), instead("pre-hook")[:24], instead("colour")
    (' Use `grain: [column]` in the contract.', ' Remove it: sqlrun runs ', '')
    """
    found = INSTEAD.get(key.replace("-", "_"))
    return f" {found}" if found else ""
