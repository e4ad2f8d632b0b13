"""Regular expressions of checks, searched in a process that can be stopped. Shell: processes.

Great Expectations then searches for `1` in a column of `1` and `0`, the results of the search for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from sqlrun.check.comparable_columns import Prepared
from sqlrun.expectations import json_schemas
from sqlrun.expectations.regex_cost import may_run_away
from sqlrun.runtime.time_limit import searched

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = (
    "expect_column_values_to_match_regex",
    "expect_column_values_to_not_match_regex",
    "expect_column_values_to_match_regex_list",
    "expect_column_values_to_not_match_regex_list",
)
JSON_SCHEMA = "expect_column_values_to_match_json_schema"


def stoppable(kind: str, prepared: Prepared, check_timeout: float) -> Prepared:
    """Return a check's columns unchanged, or their search results if the check's patterns might run away.

    Raises: OutOfTimeError, ValueError.
    """
    if kind == JSON_SCHEMA:
        _require_short(prepared)
    if kind not in KINDS:
        return prepared
    ((name, array),) = prepared.columns.items()
    listed = prepared.kwargs.get("regex_list", [prepared.kwargs.get("regex")])
    patterns = [str(pattern) for pattern in cast(Sequence[object], listed)]
    if not patterns or not _is_text(array) or not _risky(patterns, array):
        return prepared
    encoded = array.dictionary_encode()
    truths = searched(patterns, encoded.dictionary.to_pylist(), check_timeout)
    fold = all if prepared.kwargs.get("match_on", "any") == "all" and "not" not in kind else any
    image = _image([fold(row) for row in zip(*truths, strict=True)], encoded.indices)
    result_kwargs = {"regex_list": ["1"]} if "regex_list" in prepared.kwargs else {"regex": "1"}
    searched_name = f"found:{fold.__name__}:{name}:{patterns!r}"
    kwargs = {**prepared.kwargs, **result_kwargs, "column": searched_name}
    return replace(prepared, kwargs=kwargs, columns={searched_name: image})


def _require_short(prepared: Prepared) -> None:
    """Reject texts that are too long for a schema's patterns. Raises: ValueError."""
    for array in prepared.columns.values():
        if _is_text(array) and _risky(json_schemas.patterns(prepared.kwargs["json_schema"]), array):
            raise ValueError("the schema's patterns could run forever: the texts are too long or too many")


def _is_text(array: pa.Array) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(array.type) or pa.types.is_large_string(array.type))


def _risky(patterns: Sequence[str], array: pa.Array) -> bool:
    import pyarrow.compute as pc

    longest = pc.max(pc.utf8_length(array)).as_py() or 0
    return any(may_run_away(pattern, longest, len(array)) for pattern in patterns)


def _image(truths: Sequence[bool], places: pa.Array) -> pa.Array:
    import pyarrow as pa

    return pa.array(["1" if truth else "0" for truth in truths], pa.string()).take(places)
