"""YAML values to sources. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sqlrun.errors import Place
from sqlrun.load import source_changes, source_files
from sqlrun.load.contract import FROM, check_name, columns, unchecked
from sqlrun.load.yaml_reader import Reader, did_you_mean
from sqlrun.project import (
    AVRO,
    BLANK_LINE,
    CSV,
    DELTA,
    DESCRIPTIONS,
    FILTERED,
    JSON,
    KAFKA,
    OUTSIDE_SAMPLE,
    PARQUET,
    VALUE_FORMATS,
    Column,
    DeadLetters,
    Drop,
    Source,
    Topic,
)

GROUP_KEYS = ("name", "description", "tables")
SOURCE_KEYS = (
    "name", "description", "format", "path", "on_schema_change", "if_unreadable", "columns", "topic", "topic_pattern",
    "connection", "value_format", "tombstones", "start", "max_offsets_per_tick", "drop_where", "files", "csv",
    "document", "max_document", "dead_letters", "cdc",
)  # fmt: skip
DROP_KEYS = ("where", "reason")
LETTER_KEYS = ("topic", "connection", "path", "pii")
FORMATS = (JSON, CSV, PARQUET, AVRO, KAFKA, DELTA)
# Keys of sources whose lines land.
OF_LINES = ("on_schema_change", "if_unreadable", "drop_where", "dead_letters")
# Keys that a source of the format has, beside those of all.
OF_FORMAT = {
    JSON: ("path", "cdc", *source_files.OF_JSON, *OF_LINES),
    CSV: ("path", "files", "csv", *OF_LINES),
    PARQUET: ("path", "files", *OF_LINES),
    AVRO: ("path", "files", *OF_LINES),
    KAFKA: (
        "topic", "topic_pattern", "connection", "value_format", "tombstones", "start", "max_offsets_per_tick", "cdc",
        *OF_LINES,
    ),
    DELTA: ("path",),
}  # fmt: skip
# What happens with fields that differ from the declared ones, in dbt's words.
SCHEMA_CHANGES = ("ignore", "append_new_columns", "fail", "sync")
# What a column of a Kafka source may be taken from, each with the types that it can have.
ATTACHED = {
    "key": (), "value": ("string",), "headers": ("array<struct<key:string,value:string>>",), "topic": ("string",),
    "partition": ("int", "bigint"), "offset": ("bigint",), "timestamp": ("timestamp",), "tombstone": ("boolean",),
}  # fmt: skip
# Reasons of lines that are left out without a rule.
OWN_REASONS = (FILTERED, OUTSIDE_SAMPLE, BLANK_LINE)
HEADER = "header:"
NESTED = ("array<", "struct<", "map<")
# Key of a source's column: whether its fields and elements may be NULL.
INSIDE = "nulls_inside"
NOT_NULL = re.compile(r"(`(?:[^`]|``)*`|\w+<|>| not null(?=[,>]))")
# What a tick does if a source can't be read.
UNREADABLE = ("fail", "skip")
NAME_ALL = "List the columns to read, with their types."
MOST_OFFSETS = 1_000_000_000


def sources(reader: Reader) -> tuple[Source, ...]:
    """Return the sources of a `_sources.yml`."""
    found = []
    root = reader.mapping(reader.root, Place(reader.file), "a sources file", ("version", "sources"), ("sources",))
    for group, place in reader.items(root, "sources", "the file"):
        group = reader.mapping(group, place, "a source", GROUP_KEYS, ("name", "tables"))
        check_name(reader, group, "a source")
        for table, at in reader.items(group, "tables", "a source"):
            found.append(_source(reader, reader.text(group, "name"), table, at))
    return tuple(found)


def _source(reader: Reader, group: str, table: Any, place: Place) -> Source:
    table = reader.mapping(table, place, "a source's table", SOURCE_KEYS, ("name", "columns"))
    check_name(reader, table, "a source's table")
    kind = reader.choice(table, "format", FORMATS, JSON)
    name = reader.text(table, "name")
    what = f"source {group}.{name}"
    _require_keys(reader, table, place, kind, what)
    fields = _with_inside(reader, table, kind, columns(reader, table, what, more_keys=(FROM, INSIDE)))
    unchecked(reader, fields, "a source")
    if table.get("columns") == []:
        reader.problem("SR104", reader.place(table, "columns"), f"source `{group}.{name}` has no columns", NAME_ALL)
    _check_attached(reader, table, kind, fields)
    return Source(
        group=group,
        name=name,
        format=kind,
        path=reader.text(table, "path") if kind != KAFKA else "",
        columns=fields,
        description=reader.words(table),
        place=place,
        if_unreadable=reader.choice(table, "if_unreadable", UNREADABLE, UNREADABLE[0]),
        on_schema_change=reader.choice(table, "on_schema_change", SCHEMA_CHANGES, SCHEMA_CHANGES[0]),
        topic=_topic(reader, table) if kind == KAFKA else None,
        drop_where=tuple(_drops(reader, table)),
        files=source_files.files(reader, table, kind, fields) if kind != KAFKA else None,
        dead_letters=_letters(reader, table),
        changes=source_changes.changes(reader, table, kind, fields),
    )


def _drops(reader: Reader, table: Any) -> Iterator[Drop]:
    """Yield the drop rules of a source; the conditions are checked by `landing.drops`."""
    reasons = dict.fromkeys(OWN_REASONS, "is sqlrun's own")
    for node, place in reader.items(table, "drop_where", "a source"):
        rule = reader.mapping(node, place, "a drop rule", DROP_KEYS, DROP_KEYS)
        where, reason = (reader.words(rule, key).strip() for key in DROP_KEYS)
        if not where or not reason:
            continue
        if reason in reasons:
            message = f"the reason `{reason}` of a drop rule {reasons[reason]}"
            reader.problem("SR110", reader.value_place(rule, "reason"), message, "Give each rule a reason of its own.")
            continue
        reasons[reason] = "occurs twice"
        yield Drop(where, reason, _place_of(reader, rule, where))


def _letters(reader: Reader, table: Any) -> DeadLetters | None:
    """Return where a source's quarantined lines are sent; None if nowhere."""
    if table.get("dead_letters") is None:
        return None
    place = reader.place(table, "dead_letters")
    at = reader.value_place(table, "dead_letters")
    node = reader.mapping(table["dead_letters"], at, "`dead_letters`", LETTER_KEYS)
    topic, path = reader.text(node, "topic"), reader.text(node, "path")
    if bool(topic) == bool(path):
        hint = "Write `dead_letters: {topic: orders.dead}`, or `dead_letters: {path: data/dead}`."
        reader.problem("SR104", place, "`dead_letters` must have either `topic` or `path`", hint)
        return None
    if path and node.get("connection") is not None:
        message = "`connection` has no effect beside `path`"
        reader.problem("SR102", reader.place(node, "connection"), message, "Remove it.")
    connection = reader.text(node, "connection", DeadLetters(place).connection)
    return DeadLetters(place, topic, connection, path, reader.choice(node, "pii", ("true", "false"), "false") == "true")


def _place_of(reader: Reader, rule: Any, where: str) -> Place:
    """Return the place of a condition's first letter, inexact if its text isn't written like this in one line."""
    place = reader.value_place(rule, "where")
    line = reader.lines[place.line - 1] if place.line <= len(reader.lines) else ""
    found = line.find(where, place.column - 1)
    if found < 0 or line[place.column - 1 : found].strip("'\" "):
        return replace(place, exact=False)
    return replace(place, column=found + 1)


def _require_keys(reader: Reader, table: Any, place: Place, kind: str, what: str) -> None:
    """Record a problem for each key of another format, and for the place of the lines if it is missing."""
    for key in table:
        others = [other for other in FORMATS if key in OF_FORMAT[other]]
        if others and kind not in others:
            hint = f"Remove it, or set `format: {others[0]}`."
            reader.problem("SR102", reader.place(table, key), f"`{key}` is not a key of `format: {kind}`", hint)
    if kind != KAFKA and table.get("path") is None:
        reader.problem("SR104", place, "a source's table lacks `path`", "Add `path:`.")
    if kind == KAFKA and (table.get("topic") is None) == (table.get("topic_pattern") is None):
        message = f"{what} must have `topic` or `topic_pattern`"
        reader.problem("SR104", place, message, "Add `topic: orders`, or `topic_pattern: orders-.*`.")


def _topic(reader: Reader, table: Any) -> Topic:
    default = Topic()
    pattern = reader.text(table, "topic_pattern")
    if pattern:
        _check_pattern(reader, table, pattern)
    return Topic(
        topic=reader.text(table, "topic"),
        pattern=pattern,
        connection=reader.text(table, "connection", default.connection),
        value_format=reader.choice(table, "value_format", VALUE_FORMATS, default.value_format),
        # A tombstone follows the change event that says the same.
        tombstones=reader.choice(
            table, "tombstones", ("rows", "drop"), default.tombstones if table.get("cdc") is None else "drop"
        ),
        start=reader.choice(table, "start", ("earliest", "latest"), default.start),
        max_offsets_per_tick=_most_offsets(reader, table),
    )


def _most_offsets(reader: Reader, table: Any) -> int:
    value = table.get("max_offsets_per_tick")
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_OFFSETS:
        return value
    place, written = reader.value_place(table, "max_offsets_per_tick"), reader.text(table, "max_offsets_per_tick")
    message = f"invalid `max_offsets_per_tick`: `{written}`"
    reader.problem("SR110", place, message, f"Write a whole number from 1 to {MOST_OFFSETS:,}, without commas.")
    return 0


def _check_pattern(reader: Reader, table: Any, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        place = reader.value_place(table, "topic_pattern")
        message = f"`topic_pattern` is not a regular expression: {error}"
        reader.problem("SR110", place, message, "Write a regular expression that matches whole names of topics.")


def _with_inside(reader: Reader, table: Any, kind: str, fields: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the columns with their types inside: which of their fields may be NULL."""
    nodes = {reader.text(node, "name"): node for node, _ in reader.items(table, "columns", "a source")}
    found = []
    for column in fields:
        node, plain = nodes[column.name], _without_not_null(column.type)
        inside = reader.flag(node, INSIDE, False)
        if not inside and plain != column.type:
            message = f"`not null` inside of the type of `{column.name}` has no effect without `{INSIDE}: true`"
            hint = f"Every field is required. Add `{INSIDE}: true` to require only fields with `not null`."
            reader.problem("SR110", reader.value_place(node, "data_type"), message, hint)
        if inside and (kind == DELTA or not plain.startswith(NESTED)):
            why = "a Delta table" if kind == DELTA else f"the type {plain}"
            reader.problem("SR102", reader.place(node, INSIDE), f"`{INSIDE}` has no effect on {why}", "Remove it.")
        found.append(replace(column, type=plain, inside=column.type if inside else ""))
    return tuple(found)


def _without_not_null(kind: str) -> str:
    """Return a type without the `not null` behind fields; it is no part of the type of a value.

    >>> _without_not_null("array<struct<a:int not null,b:string>>"), _without_not_null("array<int not null>")
    ('array<struct<a:int,b:string>>', 'array<int not null>')
    """
    found, around = list[str](), list[str]()
    for part in NOT_NULL.split(kind):
        if part == " not null" and around[-1:] == ["struct<"]:
            continue
        if part.endswith("<"):
            around.append(part)
        elif part == ">" and around:
            around.pop()
        found.append(part)
    return "".join(found)


def _check_attached(reader: Reader, table: Any, kind: str, fields: tuple[Column, ...]) -> None:
    """Record a problem for each `from` that the format doesn't have, or that doesn't fit the column's type."""
    nodes = {reader.text(node, "name"): node for node, _ in reader.items(table, "columns", "a source")}
    known = {**(ATTACHED if kind == KAFKA else source_files.ATTACHED)}
    if table.get("cdc") is not None:
        known |= {**DESCRIPTIONS, **source_changes.of_old_keys(reader, table)}
    for column in fields:
        wanted = column.comes_from
        if not wanted or (kind == KAFKA and wanted.startswith(HEADER) and wanted != HEADER):
            continue
        place, types = reader.value_place(nodes[column.name], FROM), known.get(wanted)
        if types is None:
            names = ", ".join((*known, *[f"{HEADER}NAME"] * (kind == KAFKA)))
            hint = f"Choose one of: {names}.{did_you_mean(wanted, known)}"
            reader.problem("SR110", place, f"invalid `from`: `{wanted}`", hint)
        elif column.type not in types if types else kind != KAFKA and column.type.startswith(NESTED):
            message = f"the column `{column.name}` from `{wanted}` can't be of type {column.type}"
            reader.problem("SR110", place, message, f"Set `data_type: {(types or ('string',))[0]}`.")
