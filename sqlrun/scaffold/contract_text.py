"""The text of a contract, completed by what follows from the query; all other text stays as it is. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlrun.errors import UsageError
from sqlrun.project import Column, Model
from sqlrun.unit_tests.author.yaml_writer import scalar


@dataclass(frozen=True, slots=True)
class _Insertion:
    """A text to insert before a character."""

    at: int
    text: str


def of_model(model: Model, grain: Sequence[str]) -> str:
    """Return the contract of a model that has none."""
    lines = ["models:", f"  - name: {model.name}", *_grain(grain, "    "), *_columns(model.columns, "    ")]
    return "\n".join(lines) + "\n"


def completed(text: str, model: Model, grain: Sequence[str]) -> str:
    """Return a file's text with a model's columns, their types, and its grain if the contract lacks one.

    Raises: UsageError if the contract is written on one line, so that nothing can be inserted.
    """
    entry = _entry(text, model.name)
    if entry is None or entry.flow_style:
        raise UsageError(f"{model.contract_file}: write the contract of `{model.name}` as a block, one key a line")
    for one in sorted(_insertions(text, entry, model, grain), key=lambda each: each.at, reverse=True):
        text = text[: one.at] + one.text + text[one.at :]
    return text


def _insertions(text: str, entry: Any, model: Model, grain: Sequence[str]) -> Iterator[_Insertion]:
    first = entry.value[0][0]
    indent = " " * first.start_mark.column
    if grain and _value(entry, "grain") is None:
        yield _Insertion(_line_end(text, _end(entry.value[0][1])), "\n".join(_grain(grain, indent)) + "\n")
    listed = _value(entry, "columns")
    if listed is None or not listed.value:
        if listed is not None:
            raise UsageError(f"{model.contract_file}: remove the empty `columns:` of `{model.name}`")
        yield _Insertion(_line_end(text, _end(entry)), "\n".join(_columns(model.columns, indent)) + "\n")
        return
    nodes = {_text(node, "name"): node for node in listed.value}
    types = {column.name: column.type for column in model.columns}
    for name, node in nodes.items():
        if _value(node, "data_type") is None:
            yield _typed(text, node, types[name])
    missing = [column for column in model.columns if column.name not in nodes]
    if missing and listed.flow_style:
        raise UsageError(f"{model.contract_file}: write the columns of `{model.name}` as a block, one column a line")
    if missing:
        dash = " " * (listed.value[0].start_mark.column - 2)
        lines = (f"{dash}- {_column(column)}\n" for column in missing)
        yield _Insertion(_line_end(text, _end(listed.value[-1])), "".join(lines))


def _typed(text: str, node: Any, kind: str) -> _Insertion:
    """Return the type of a listed column: behind its name in one line, or in a line of its own."""
    name = _value(node, "name")
    if node.flow_style:
        return _Insertion(name.end_mark.index, f", data_type: {_quoted(kind)}")
    indent = " " * node.value[0][0].start_mark.column
    return _Insertion(_line_end(text, name.end_mark.index), f"{indent}data_type: {_quoted(kind)}\n")


def _grain(grain: Sequence[str], indent: str) -> list[str]:
    return [f"{indent}grain: [{', '.join(map(scalar, grain))}]"] if grain else []


def _columns(columns: Sequence[Column], indent: str) -> list[str]:
    return [f"{indent}columns:", *(f"{indent}  - {_column(column)}" for column in columns)]


def _column(column: Column) -> str:
    return f"{{name: {scalar(column.name)}, data_type: {_quoted(column.type)}}}"


def _quoted(kind: str) -> str:
    """Return a type for YAML; in quotes if it has a comma, which would end a value of a flow mapping."""
    return kind if re.fullmatch("[a-z0-9]+", kind) else json.dumps(kind)


def _entry(text: str, name: str) -> Any:
    """Return the node of a model's contract, as ruamel.yaml has it with its places; None if there is none."""
    from ruamel.yaml import YAML

    models = _value(YAML(typ="safe", pure=True).compose(text), "models")
    found = (node for node in (models.value if models is not None else ()) if _text(node, "name") == name)
    return next(found, None)


def _value(node: Any, key: str) -> Any:
    return next((value for name, value in node.value if name.value == key), None)


def _text(node: Any, key: str) -> str:
    value = _value(node, key)
    return str(value.value) if value is not None else ""


def _end(node: Any) -> int:
    """Return the end of a value's text: a block's own end is behind the comments that follow it."""
    if node.id == "scalar" or node.flow_style:
        return int(node.end_mark.index)
    inner = node.value[-1]
    return _end(inner[1] if isinstance(inner, tuple) else inner)


def _line_end(text: str, at: int) -> int:
    """Return where the line after a place begins; a block scalar's end is there already."""
    if at and text[at - 1] == "\n":
        return at
    return text.find("\n", at) + 1 or len(text)
