"""YAML values to the analysts' unit tests, checked against the contracts of what they name. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from sqlrun.errors import Place
from sqlrun.model import Expected, Given, Row, UnitTest
from sqlrun.ticks import parse_time
from sqlrun.yaml_values import Reader, did_you_mean, listed, plain

# Inputs, as `ref('x')` or `source('a', 'b')`, with their columns; none where a contract can't be read.
Known = Mapping[str, tuple[str, ...]]
TEST_KEYS = ("name", "model", "description", "as_of", "overrides", "given", "expect")
INPUT = re.compile(r"""(ref|source)\(\s*(['"])(\w+)\2\s*(?:,\s*(['"])(\w+)\4\s*)?\)""")


def unit_tests(reader: Reader, known: Known, models: Collection[str]) -> tuple[UnitTest, ...]:
    """Read `unit_tests:` in dbt's form; `models` are the names that can be tested."""
    found: list[UnitTest] = []
    if not isinstance(reader.root, Mapping):
        return ()
    for item, place in reader.items(reader.root, "unit_tests", "the file"):
        item = reader.mapping(item, place, "a unit test", TEST_KEYS, ("name", "model", "expect"))
        test = _unit_test(reader, item, place, known, models)
        if test.name in {other.name for other in found}:
            message = f"the unit test {test.name} stands twice"
            reader.problem("SR111", reader.value_place(item, "name"), message, "Rename one.")
        found.append(test)
    return tuple(found)


def _unit_test(reader: Reader, item: Any, place: Place, known: Known, models: Collection[str]) -> UnitTest:
    name, model = reader.text(item, "name"), reader.text(item, "model")
    if model and model not in models:
        hint = f"Models: {listed(sorted(models))}.{did_you_mean(model, models)}"
        reader.problem("SR112", reader.value_place(item, "model"), f"there is no model `{model}` to test", hint)
    overrides, values = item.get("overrides"), None
    if overrides is not None:
        overrides = reader.mapping(overrides, reader.value_place(item, "overrides"), "`overrides`", ("vars",))
        values = overrides.get("vars")
        if values is not None and not isinstance(values, Mapping):
            reader.problem("SR103", reader.value_place(overrides, "vars"), "`vars` must be a mapping", "vars: {a: 1}")
            values = None
    expect = item.get("expect")
    if expect is not None:
        expect = reader.mapping(expect, reader.value_place(item, "expect"), "`expect`", ("rows",), ("rows",))
    given = _given(reader, item, known)
    rows = _rows(reader, expect, f"ref('{model}')", known)
    as_of = _as_of(reader, item)
    return UnitTest(
        name, model, given, Expected(rows), place, reader.text(item, "description"), as_of, plain(values or {})
    )


def _given(reader: Reader, item: Any, known: Known) -> tuple[Given, ...]:
    found: list[Given] = []
    for one, place in reader.items(item, "given", "a unit test"):
        one = reader.mapping(one, place, "an input of a unit test", ("input", "rows"), ("input", "rows"))
        text = reader.text(one, "input")
        name = _input(text)
        at = reader.value_place(one, "input")
        if name in {other.input for other in found}:
            reader.problem("SR112", at, f"the input {name} is given twice", "Put the rows together.")
        elif text and name not in known:
            hint = f"Inputs: {listed(known)}.{did_you_mean(name, known)}"
            reader.problem("SR112", at, f"unknown input {text}", hint)
        found.append(Given(name, _rows(reader, one, name, known), place))
    return tuple(found)


def _input(text: str) -> str:
    """Write `ref("x")` and `source('a','b')` in one way.

    >>> _input('source("a","b")')
    "source('a', 'b')"
    """
    found = INPUT.fullmatch(text)
    if not found or (found[1] == "ref") != (found[5] is None):
        return text
    return f"ref('{found[3]}')" if found[1] == "ref" else f"source('{found[3]}', '{found[5]}')"


def _rows(reader: Reader, node: Any, name: str, known: Known) -> tuple[Row, ...]:
    columns = known.get(name, ())
    found = []
    for item, place in reader.items(node, "rows", "a unit test"):
        if not isinstance(item, Mapping):
            reader.problem("SR103", place, "a row must be a mapping of column to value", "{column: value, ...}")
            continue
        for column in item:
            if columns and column not in columns:
                hint = f"{name} has: {', '.join(columns)}.{did_you_mean(column, columns)}"
                reader.problem("SR112", reader.place(item, column), f"{name} has no column `{column}`", hint)
        found.append(plain(item))
    return tuple(found)


def _as_of(reader: Reader, item: Any) -> str:
    text = reader.text(item, "as_of")
    try:
        if text:
            parse_time(text)
    except ValueError:
        hint = 'Write a UTC time: as_of: "2026-01-01 12:00:00"'
        reader.problem("SR112", reader.value_place(item, "as_of"), f"`as_of: {text}` is not a time", hint)
        return ""
    return text
