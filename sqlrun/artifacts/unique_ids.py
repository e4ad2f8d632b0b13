"""The ids, names and times of dbt's artifacts. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from sqlrun.project import Exposure, Source, UnitTest
from sqlrun.version import __version__

# Readers compare it with versions of dbt: the artifacts have the form that this one writes. Behind + is sqlrun's own.
DBT_VERSION = f"1.12.0+sqlrun.{__version__}"
# Names of dbt's own tests, and of the one in dbt_utils, by the expectations that mean the same.
TESTS = {
    "expect_column_values_to_not_be_null": "not_null",
    "expect_column_values_to_be_unique": "unique",
    "expect_column_values_to_be_in_set": "accepted_values",
    "expect_compound_columns_to_be_unique": "unique_combination_of_columns",
}
# A model has at most one of these for the same columns: other checks may differ in their arguments alone.
ALONE = frozenset(TESTS) - {"expect_column_values_to_be_in_set"}
# Characters of a check's id that dbt's id of the test has, and its name.
HASH, SHORT = 10, 6


def table(project: str, name: str, *, is_seed: bool) -> str:
    """Return the id of a model or a seed."""
    return f"{'seed' if is_seed else 'model'}.{project}.{name}"


def source(project: str, one: Source) -> str:
    """Return the id of a source."""
    return f"source.{project}.{one.group}.{one.name}"


def macro(project: str, name: str) -> str:
    """Return the id of a macro."""
    return f"macro.{project}.{name}"


def exposure(project: str, one: Exposure) -> str:
    """Return the id of an exposure."""
    return f"exposure.{project}.{_word(one.name)}"


def unit_test(project: str, one: UnitTest) -> str:
    """Return the id of a unit test."""
    return f"unit_test.{project}.{one.model}.{_word(one.name)}"


def test_name(of: str, type_: str, columns: Sequence[str], check_id: str) -> str:
    """Return the name of a check of a model, as dbt names tests: each has its own.

    >>> test_name("orders", "expect_column_values_to_not_be_null", ["order_id"], "f81f8a0b1929b6a6")
    'not_null_orders_order_id'
    >>> test_name("orders", "expect_column_values_to_be_between", ["amount"], "0a1b2c3d4e5f6071")
    'expect_column_values_to_be_between_orders_amount_0a1b2c'
    """
    name = "_".join([TESTS.get(type_, _word(type_)), of, *map(_word, columns)])
    return name if type_ in ALONE else f"{name}_{check_id[:SHORT]}"


def test(project: str, of: str, type_: str, columns: Sequence[str], check_id: str) -> str:
    """Return the id of a check of a model. It stays the same as long as the check's `identity` does.

    >>> test("shop", "orders", "expect_column_values_to_be_unique", ["id"], "f81f8a0b1929b6a6")
    'test.shop.unique_orders_id.f81f8a0b19'
    """
    return f"test.{project}.{test_name(of, type_, columns, check_id)}.{check_id[:HASH]}"


def project_id(project: str) -> str:
    """Return dbt's id of a project: the hash of its name."""
    return hashlib.md5(project.encode(), usedforsecurity=False).hexdigest()


def moment(at: datetime) -> str:
    """Return a time in dbt's format: UTC with microseconds."""
    return at.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def head(schema: str, at: datetime, invocation: str, started_at: datetime | None = None) -> dict[str, Any]:
    """Return what each artifact says about itself: its schema, the time of writing, and the run of the command."""
    return {
        "dbt_schema_version": schema,
        "dbt_version": DBT_VERSION,
        "generated_at": moment(at),
        "invocation_id": invocation,
        "invocation_started_at": moment(started_at or at),
        "env": {},
    }


def _word(text: str) -> str:
    """Return a text without the characters that separate the parts of an id."""
    return re.sub(r"\W+", "_", text)
