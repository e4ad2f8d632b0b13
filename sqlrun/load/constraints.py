"""A column's `constraints:` and `data_tests:`, in dbt's words, to checks. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sqlrun.errors import Place
from sqlrun.load.yaml_reader import Reader, plain
from sqlrun.project import CRITICAL, WARN, WARNING, Expectation, Said, follows

ACCEPTED = "expect_column_values_to_be_in_set"
# Not one of Great Expectations': it reads two tables.
RELATIONSHIPS = "relationships"
# By dbt's words.
SEVERITIES = {"error": CRITICAL, "warn": WARNING}
# Words with arguments, and the arguments that each requires.
_TESTS: Mapping[str, tuple[str, ...]] = {"accepted_values": ("values",), "relationships": ("to", "field")}
ARGUMENTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "constraints": {"foreign_key": ("to", "to_columns")},
    "data_tests": _TESTS,
    "tests": _TESTS,  # dbt's older name
}
PLAIN = ("not_null", "unique", "primary_key")
KNOWN = {
    "constraints": "not_null, unique and foreign_key",
    **dict.fromkeys(("data_tests", "tests"), "not_null, unique, accepted_values and relationships"),
}
UNIQUE = ("unique", "primary_key")
# Keys with a meaning for stored rows alone, which a view would silently ignore.
OF_TABLES = ("grain", "repeats", "event_time", "freshness")
CONFIG_OF_TABLES = (
    "partition_by", "at_worst", "max_read_amplification", "anomalies", "checks", "readable_by", "updated_at",
    "check_cols", "hard_deletes",
)  # fmt: skip
REF = re.compile(r"""ref\(\s*(['"])(\w+)\1\s*\)""")


def promises(
    reader: Reader, item: Any, column: str, grain: tuple[str, ...]
) -> tuple[frozenset[str], tuple[Expectation, ...]]:
    """Return the promises of one column: words without arguments, and the checks of all others.

    A promise that sqlrun can't check is a problem; none is ignored silently.
    """
    words: set[str] = set()
    checks: list[Expectation] = []
    for key in ARGUMENTS:
        for entry, place in _entries(reader, item, key, column):
            word, arguments = _split(reader, entry, place, key)
            if word in ARGUMENTS[key]:
                checks += _check(reader, column, word, arguments, place, ARGUMENTS[key][word])
                continue
            if word in PLAIN and _plain(reader, word, arguments, place, key) == WARNING and word == "not_null":
                checks.append(_never_null(column, place))
                continue
            if word in UNIQUE and [name.lower() for name in grain] != [column.lower()]:
                why = f"contradicts the grain ({', '.join(grain)})" if grain else "isn't the only unique column"
                hint = (
                    f"Set `grain: [{column}]` above the columns: the grain makes rows unique. Check others by "
                    "expect_column_values_to_be_unique in expectations/."
                )
                reader.problem("SR110", place, f"`{word}` of column `{column}` {why}", hint)
            elif word not in PLAIN:
                hint = f"Use {KNOWN[key]} here. Write other checks in expectations/, under the model's path."
                reader.problem("SR110", place, f"`{word}` isn't supported in `{key}` of a contract", hint)
            words.add("not_null" if word == "primary_key" else word)
    return frozenset(words), tuple(checks)


def unique_columns(reader: Reader, node: Any) -> tuple[str, ...]:
    """Return the columns of a contract that a constraint or a test says are unique."""
    listed, found = node.get("columns"), []
    for item in listed if isinstance(listed, list) else ():
        entries = [entry for key in ARGUMENTS for entry in _listed(item, key)]
        words = {_word(entry) for entry in entries}
        if words & set(UNIQUE) and isinstance(item, Mapping):
            found.append(reader.text(item, "name"))
    return tuple(found)


def _listed(item: Any, key: str) -> list[Any]:
    value = item.get(key) if isinstance(item, Mapping) else None
    return value if isinstance(value, list) else [value] if isinstance(value, str) else []


def _word(entry: Any) -> str:
    """Return the word of `{type: x, ...}`, `{x: {...}}` or the word alone."""
    return str(entry.get("type", next(iter(entry), ""))) if isinstance(entry, Mapping) else str(entry)


def of_tables(reader: Reader, node: Any) -> tuple[Said, ...]:
    """Return the parts of a contract that apply to tables alone, in the order of its file."""
    found = [Said(f"`{key}`", reader.place(node, key)) for key in OF_TABLES if node.get(key)]
    config = node.get("config")
    for key in CONFIG_OF_TABLES if isinstance(config, Mapping) else ():
        if config.get(key) is not None:
            found.append(Said(f"`{key}`", reader.place(config, key)))
    listed = node.get("columns")
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, Mapping):
            found += _of_column(reader, item)
    return tuple(sorted(found, key=lambda said: said.place))


def _of_column(reader: Reader, item: Any) -> Iterator[Said]:
    name = item.get("name")
    if item.get("nulls") is False:
        yield Said(f"`nulls: false` of column `{name}`", reader.place(item, "nulls"))
    for key in ARGUMENTS:
        value = item.get(key)
        if isinstance(value, str):
            yield Said(f"`{value}` of column `{name}`", reader.value_place(item, key))
        for index, entry in enumerate(value if isinstance(value, list) else ()):
            yield Said(f"`{_word(entry)}` of column `{name}`", reader.place(value, index))


def _entries(reader: Reader, item: Any, key: str, column: str) -> list[tuple[Any, Place]]:
    if isinstance(item.get(key), str):
        return [(item[key], reader.value_place(item, key))]
    return reader.items(item, key, f"column `{column}`")


def _split(reader: Reader, entry: Any, place: Place, key: str) -> tuple[str, Any]:
    """Return an entry's word and its arguments, from `{type: x, ...}`, `{x: {...}}` or the word alone."""
    if not isinstance(entry, Mapping):
        return str(entry), {}
    if key == "constraints":
        word = reader.text(entry, "type")
        more = ARGUMENTS[key].get(word, ())
        return word, reader.mapping(entry, place, "a constraint", ("type", "name", *more), ("type",))
    word = str(next(iter(entry), ""))
    for more in list(entry)[1:]:
        hint = f"Begin a new item with `- {more}:`, or indent `{more}:` below `{word}:`."
        reader.problem("SR110", reader.place(entry, more), f"`{more}` and `{word}` are in the same list item", hint)
    return word, entry.get(word) or {}


def _plain(reader: Reader, word: str, arguments: Any, place: Place, key: str) -> str:
    """Return the severity of a word without arguments, the only setting that it can have."""
    if key == "constraints" or not arguments:
        return CRITICAL
    known = ("name", "description", "config", "severity")
    severity = _severity(reader, reader.mapping(arguments, place, f"`{word}`", known))
    if word == "unique" and severity != CRITICAL:
        hint = "Remove the severity, or write expect_column_values_to_be_unique with a severity in expectations/."
        reader.problem("SR110", place, "`unique` is part of the grain and can't be a warning", hint)
    return severity


def _never_null(column: str, place: Place) -> Expectation:
    what = f"{column} is never null"
    return Expectation("expect_column_values_to_not_be_null", {"column": column}, WARNING, WARN, what, place)


def _check(
    reader: Reader, column: str, word: str, arguments: Any, place: Place, needed: tuple[str, ...]
) -> Iterator[Expectation]:
    """Yield the check; nothing if an argument is missing or malformed, which is recorded as a problem."""
    severity = CRITICAL
    if word != "foreign_key":
        # dbt has arguments beside each other or, since a later version, under `arguments:`.
        inner = arguments.get("arguments") if isinstance(arguments, Mapping) else None
        known = ("arguments",) if inner is not None else needed
        reader.mapping(arguments, place, f"`{word}`", (*known, "name", "description", "config", "severity"), known)
        severity = _severity(reader, arguments)
    if word != "foreign_key" and inner is not None:
        arguments = reader.mapping(inner, reader.value_place(arguments, "arguments"), f"`{word}`", needed, needed)
    elif word == "foreign_key":
        reader.mapping(arguments, place, "`foreign_key`", ("type", "name", *needed), needed)
    if not isinstance(arguments, Mapping) or any(arguments.get(name) is None for name in needed):
        return
    on_fail = follows(severity)
    if word == "accepted_values":
        values = plain(arguments["values"])
        if not isinstance(values, list) or not values:
            at = reader.value_place(arguments, "values")
            reader.problem(
                "SR103",
                at,
                "`values` must be a list with at least one value",
                "Write a list: values: [placed, delivered]",
            )
            return
        what = f"{column} has one of the accepted values"
        yield Expectation(ACCEPTED, {"column": column, "value_set": values}, severity, on_fail, what, place)
        return
    table, field = _target(reader, arguments, "to_columns" if word == "foreign_key" else "field")
    if table and field:
        what = f"each {column} exists in {table}.{field}"
        yield Expectation(
            RELATIONSHIPS, {"column": column, "to": table, "field": field}, severity, on_fail, what, place
        )


def _severity(reader: Reader, arguments: Any) -> str:
    """Return dbt's severity, from `config:` or beside the arguments."""
    if not isinstance(arguments, Mapping):
        return CRITICAL
    where = arguments
    if arguments.get("config") is not None:
        at = reader.value_place(arguments, "config")
        where = reader.mapping(arguments["config"], at, "`config`", ("severity",))
    return SEVERITIES[reader.choice(where, "severity", tuple(SEVERITIES), "error")]


def _target(reader: Reader, arguments: Any, key: str) -> tuple[str, str]:
    """Return the table of `to: ref('x')` and the one column that it names."""
    text, fields = reader.text(arguments, "to"), reader.texts(arguments, key)
    found = REF.fullmatch(text)
    if found is None:
        reader.problem(
            "SR110", reader.value_place(arguments, "to"), f"invalid `to`: `{text}`", "Write a ref: to: ref('customers')"
        )
    if len(fields) != 1:
        message = f"`{key}` must name exactly one column"
        reader.problem("SR110", reader.value_place(arguments, key), message, f"Name one column: {key}: customer_id")
    return found[2] if found else "", fields[0] if len(fields) == 1 else ""
