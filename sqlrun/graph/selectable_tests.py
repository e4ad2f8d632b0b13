"""Checks and unit tests in selectors: dbt's methods `test_name:`, `test_type:` and `unit_test:`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from sqlrun.errors import UsageError
from sqlrun.load.yaml_reader import did_you_mean

Kind = Literal["generic", "singular", "unit"]
METHODS = ("test_name", "test_type", "unit_test")
# dbt's types of tests: a test with arguments, one that is a query, one of a query with rows.
TYPES: Mapping[str, tuple[Kind, ...]] = {
    "generic": ("generic",),
    "singular": ("singular",),
    "data": ("generic", "singular"),
    "unit": ("unit",),
}
BETWEEN = "::"


@dataclass(frozen=True, slots=True)
class SelectableTest:
    """A check or a unit test. A macro's unit test has no `model`.

    `names` are what `test_name:` compares: that of the generic test, or the test's own. `key` is `MODEL::test` of a
    unit test, "" of a check.
    """

    model: str
    kind: Kind
    names: tuple[str, ...]
    file: str = ""
    key: str = ""
    tags: tuple[str, ...] = ()


Tests = Mapping[str, SelectableTest]


def matched(tests: Tests | None, text: str) -> set[str]:
    """Return the ids of the tests that `METHOD:value` or `MODEL::test` selects. A type may select none.

    Raises: UsageError for an unknown name or type, and if the command has no tests.
    """
    if tests is None:
        raise UsageError(
            f"`{text}` selects tests, and this command selects tables. `sqlrun check` evaluates the selected checks, "
            "`sqlrun test` runs unit tests, `sqlrun ls` lists both. `sqlrun build` takes --exclude test_type:unit."
        )
    method, _, value = text.partition(":")
    if method not in METHODS:
        value = text
    if method == "test_type":
        if value not in TYPES:
            raise UsageError(f"unknown value of `{text}`. Values: {', '.join(TYPES)}.{did_you_mean(value, TYPES)}")
        return {name for name, test in tests.items() if test.kind in TYPES[value]}
    of_unit = method != "test_name"
    known = {
        name: (test.key,) if BETWEEN in value else test.names
        for name, test in tests.items()
        if test.kind == "unit" or not of_unit
    }
    found = {name for name, names in known.items() if any(fnmatchcase(one, value) for one in names)}
    if not found:
        are_units = of_unit or all(test.kind == "unit" for test in tests.values())
        near = did_you_mean(value, {one for names in known.values() for one in names})
        listed = f" `sqlrun ls --select test_type:{'unit' if are_units else 'data'}` lists them."
        raise UsageError(f"unknown {'unit test' if are_units else 'check'} `{value}`.{near or listed}")
    return found


def of_nodes(tests: Tests | None, nodes: set[str]) -> set[str]:
    """Return the ids of the tests of models."""
    return {name for name, test in (tests or {}).items() if test.model in nodes}


def tagged(tests: Tests | None, tag: str) -> set[str]:
    """Return the ids of the tests that have a tag of their own."""
    return {name for name, test in (tests or {}).items() if any(fnmatchcase(one, tag) for one in test.tags)}
