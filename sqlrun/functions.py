"""Which functions a model may call; the list is kept closed on purpose. Pure."""

from __future__ import annotations

import difflib

from sqlglot import exp

# A model is a function of its inputs and as_of: these change by themselves.
VOLATILE = (exp.Rand, exp.Randn, exp.Uuid)
VOLATILE_NAMES = {
    "rand", "randn", "random", "uuid", "monotonically_increasing_id", "spark_partition_id",
    "shuffle", "randstr", "uniform",
}  # fmt: skip
# These read what is not the model's to read, or run what nobody checked.
FORBIDDEN = {
    "java_method", "reflect", "try_reflect", "identifier", "read_files", "read_kafka",
    "input_file_name", "input_file_block_start", "input_file_block_length", "table_changes",
    "table_changes_by_path", "current_user", "session_user", "user", "current_catalog",
    "current_database", "current_schema", "version", "raise_error", "assert_true", "ai_query",
    "http_request", "secret", "try_secret", "range", "getvariable",
}  # fmt: skip
# Functions that sqlglot has no class for, checked on both engines.
ANONYMOUS = {
    "timestamp_seconds", "timestamp_micros", "timestamp_millis", "unix_micros", "array_min",
    "array_max", "array_distinct", "array_position", "try_element_at", "named_struct", "nvl",
    "bit_count", "bool_and", "bool_or", "every", "some", "try_divide", "array_compact", "exists",
    "forall", "aggregate", "reduce", "hour", "minute", "isnull", "isnotnull", "pmod",
}  # fmt: skip


def refusal(function: exp.Func) -> tuple[str, str, str] | None:
    """Say why a function may not stand in a model (code, message, hint); None where it may.

    >>> import sqlglot
    >>> refusal(sqlglot.parse_one("java_method('a', 'b')", read="databricks"))[0]
    'SR305'
    """
    name = function_name(function)
    if isinstance(function, VOLATILE) or name in VOLATILE_NAMES:
        return (
            "SR501",
            f"{name}() gives another answer each time, so no tick could be proved",
            "A model may depend only on its inputs and on current_timestamp(), the tick's time.",
        )
    if name in FORBIDDEN:
        return (
            "SR305",
            f"function {name}() may not be used in a model",
            "Models read declared refs and sources alone.",
        )
    if isinstance(function, exp.Anonymous) and name not in ANONYMOUS:
        near = difflib.get_close_matches(name, sorted(ANONYMOUS), 1)
        hint = "sqlrun takes only functions that are known to agree on Spark and DuckDB."
        return (
            "SR305",
            f"unknown function {name}()",
            hint + (f" Did you mean {near[0]}()?" if near else ""),
        )
    return None


def function_name(function: exp.Func) -> str:
    """Name a function as Spark SQL does, in lower case."""
    if isinstance(function, exp.Anonymous):
        return function.name.lower()
    return str(function.sql_name()).lower()
