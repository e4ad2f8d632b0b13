"""A seed's CSV text to rows with places, validated against the contract; and rows to typed values. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from sqlrun.errors import Place, Problem
from sqlrun.load.yaml_reader import spelled
from sqlrun.project import Column, Seed
from sqlrun.runtime.clock import parse_time
from sqlrun.runtime.text_table import counted

# Maximum number of problems that are reported; with more the whole file is wrong.
ENOUGH = 20
FIELD = re.compile(r'(?:"((?:[^"]|"")*)"|((?:[^",\r\n][^,\r\n]*)?))(,|\r\n|\r|\n|\Z)')
LINE_END = re.compile(r"\r\n|\r|\n")
BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
# Stricter than Python's own parsers, which accept 1_000, blanks, NaN and digits other than 0-9.
SHAPES = {
    "decimal": r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)",
    "double": r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?",
    "boolean": "(?i:true|false)",
    "date": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "timestamp": r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?)?",
    **dict.fromkeys(BITS, "[+-]?[0-9]+"),
}
SHAPES["float"] = SHAPES["double"]
TYPES = ("string", "int", "bigint", "decimal(p,s)", "date", "timestamp", "boolean", "double")
Rows = tuple[tuple[str | None, ...], ...]
UNBALANCED = "unbalanced quotes in this field"
CLOSE = 'Close the quote. Inside a quoted field, double each quote: "a ""b"" c".'


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a CSV file: None if it is empty, "" for `""`."""

    text: str | None
    line: int
    column: int


class UnbalancedQuotes(Exception):
    """An unclosed quote, or text behind a closing quote."""

    def __init__(self, line: int, column: int) -> None:
        self.line, self.column = line, column
        super().__init__()


def rows(file: str, text: str, columns: tuple[Column, ...], grain: tuple[str, ...], problems: list[Problem]) -> Rows:
    """Return a seed's rows, and record what doesn't match its contract (SR113)."""
    sheet = _Sheet(file, LINE_END.split(text), [])
    found: list[tuple[Field, ...]] = []
    try:
        lines = records(text)
        header = next(lines, None)
        if header is None:
            sheet.wrong(1, 1, "the file is empty", f"Write the header: {','.join(c.name for c in columns)}")
        elif _header_fits(header, columns, sheet):
            found = [record for record in lines if _fits(record, columns, sheet)]
    except UnbalancedQuotes as error:
        sheet.wrong(error.line, error.column, UNBALANCED, CLOSE)
    _unique(found, columns, grain, sheet)
    problems.extend(sheet.problems[:ENOUGH])
    if len(sheet.problems) > ENOUGH:
        more = sheet.problems[ENOUGH]
        message = f"{counted(len(sheet.problems) - ENOUGH, 'more problem')} in this file, from here on"
        problems.append(Problem(more.code, more.place, message, "Fix the problems above first.", more.excerpt))
    return tuple(tuple(field.text for field in record) for record in found)


@dataclass(frozen=True, slots=True)
class _Sheet:
    """The file that is being read, and its problems so far."""

    file: str
    lines: list[str]
    problems: list[Problem]

    def wrong(self, line: int, column: int, message: str, hint: str) -> None:
        """Record a problem with its line."""
        excerpt = self.lines[line - 1] if line <= len(self.lines) else ""
        self.problems.append(Problem("SR113", Place(self.file, line, column), message, hint, excerpt))


def _fits(record: tuple[Field, ...], columns: tuple[Column, ...], sheet: _Sheet) -> bool:
    if len(record) != len(columns):
        at = record[min(len(record) - 1, len(columns))]
        message = f"this line has {counted(len(record), 'field')}, but the header has {len(columns)}"
        sheet.wrong(at.line, at.column, message, "Add or remove fields. Quote a field that contains a comma.")
        return False
    for field, column in zip(record, columns, strict=True):
        misfit = _misfit(field.text, column)
        if misfit:
            sheet.wrong(
                field.line, field.column, misfit, f"Correct the value, or the type in the contract: {column.place}"
            )
    return True


def _unique(found: list[tuple[Field, ...]], columns: tuple[Column, ...], grain: tuple[str, ...], sheet: _Sheet) -> None:
    indexes = [index for index, column in enumerate(columns) if column.name in grain]
    first: dict[tuple[object, ...], int] = {}
    for record in found if indexes else ():
        key = tuple(_value(record[index].text, columns[index]) for index in indexes)
        line = first.setdefault(key, record[0].line)
        if line != record[0].line:
            at = record[indexes[0]]
            message = f"duplicate row: line {line} has the same grain ({', '.join(map(str, key))})"
            sheet.wrong(
                at.line,
                at.column,
                message,
                f"Remove one of the rows, or extend the grain: rows must be unique by {', '.join(grain)}.",
            )


def _value(text: str | None, column: Column) -> object:
    """Return a field's value, so that 1 and 01 are one key; its text if it isn't valid for its type."""
    return typed(text, column.type) if text is not None and fits(text, column.type) else text


def _header_fits(record: tuple[Field, ...], columns: tuple[Column, ...], sheet: _Sheet) -> bool:
    written, names = [field.text or "" for field in record], [column.name for column in columns]
    header = [spelled(name, names) for name in written]
    if header == names:
        return True
    at = next((i for i, (a, b) in enumerate(zip(header, names, strict=False)) if a != b), len(header) - 1)
    message = f"the header is `{','.join(written)}`, but the contract's columns are `{','.join(names)}`"
    sheet.wrong(1, record[at].column, message, "Write the same columns in the same order in both files.")
    return False


def records(text: str) -> Iterator[tuple[Field, ...]]:
    """Yield the records of CSV text (RFC 4180), without empty lines; a line end in quotes is part of its field.

    Raises: `UnbalancedQuotes`.
    """
    at, line, line_start = 0, 1, 0
    record: list[Field] = []
    while at < len(text) or record:
        found = FIELD.match(text, at)
        if not found:
            raise UnbalancedQuotes(line, at - line_start + 1)
        quoted, bare, end = found.groups()
        value = quoted.replace('""', '"') if quoted is not None else bare or None
        record.append(Field(value, line, at - line_start + 1))
        for line_end in LINE_END.finditer(text, at, found.end()):
            line, line_start = line + 1, line_end.end()
        at = found.end()
        if end != ",":
            if len(record) > 1 or record[0].text is not None:
                yield tuple(record)
            record = []


def _misfit(text: str | None, column: Column) -> str:
    """Return why a field doesn't match its column; "" if it does."""
    if text is None:
        return "" if column.nullable else f"column `{column.name}` is empty, but its contract has `nulls: false`"
    kind = column.type.partition("(")[0]
    if fits(text, column.type) or kind not in SHAPES:
        return ""
    return f"`{text}` isn't a valid {column.type} (column `{column.name}`)"


def fits(text: str, kind: str) -> bool:
    """Return whether a field is valid for a type.

    >>> fits("1.50", "decimal(3,2)"), fits("1.505", "decimal(3,2)"), fits("2026-02-30", "date")
    (True, False, False)
    """
    name = kind.partition("(")[0]
    if name == "string":
        return True
    if not re.fullmatch(SHAPES.get(name, "(?!)"), text):
        return False
    try:
        value = typed(text, kind)
    except ValueError:
        return False
    if name in BITS:
        return -(1 << BITS[name] - 1) <= int(text) < 1 << BITS[name] - 1
    if isinstance(value, Decimal):
        precision, scale = (int(p) for p in (*re.findall("[0-9]+", kind), "10", "0")[:2])
        whole, _, part = text.lstrip("+-").partition(".")
        return len(part.rstrip("0")) <= scale and len(whole.lstrip("0")) <= precision - scale
    return True


def unknown_types(columns: tuple[Column, ...]) -> Iterator[Problem]:
    """Yield a problem (SR113) for each column with a type that a CSV field can't have."""
    for column in columns:
        if column.type.partition("(")[0] not in (*SHAPES, "string"):
            message = f"seeds don't support the type `{column.type}` (column `{column.name}`)"
            yield Problem("SR113", column.place, message, f"Use one of these types: {', '.join(TYPES)}.")


def typed_rows(seed: Seed) -> tuple[tuple[object, ...], ...]:
    """Return a seed's rows as Python values of its columns' types; `rows` has validated them."""
    kinds = [column.type for column in seed.columns]
    return tuple(tuple(typed(v, kind) for v, kind in zip(row, kinds, strict=True)) for row in seed.rows)


def typed(text: str | None, kind: str) -> object:
    """Return a field's value; None stays None.

    >>> typed("1.50", "decimal(10,2)"), typed("3", "int"), typed(None, "int")
    (Decimal('1.50'), 3, None)
    """
    if text is None:
        return None
    match kind.partition("(")[0]:
        case "int" | "bigint" | "smallint" | "tinyint":
            return int(text)
        case "decimal":
            return Decimal(text)
        case "double" | "float":
            return float(text)
        case "boolean":
            return text.lower() == "true"
        case "date":
            return date.fromisoformat(text)
        case "timestamp":
            return parse_time(text)
        case _:
            return text
