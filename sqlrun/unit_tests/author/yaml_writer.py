"""A unit test as YAML text, appended to the tests of a file; all other text stays as it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal

from sqlrun.errors import Problem
from sqlrun.load.yaml_fast import Mapped
from sqlrun.load.yaml_reader import Reader
from sqlrun.project import Row

KEY = "unit_tests"
# Texts that every YAML reader takes for a text, in a flow mapping too.
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[ -][A-Za-z0-9_]+)*")
WORDS = {"true", "false", "null", "yes", "no", "on", "off"}
# Maximum length of a row on one line; a longer row has a line for each column.
WIDEST = 220


@dataclass(frozen=True, slots=True)
class Written:
    """Content of a new unit test: `given` pairs each input, as `ref('x')`, with its rows; `then` has lines of YAML.

    Values in rows are Python's: Decimal, datetime (with or without a zone), date, bytes, list, dict and plain ones.
    """

    name: str
    model: str
    given: tuple[tuple[str, tuple[Row, ...]], ...]
    expect: tuple[Row, ...]
    description: str = ""
    as_of: str = ""
    then: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return the entry's lines, its dash in the first column."""
        found = [f"- name: {self.name}", f"  model: {self.model}"]
        if self.description:
            found.append(f"  description: {scalar(self.description)}")
        if self.as_of:
            found.append(f'  as_of: "{self.as_of}"')
        found.append("  given:" if self.given else "  given: []")
        for text, rows in self.given:
            found += [f"    - input: {text}", *_rows(rows, "      ")]
        return [*found, "  expect:", *_rows(self.expect, "    "), *(f"  {line}".rstrip() for line in self.then)]


def _rows(rows: Sequence[Row], indent: str) -> list[str]:
    found = [f"{indent}rows:" if rows else f"{indent}rows: []"]
    for row in rows:
        line = f"{indent}  - {value(row)}"
        if len(line) <= WIDEST:
            found.append(line)
        else:
            marks = ("- ", *["  "] * (len(row) - 1))
            columns = (f"{scalar(name)}: {value(given)}" for name, given in row.items())
            found += [f"{indent}  {mark}{column}" for mark, column in zip(marks, columns, strict=True)]
    return found


def value(given: object) -> str:
    """Return a value as YAML on one line.

    Raises: ValueError for a value that has no form in a YAML row, such as a map.

    >>> value({"id": "o1", "total": Decimal("9.50"), "items": [], "note": None})
    '{id: o1, total: 9.50, items: [], note: null}'
    """
    match given:
        case Mapping():
            return "{" + ", ".join(f"{scalar(str(k))}: {value(v)}" for k, v in given.items()) + "}"
        case list() | tuple():
            if any(isinstance(item, tuple) for item in given):
                raise ValueError("rows of a unit test can't contain a map")
            return "[" + ", ".join(value(item) for item in given) + "]"
        case None:
            return "null"
        case bool():
            return str(given).lower()
        case int():
            return str(given)
        case Decimal():
            return f"{given:f}"
        case float():
            text = repr(given)
            return text if re.fullmatch(r"-?\d+\.\d+", text) else scalar(text)
        case datetime():
            utc = given.astimezone(timezone.utc).replace(tzinfo=None) if given.tzinfo else given
            return f'"{utc.isoformat(" ")}"'
        case date():
            return given.isoformat()
        case bytes():
            return scalar("".join(f"\\x{byte:02X}" for byte in given))
        case _:
            return scalar(str(given))


def scalar(text: str) -> str:
    r"""Return a text as YAML, quoted where YAML would read it as something else.

    >>> scalar("Golden Lantern"), scalar("no"), scalar("2026-05-04"), scalar('a "b"\n')
    ('Golden Lantern', '"no"', '"2026-05-04"', '"a \\"b\\"\\n"')
    """
    if PLAIN.fullmatch(text) and text.lower() not in WORDS:
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    known = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
    if letter in known:
        return known[letter]
    if letter.isprintable() or letter == " ":
        return letter
    number = ord(letter)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 65536 else f"\\U{number:08x}"


def appended(file: str, text: str, test: Written) -> str:
    """Return a contract's text with a test appended, with the file's own indent and line ends.

    Raises: ValueError if the text's `unit_tests:` is not a block that can be extended.
    """
    ending = "\r" if "\r\n" in text else ""
    # Not splitlines(): it also splits at characters that YAML takes for part of a text.
    lines = text.removesuffix("\n").split("\n")
    root = Reader(file, text.removeprefix("\ufeff"), list[Problem]()).root
    if not isinstance(root, Mapped):
        raise ValueError(f"{file} isn't a mapping")
    if KEY not in root:
        at, indent = _end(lines, len(lines)), "  "
        block = ["", f"{KEY}:"]
    else:
        first = root.keys_at[KEY].line
        after = min((place.line for place in root.keys_at.values() if place.line > first), default=len(lines) + 1)
        at = _end(lines, after - 1)
        dash = re.compile(r"( *)-( |$)")
        dashes = (found[1] for line in lines[first:at] if (found := dash.match(line)))
        items = root[KEY]
        indent = next(dashes, "") if items else "  "
        if items is not None and not re.fullmatch(rf"{KEY}:\s*(#.*)?", lines[first - 1]):
            raise ValueError(f"{file}:{first}: `{KEY}:` and its tests are on one line")
        block = [""] if items else []
    block += [f"{indent}{line}".rstrip() for line in test.lines()]
    return "\n".join([*lines[:at], *(line + ending for line in block), *lines[at:]]) + "\n"


def _end(lines: Sequence[str], last: int) -> int:
    """Return the last line of a block: comments in the first column and empty lines belong to the next block."""
    while last and (not lines[last - 1].strip() or lines[last - 1].startswith("#")):
        last -= 1
    return last


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """Return a name, with a number appended if it is in use.

    >>> free_name("a", ["a", "a_2"])
    'a_3'
    """
    names, number = set(taken), 2
    if wanted not in names:
        return wanted
    while f"{wanted}_{number}" in names:
        number += 1
    return f"{wanted}_{number}"
