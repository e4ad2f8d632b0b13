"""Rows of a unit test in dbt's formats and as raw lines, validated against their columns. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlrun.errors import Place, Problem
from sqlrun.load import seeds
from sqlrun.load.seeds import Field
from sqlrun.load.yaml_reader import Reader, did_you_mean, listed, plain, spelled
from sqlrun.project import Row
from sqlrun.runtime.text_table import counted
from sqlrun.test_definitions.misfits import Misfit, misfit
from sqlrun.test_definitions.names import Fixture, Known
from sqlrun.test_definitions.passages import Passage, Table

FORMATS = ("dict", "csv", "sql")
NESTED = ("array", "struct", "map")
ROW = "{column: value, ...}"


@dataclass(frozen=True, slots=True)
class Content:
    """Rows in one of three forms; all are None or empty if there are no rows."""

    rows: tuple[Row, ...] | None = None
    sql: str = ""
    lines: tuple[str, ...] | None = None


def content(reader: Reader, node: Any, table: Table, known: Known, formats: tuple[str, ...] = FORMATS) -> Content:
    """Return the content of `rows` or `fixture` in the given format."""
    kind = reader.choice(node, "format", formats, "dict")
    has_rows, has_fixture = node.get("rows") is not None, node.get("fixture") is not None
    if has_rows and has_fixture:
        hint = "Remove one of them."
        reader.problem("SR121", reader.place(node, "fixture"), "both `rows` and a fixture", hint)
        return Content()
    if has_fixture and kind not in ("csv", "sql"):
        hint = "Add `format: csv` or `format: sql`."
        reader.problem("SR121", reader.place(node, "fixture"), f"fixtures don't support the format `{kind}`", hint)
        return Content()
    if not has_rows and not has_fixture:
        return Content()
    if kind == "dict":
        return Content(dict_rows(reader, node, "rows", table))
    if kind == "lines":
        return Content(lines=raw_lines(reader, node, "rows"))
    passage = _fixture(reader, node, kind, known) if has_fixture else _inline(reader, node, "rows", kind)
    if passage is None:
        return Content(())
    if kind == "csv":
        return Content(csv_rows(reader, passage, table))
    from sqlrun.test_definitions.sql_rows import checked

    return Content(sql=checked(reader, passage, table, known))


def listed_rows(reader: Reader, node: Any, key: str, table: Table) -> tuple[Row, ...] | None:
    """Return the rows under a key, in the dict or csv format of its mapping; None if the key is missing."""
    if node.get(key) is None:
        return None
    if reader.choice(node, "format", ("dict", "csv"), "dict") == "dict":
        return dict_rows(reader, node, key, table)
    passage = _inline(reader, node, key, "csv")
    return () if passage is None else csv_rows(reader, passage, table)


def dict_rows(reader: Reader, node: Any, key: str, table: Table) -> tuple[Row, ...]:
    """Return a list of mappings from column to value."""
    if isinstance(node.get(key), str):
        hint = "Begin each row with `- `, or set `format: csv` or `format: sql`."
        reader.problem("SR103", reader.value_place(node, key), f"`{key}` must be a list", hint)
        return ()
    found = []
    for item, place in reader.items(node, key, "a unit test"):
        if not isinstance(item, Mapping):
            reader.problem("SR103", place, "a row must map columns to values", ROW)
            continue
        for written, value in item.items():
            column = spelled(written, table.types)
            if table.types and column not in table.types:
                hint = f"{table.name} has: {', '.join(table.types)}.{did_you_mean(column, table.types)}"
                message = f"unknown column `{column}` of {table.name}"
                reader.problem("SR112", reader.place(item, written), message, hint)
                continue
            wrong = misfit(value, table.types.get(column, ""))
            if wrong is not None:
                at = _inside(reader, item, written, wrong)
                reader.problem("SR119", at, _message(wrong, column), _hint(table.name, column, table.types[column]))
        found.append({spelled(column, table.types): value for column, value in plain(item).items()})
    return tuple(found)


def raw_lines(reader: Reader, node: Any, key: str) -> tuple[str, ...]:
    """Return a source's lines, from one text or from a list of texts."""
    value = node.get(key)
    if isinstance(value, str):
        return tuple(value.removesuffix("\n").split("\n")) if value else ()
    found = []
    for item, place in reader.items(node, key, "a unit test"):
        if isinstance(item, str):
            found += item.removesuffix("\n").split("\n")
        else:
            hint = "Quote the line, '{\"id\": 1}', or write all lines below `rows: |`. YAML parses unquoted JSON."
            reader.problem("SR103", place, "a raw line must be a string", hint)
    return tuple(found)


def csv_rows(reader: Reader, passage: Passage, table: Table) -> tuple[Row, ...]:
    """Return the rows of CSV text with a header; an empty field is NULL, a quoted empty one an empty text."""
    found: list[Row] = []
    try:
        records = seeds.records(passage.text)
        header = next(records, None)
        if header is None:
            hint = f"Name the columns in the first line, for example {','.join(list(table.types)[:3]) or 'id,name'}"
            note(reader, passage, "SR119", 1, 1, "the CSV is empty", hint)
        elif _header(reader, passage, header, table):
            found = [row for record in records if (row := _record(reader, passage, header, record, table)) is not None]
    except seeds.UnbalancedQuotes as error:
        note(reader, passage, "SR119", error.line, error.column, seeds.UNBALANCED, seeds.CLOSE)
    return tuple(found)


def note(reader: Reader, passage: Passage, code: str, line: int, column: int, message: str, hint: str) -> None:
    """Report a problem at a place of a passage."""
    place = passage.at(line, column)
    excerpt = passage.lines[place.line - 1] if place.line <= len(passage.lines) else ""
    reader.problems.append(Problem(code, place, message, hint, excerpt))


def _header(reader: Reader, passage: Passage, header: tuple[Field, ...], table: Table) -> bool:
    good, names = True, [field.text or "" for field in header]
    for index, (field, name) in enumerate(zip(header, names, strict=True)):
        if table.types and spelled(name, table.types) not in table.types:
            hint = f"{table.name} has: {', '.join(table.types)}.{did_you_mean(name.strip(), table.types)}"
            message = f"unknown column `{name}` of {table.name}"
            note(reader, passage, "SR112", field.line, field.column, message, hint)
            good = False
        elif name.lower() in {before.lower() for before in names[:index]}:
            message = f"duplicate column `{name}` in the header"
            note(reader, passage, "SR119", field.line, field.column, message, "Remove one of them.")
            good = False
    return good


def _record(
    reader: Reader, passage: Passage, header: tuple[Field, ...], record: tuple[Field, ...], table: Table
) -> Row | None:
    if len(record) != len(header):
        at = record[min(len(record) - 1, len(header))]
        message = f"this line has {counted(len(record), 'field')}, but the header has {len(header)}"
        note(
            reader,
            passage,
            "SR119",
            at.line,
            at.column,
            message,
            "Add or remove fields. Quote a field that contains a comma.",
        )
        return None
    row: dict[str, object] = {}
    for name, field in zip((spelled(str(one.text), table.types) for one in header), record, strict=True):
        kind = table.types.get(name, "")
        value, wrong = _field(field.text, kind)
        wrong = wrong or misfit(value, kind)
        if wrong is not None:
            hint = _hint(table.name, name, kind)
            note(reader, passage, "SR119", field.line, field.column, _message(wrong, name), hint)
        row[name] = value
    return row


def _field(text: str | None, kind: str) -> tuple[object, Misfit | None]:
    """Return the value of a CSV field, parsed as JSON if the column has arrays, structs or maps."""
    if text is None or not kind.startswith(NESTED):
        return text, None
    try:
        return json.loads(text, parse_float=Decimal), None
    except (ValueError, RecursionError):
        return None, Misfit((), f"`{text[:60]}` isn't JSON, the form of a {kind.partition('<')[0]} in CSV")


def _message(wrong: Misfit, column: str) -> str:
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in wrong.path)
    return f"{wrong.message} (column `{column}{steps}`)"


def _hint(name: str, column: str, kind: str) -> str:
    return f"Write a value of the type of `{column}` in {name}: {kind}."


def _inside(reader: Reader, row: Any, column: str, wrong: Misfit) -> Place:
    """Return the place of the wrong value inside a column's value."""
    node, place = row[column], reader.value_place(row, column)
    for step in wrong.path:
        place = reader.place(node, step) if isinstance(step, int) else reader.value_place(node, step)
        node = node[step]
    return place


def _inline(reader: Reader, node: Any, key: str, kind: str) -> Passage | None:
    value, place = node.get(key), reader.value_place(node, key)
    if not isinstance(value, str):
        hint = f"Write the {kind.upper()} below `{key}: |`, or remove `format: {kind}`."
        reader.problem("SR103", place, f"`{key}` must be a string with `format: {kind}`", hint)
        return None
    return passage_of(reader, place, value)


def passage_of(reader: Reader, place: Place, text: str) -> Passage:
    """Return a YAML text with the places of its letters in the file."""
    start, lines = reader.text_place(place, text), tuple(reader.lines)
    if start == place:
        line = lines[place.line - 1] if place.line <= len(lines) else ""
        quoted = line[place.column - 1 : place.column] in ("'", '"')
        start = Place(place.file, place.line, place.column + quoted)
        return Passage(text, start, line.startswith(text, start.column - 1), lines)
    return Passage(text, start, True, lines)


def _fixture(reader: Reader, node: Any, kind: str, known: Known) -> Passage | None:
    name, place = reader.text(node, "fixture"), reader.value_place(node, "fixture")
    file = name if name.endswith(f".{kind}") else f"{name}.{kind}"
    found = known.fixtures.get(file, ())
    if len(found) == 1:
        return _of_fixture(found[0])
    if found:
        hint = f"Rename one of {' and '.join(one.file for one in found)}."
        reader.problem("SR111", place, f"ambiguous fixture `{file}`: {len(found)} files have this name", hint)
    else:
        near = [one for one in known.fixtures if one.endswith(f".{kind}")]
        hint = f"Add tests/fixtures/{file}, or correct its name. Fixtures: {listed(sorted(near))}."
        hint += did_you_mean(file, near)
        reader.problem("SR112", place, f"unknown fixture `{file}`", hint)
    return None


def _of_fixture(fixture: Fixture) -> Passage:
    return Passage(fixture.text, Place(fixture.file), True, tuple(seeds.LINE_END.split(fixture.text)))
