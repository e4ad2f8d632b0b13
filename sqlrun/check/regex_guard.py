"""Columns that checks search by regular expressions, searched where it can be stopped. Shell: processes.

Great Expectations then looks for a `1` in a column of `1` and `0`, which says of each row whether anything was found.
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
    """Return a check's columns as they are, or searched already where its patterns might run away.

    Raises: OutOfTimeError, ValueError.
    """
    if kind == JSON_SCHEMA:
        _require_short(prepared)
    if kind not in KINDS:
        return prepared
    ((name, array),) = prepared.columns.items()
    given = prepared.kwargs.get("regex_list", [prepared.kwargs.get("regex")])
    patterns = [str(pattern) for pattern in cast(Sequence[object], given)]
    if not patterns or not _is_text(array) or not _risky(patterns, array):
        return prepared
    encoded = array.dictionary_encode()
    truths = searched(patterns, encoded.dictionary.to_pylist(), check_timeout)
    fold = all if prepared.kwargs.get("match_on", "any") == "all" and "not" not in kind else any
    image = _image([fold(row) for row in zip(*truths, strict=True)], encoded.indices)
    said = {"regex_list": ["1"]} if "regex_list" in prepared.kwargs else {"regex": "1"}
    searched_name = f"found:{fold.__name__}:{name}:{patterns!r}"
    kwargs = {**prepared.kwargs, **said, "column": searched_name}
    return replace(prepared, kwargs=kwargs, columns={searched_name: image})


def _require_short(prepared: Prepared) -> None:
    """Refuse texts that are too long for a schema's patterns. Raises: ValueError."""
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
