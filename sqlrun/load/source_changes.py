"""YAML values to the change events of a source. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlrun.load.yaml_reader import Reader, spelled
from sqlrun.project import DEBEZIUM, KAFKA, MAXWELL, OLD, TIME_UNITS, Changes, Column

CDC_KEYS = ("format", "key", "table", "decimals", "times", "transactions")
FORMATS = (DEBEZIUM, MAXWELL)
# Keys that only events of Debezium need.
OF_DEBEZIUM = ("decimals", "times", "transactions")
DECIMALS = ("text", "bytes")
# Formats of a topic's values that change events are written in.
VALUES = ("json", "avro")


def changes(reader: Reader, table: Any, kind: str, columns: tuple[Column, ...]) -> Changes | None:
    """Return how the lines of a source are change events; None if they aren't."""
    if table.get("cdc") is None:
        return None
    at = reader.value_place(table, "cdc")
    node = reader.mapping(table["cdc"], at, "`cdc`", CDC_KEYS, ("format", "key"))
    names = {column.name for column in columns if not column.comes_from}
    key = tuple(spelled(name, names) for name in reader.texts(node, "key"))
    if node.get("key") == []:
        reader.problem("SR104", reader.place(node, "key"), "`cdc` has no key", "List the columns of the primary key.")
    for name in key:
        if name not in names:
            message = f"the key column `{name}` isn't a column of the source"
            reader.problem("SR110", reader.value_place(node, "key"), message, "List it under `columns`.")
    if kind == KAFKA and reader.text(table, "value_format", VALUES[0]) not in VALUES:
        message = "`cdc` needs `value_format: json` or `avro`"
        reader.problem("SR110", reader.value_place(table, "value_format"), message, "Change events are objects.")
    for word in ("document", "max_document"):
        if word in table:
            hint = "Change events are one a line: remove it."
            reader.problem("SR102", reader.place(table, word), f"`{word}` has no effect beside `cdc`", hint)
    form = reader.choice(node, "format", FORMATS, FORMATS[0])
    for word in OF_DEBEZIUM if form == MAXWELL else ():
        if word in node:
            message = f"`{word}` is not a key of `cdc` with `format: {MAXWELL}`"
            reader.problem("SR102", reader.place(node, word), message, "Remove it.")
    if form == MAXWELL and not reader.text(node, "table"):
        hint = "Write `table: shop.orders`: Maxwell sends the events of all tables to one place."
        reader.problem("SR104", reader.place(table, "cdc"), f"`format: {MAXWELL}` needs `table`", hint)
    if "transactions" in node and form == DEBEZIUM:
        _check_transactions(reader, table, node, kind)
    return Changes(
        format=form,
        key=tuple(key),
        table=reader.text(node, "table"),
        decimals=reader.choice(node, "decimals", DECIMALS, DECIMALS[0]),
        times=tuple(_times(reader, node, names)),
        transactions=reader.text(node, "transactions"),
    )


def of_old_keys(reader: Reader, table: Any) -> dict[str, tuple[str, ...]]:
    """Return what `from:` of a column may be because the events have the keys that rows had before."""
    node = table.get("cdc")
    if not isinstance(node, Mapping) or node.get("format") != MAXWELL:
        return {}
    return {f"{OLD}{name}": () for name in reader.texts(node, "key")}


def _check_transactions(reader: Reader, table: Any, node: Any, kind: str) -> None:
    """Record problems of a source that takes whole transactions."""
    at = reader.place(node, "transactions")
    if kind != KAFKA:
        hint = "Remove it: a tick takes whole files, and a file may end within a transaction."
        reader.problem("SR102", at, "`transactions` needs `format: kafka`", hint)
    if not reader.text(node, "table"):
        hint = "Write `table: public.orders`: the marks count the events of each table."
        reader.problem("SR104", at, "`transactions` needs `table`", hint)
    if reader.text(table, "if_unreadable") == "skip":
        place, hint = reader.value_place(table, "if_unreadable"), "Remove one of the two."
        message = "`if_unreadable: skip` can't be beside `transactions`: a tick would have a part of a transaction"
        reader.problem("SR110", place, message, hint)


def _times(reader: Reader, node: Any, names: set[str]) -> list[tuple[str, str]]:
    """Return the units of columns; each must be a column of the source."""
    if not isinstance(node.get("times"), Mapping):
        if node.get("times") is not None:
            hint = f"Write `times: {{updated_at: {TIME_UNITS[0]}}}`."
            reader.problem("SR103", reader.value_place(node, "times"), "`times` must be a mapping", hint)
        return []
    found = []
    for name in node["times"]:
        place = reader.value_place(node["times"], name)
        if spelled(str(name), names) not in names:
            message = f"`times` names `{name}`, which isn't a column of the source"
            reader.problem("SR110", place, message, "Name a column of type timestamp.")
        found.append((spelled(str(name), names), reader.choice(node["times"], name, TIME_UNITS, TIME_UNITS[0])))
    return found
