"""`then:` of a unit test: the ticks that follow, their changes and expected rows. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlrun.load.yaml_fast import Mapped
from sqlrun.load.yaml_reader import Reader, did_you_mean, listed
from sqlrun.project import Change, Expected, Row, Step
from sqlrun.runtime.clock import parse_time
from sqlrun.test_definitions.declared_rows import Content, content, dict_rows, listed_rows, raw_lines
from sqlrun.test_definitions.names import Input, Known, input_name, no_lines
from sqlrun.test_definitions.passages import Table

EXPECT_KEYS = ("rows", "format", "fixture", "columns", "quarantined")
STEP_KEYS = ("as_of", "changes", "expect")
CHANGE_KEYS = ("input", "format", "came", "left", "updated", "lines")
THIS = (
    "Remove it: no model reads itself. Give the inputs their earlier rows, and write under "
    "`then:` the changes of the next tick."
)


def steps(reader: Reader, item: Any, before: str, known: Known, table: Table, quarantine: Table) -> tuple[Step, ...]:
    """Return the steps under `then:`; `before` is the test's own time, `quarantine` the model's quarantine."""
    found = []
    if isinstance(item.get("then"), list) and not item["then"]:
        reader.problem("SR104", reader.place(item, "then"), "`then` has no steps", "Begin each step with `- `.")
    for node, place in reader.items(item, "then", "a unit test"):
        node = reader.mapping(node, place, "a step", STEP_KEYS)
        as_of = time_of(reader, node)
        if as_of and before and parse_time(as_of) < parse_time(before):
            hint = "Use the same time or a later one. For late rows, give the rows an early time."
            message = f"the as_of {as_of} is earlier than {before}, the as_of of the previous step"
            reader.problem("SR121", reader.value_place(node, "as_of"), message, hint)
        before = as_of or before
        made = Step(
            place, as_of, changes(reader, node, known), expected(reader, node, table, quarantine, known, step=True)
        )
        if not as_of and not made.changes and node.get("expect") is None:
            hint = "Add `as_of`, `changes` or `expect`."
            reader.problem("SR121", place, "this step is empty", hint)
        found.append(made)
    return tuple(found)


def time_of(reader: Reader, item: Any) -> str:
    """Return `as_of` as UTC text; "" if it is missing or not a time."""
    text = reader.text(item, "as_of")
    try:
        if text:
            parse_time(text)
    except ValueError:
        hint = 'Write a UTC time: as_of: "2026-01-01 12:00:00"'
        reader.problem("SR112", reader.value_place(item, "as_of"), f"`as_of: {text}` is not a valid time", hint)
        return ""
    return text


def known_input(reader: Reader, node: Any, known: Collection[str], before: Collection[str]) -> str:
    """Return `input` in its canonical form; an unknown input, or one in `before`, is a problem."""
    text = reader.text(node, "input")
    name, at = input_name(text), reader.value_place(node, "input")
    if name in before:
        reader.problem("SR112", at, f"duplicate input {name}", "Move all rows into one input.")
    elif name == "this":
        reader.problem("SR121", at, "a unit test can't use `this` as an input", THIS)
    elif text and name not in known:
        hint = f"Inputs: {listed(known)}.{did_you_mean(name, known)}"
        reader.problem("SR112", at, f"unknown input {text}", hint)
    return name


def changes(reader: Reader, node: Any, known: Known) -> tuple[Change, ...]:
    """Return the changes of a step: rows that are added, removed and updated."""
    found: list[Change] = []
    for one, place in reader.items(node, "changes", "a step"):
        one = reader.mapping(one, place, "a change", CHANGE_KEYS, ("input",))
        name = known_input(reader, one, known.inputs, {other.input for other in found})
        noun = known.inputs.get(name, Input("model", ()))
        table = Table.of(name, noun.columns)
        came, left = listed_rows(reader, one, "came", table), listed_rows(reader, one, "left", table)
        updated = listed_rows(reader, one, "updated", table)
        lines = raw_lines(reader, one, "lines") if one.get("lines") is not None else None
        if all(one.get(key) is None for key in CHANGE_KEYS[2:]):
            hint = "Add `came`, `left`, `updated` or `lines`."
            reader.problem("SR121", place, "this change is empty", hint)
        _check_source_change(reader, one, name, noun)
        _check_grain(reader, one, name, noun, updated)
        found.append(Change(name, place, came or (), left or (), updated or (), lines))
    return tuple(found)


def _check_source_change(reader: Reader, one: Any, name: str, noun: Input) -> None:
    """Report changes that are impossible for a source, and raw lines of another input."""
    if noun.kind == "source":
        for key in ("left", "updated"):
            if one.get(key) is not None:
                hint = "Add a later line that corrects the earlier one."
                reader.problem(
                    "SR121", reader.place(one, key), f"rows can't leave {name}: sources are append-only", hint
                )
    elif one.get("lines") is not None:
        hint = "Use rows here, or give the lines to the source of the landing model."
        reader.problem("SR121", reader.place(one, "lines"), f"`lines` for {name}, which is {no_lines(noun)}", hint)
    if noun.kind == "source" and one.get("lines") is not None and one.get("came") is not None:
        hint = "Use either rows or raw lines for all of the source's input."
        reader.problem("SR121", reader.place(one, "lines"), "both rows and raw lines for one source", hint)


def _check_grain(reader: Reader, one: Any, name: str, noun: Input, updated: tuple[Row, ...] | None) -> None:
    if not updated or noun.kind == "source" or not noun.columns:
        return
    at = reader.place(one, "updated")
    if not noun.grain:
        hint = "Use `left` for the old row and `came` for the new one."
        reader.problem("SR121", at, f"`updated` requires a grain, but {name} has none", hint)
    for number, row in enumerate(updated):
        lacks = [column for column in noun.grain if column not in row]
        if lacks:
            node = one["updated"]
            place = reader.place(node, number) if isinstance(node, list) and number < len(node) else at
            message = f"the updated row lacks {', '.join(f'`{one}`' for one in lacks)}"
            reader.problem("SR121", place, message, f"Add the grain of {name}: {', '.join(noun.grain)}.")


def expected(reader: Reader, item: Any, table: Table, quarantine: Table, known: Known, *, step: bool) -> Expected:
    """Return `expect`; in a step it may also have the changes of the table."""
    node = item.get("expect")
    if node is None:
        return Expected()
    keys = (*EXPECT_KEYS, "changes") if step else EXPECT_KEYS
    if not isinstance(reader.mapping(node, reader.value_place(item, "expect"), "`expect`", keys), Mapped):
        return Expected()
    kinds = _types(reader, node, table)
    table = table if table.types else Table(table.name, kinds)
    found = content(reader, node, table, known)
    came, left = _change(reader, node, table) if step else (None, None)
    quarantined = dict_rows(reader, node, "quarantined", quarantine) if node.get("quarantined") is not None else None
    if found == Content() and came is None and quarantined is None:
        at = reader.value_place(item, "expect")
        reader.problem("SR104", at, "`expect` lacks `rows`", "Add `rows:`, or `rows: []` for an empty result.")
    return Expected(found.rows, found.sql, came, left, quarantined, kinds)


def _types(reader: Reader, node: Any, table: Table) -> Mapping[str, str]:
    """Return the types that a test declares for a CTE or a macro."""
    if node.get("columns") is not None and table.types:
        hint = "Remove `columns`. Only tests of a CTE or a macro need it."
        reader.problem("SR121", reader.place(node, "columns"), f"`columns` repeats the contract of {table.name}", hint)
        return {}
    return types_of(reader, node, "columns")


def types_of(reader: Reader, node: Any, key: str) -> Mapping[str, str]:
    """Return a mapping from columns to Spark SQL types."""
    from sqlrun.parse.type_check import declared_type

    value = node.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        hint = f"Write a mapping: {key}: {{id: int, paid_at: timestamp}}"
        reader.problem("SR103", reader.value_place(node, key), f"`{key}` must be a mapping of columns to types", hint)
        return {}
    found = {}
    for name in value:
        kind = " ".join(reader.text(value, name).lower().split())
        if declared_type(kind) is None:
            hint = "Use a Spark SQL type: string, int, bigint, decimal(18,2), date, timestamp, boolean, array<...>."
            at = reader.value_place(value, name)
            reader.problem("SR309", at, f"unknown type `{kind}` of column `{name}`", hint)
        else:
            found[name] = kind
    return found


def _change(reader: Reader, node: Any, table: Table) -> tuple[tuple[Row, ...] | None, tuple[Row, ...] | None]:
    """Return the rows added to the model's table and the rows removed from it; a missing key means none."""
    change = node.get("changes")
    if change is None:
        return None, None
    place = reader.value_place(node, "changes")
    if not isinstance(change, Mapping):
        reader.problem(
            "SR103", place, "`changes` must be a mapping", "Write a mapping: changes: {came: [...], left: [...]}"
        )
        return None, None
    change = reader.mapping(change, place, "`changes`", ("format", "came", "left"))
    return listed_rows(reader, change, "came", table) or (), listed_rows(reader, change, "left", table) or ()
