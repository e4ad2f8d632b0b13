"""The text of a contract, completed by what follows from the query; all other text stays as it is. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlrun.errors import UsageError
from sqlrun.project import Column, Model
from sqlrun.runtime import yaml_nodes
from sqlrun.runtime.yaml_nodes import line_after, quoted_type, text_of
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
    # Whole lines are inserted, also behind a last line that doesn't end.
    end = "" if text.endswith("\n") else "\n"
    text += end
    for one in sorted(_insertions(text, entry, model, grain), key=lambda each: each.at, reverse=True):
        text = text[: one.at] + one.text + text[one.at :]
    return text.removesuffix(end)


def _insertions(text: str, entry: Any, model: Model, grain: Sequence[str]) -> Iterator[_Insertion]:
    first = entry.value[0][0]
    indent = " " * first.start_mark.column
    if grain and yaml_nodes.value(entry, "grain") is None:
        yield _Insertion(line_after(text, yaml_nodes.end(entry.value[0][1])), "\n".join(_grain(grain, indent)) + "\n")
    listed = yaml_nodes.value(entry, "columns")
    if listed is None or not listed.value:
        if listed is not None:
            raise UsageError(f"{model.contract_file}: remove the empty `columns:` of `{model.name}`")
        yield _Insertion(line_after(text, yaml_nodes.end(entry)), "\n".join(_columns(model.columns, indent)) + "\n")
        return
    nodes = {text_of(node, "name"): node for node in listed.value}
    types = {column.name: column.type for column in model.columns}
    for name, node in nodes.items():
        if yaml_nodes.value(node, "data_type") is None:
            yield _typed(text, node, types[name])
    missing = [column for column in model.columns if column.name not in nodes]
    if missing and listed.flow_style:
        raise UsageError(f"{model.contract_file}: write the columns of `{model.name}` as a block, one column a line")
    if missing:
        dash = " " * (listed.value[0].start_mark.column - 2)
        lines = (f"{dash}- {_column(column)}\n" for column in missing)
        yield _Insertion(line_after(text, yaml_nodes.end(listed.value[-1])), "".join(lines))


def _typed(text: str, node: Any, kind: str) -> _Insertion:
    """Return the type of a listed column: behind its name in one line, or in a line of its own."""
    name = yaml_nodes.value(node, "name")
    if node.flow_style:
        return _Insertion(name.end_mark.index, f", data_type: {quoted_type(kind)}")
    indent = " " * node.value[0][0].start_mark.column
    return _Insertion(line_after(text, name.end_mark.index), f"{indent}data_type: {quoted_type(kind)}\n")


def _grain(grain: Sequence[str], indent: str) -> list[str]:
    return [f"{indent}grain: [{', '.join(map(scalar, grain))}]"] if grain else []


def _columns(columns: Sequence[Column], indent: str) -> list[str]:
    return [f"{indent}columns:", *(f"{indent}  - {_column(column)}" for column in columns)]


def _column(column: Column) -> str:
    return f"{{name: {scalar(column.name)}, data_type: {quoted_type(column.type)}}}"


def _entry(text: str, name: str) -> Any:
    """Return the node of a model's contract; None if there is none."""
    models = yaml_nodes.items(yaml_nodes.composed(text), "models")
    return next((node for node in models if text_of(node, "name") == name), None)
