"""Edit a source's columns in the text of its YAML; all other text stays as it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlrun.errors import Problem
from sqlrun.incremental.landing import query as landing_query
from sqlrun.land.schema_drift import APPEND, IGNORE, Drift
from sqlrun.load.yaml_reader import Reader
from sqlrun.project import Source
from sqlrun.runtime import yaml_nodes
from sqlrun.runtime.yaml_nodes import quoted_type, text_of

MARK = "# Missing in the lines that landed last"
# Comments that mark a column already: those of version 0.1.0 too.
MARKS = (MARK, "# No line has it that landed last")
DESCRIBE = "Describe this column."


@dataclass(frozen=True, slots=True)
class Edited:
    """A file's new text, the edits, and what the analyst has to edit."""

    text: str
    done: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Change:
    """Replace the characters from `start` to `end`."""

    start: int
    end: int
    text: str
    messages: tuple[str, ...]


def edited(text: str, source: Source, drifts: Sequence[Drift]) -> Edited:
    """Apply drift to the text of a sources file, as the source's `on_schema_change` says.

    `append_new_columns` declares new fields. `sync`, and `fail` on request, also write wider types and mark missing
    columns. `ignore` changes nothing.
    """
    if source.on_schema_change == IGNORE:
        return Edited(text, (), ("the source sets `on_schema_change: ignore`",) if drifts else ())
    wanted = [d for d in drifts if d.kind == "new" or source.on_schema_change != APPEND]
    left = [said for d in drifts if (said := _by_hand(source, d, d in wanted))]
    columns = _columns(text, source)
    changes = list(_changes(text, columns, source, [d for d in wanted if not _by_hand(source, d, True)]))
    # From the end, so that earlier places stay valid.
    for change in sorted(changes, key=lambda c: c.start, reverse=True):
        text = text[: change.start] + change.text + text[change.end :]
    if changes:
        _require_readable(text, source)
    return Edited(text, tuple(message for c in changes for message in c.messages), tuple(left))


def _by_hand(source: Source, drift: Drift, wanted: bool) -> str:
    """Return why the analyst has to edit a difference; "" if sqlrun can."""
    if not wanted:
        return f"{drift.field}: `append_new_columns` declares new fields only"
    taken = {c.name.lower() for c in source.columns} | {c.name for c in landing_query.HIDDEN}
    match drift.kind:
        case "new" if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", drift.field) or drift.field.lower() in taken:
            return f"{drift.field}: the name isn't valid for a column, so the field stays in {landing_query.RESCUED}"
        case "inside":
            return f"{drift.field}: add the inner fields to its type, {drift.declared}"
        case "changed" | "widened" if not drift.seen:
            return f"{drift.field}: correct the type inside its column's"
        case _:
            return ""


def _columns(text: str, source: Source) -> list[Any]:
    """Return the nodes of a source's columns, as ruamel.yaml has them with their places."""
    for group in yaml_nodes.items(yaml_nodes.composed(text), "sources"):
        for table in yaml_nodes.items(group, "tables"):
            if (text_of(group, "name"), text_of(table, "name")) == (source.group, source.name):
                return yaml_nodes.items(table, "columns")
    return []


def _changes(text: str, columns: list[Any], source: Source, drifts: Sequence[Drift]) -> Iterator[_Change]:
    if not columns:
        return
    by_name = {text_of(column, "name"): column for column in columns}
    if new := [drift for drift in drifts if drift.kind == "new"]:
        yield _added(text, columns[-1], new)
    for drift in drifts:
        column = by_name.get(drift.field)
        match drift.kind:
            case "missing" if column is not None:
                start = text.rfind("\n", 0, column.start_mark.index) + 1
                if not any(mark in text[:start].rstrip("\n").rpartition("\n")[2] for mark in MARKS):
                    indent = re.match(" *", text[start:])
                    maybe = f"; renamed to {drift.renamed}?" if drift.renamed else "."
                    message = f"{drift.field}: marked as missing"
                    yield _Change(start, start, f"{indent[0] if indent else ''}{MARK}{maybe}\n", (message,))
            case "changed" | "widened" if column is not None:
                kind = yaml_nodes.value(column, "data_type")
                if kind is not None:
                    message = f"{drift.field}: {drift.declared} became {drift.seen}"
                    yield _Change(kind.start_mark.index, kind.end_mark.index, quoted_type(drift.seen), (message,))


def _added(text: str, last: Any, drifts: list[Drift]) -> _Change:
    """Return the change that declares fields behind the last column, each in a line of its own."""
    at = yaml_nodes.line_after(text, yaml_nodes.end(last))
    start = text.rfind("\n", 0, last.start_mark.index) + 1
    dash = text[start : last.start_mark.index]
    lines = [f"{dash}{{name: {d.field}, data_type: {quoted_type(d.seen)}, description: {DESCRIBE}}}\n" for d in drifts]
    before = "" if at == 0 or text[at - 1] == "\n" else "\n"
    return _Change(at, at, before + "".join(lines), tuple(f"{d.field}: declared as {d.seen}" for d in drifts))


def _require_readable(text: str, source: Source) -> None:
    """Raise ValueError unless the new text is YAML in which the source has its columns."""
    from sqlrun.load.sources import sources

    problems: list[Problem] = []
    found = [s for s in sources(Reader(source.place.file, text, problems)) if s.table == source.table]
    names = {c.name for c in found[0].columns} if found else set[str]()
    if problems or not names >= {c.name for c in source.columns}:
        raise ValueError(
            f"{source.place.file}: sqlrun can't edit its columns, because they aren't one line or block each"
        )
