"""The usual form of a source's lines, as one regular expression: a line that has it is asked nothing more. Pure.

Most lines of a source are alike: one JSON object with just the declared fields, each once and in their order. A regular
expression says so in one pass, where questions about keys and types read a line's JSON anew for each. What it doesn't
match may still be a good line: it is asked the long way.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sqlrun.incremental import types
from sqlrun.model import Source

# An expression of more fields needs more memory than RE2 gives it, and would be slower than the questions.
MOST_FIELDS = 64
SPACE = r"[ \t\r\n]*"
# No escapes: a text with one may be ill-formed. Control characters may not stand in a text.
TEXT = r'"[^"\\\x00-\x1f]*"'
NUMBER = r"-?(?:0|[1-9][0-9]*)(?:[.][0-9]+)?"
SCALAR = rf"(?:{TEXT}|{NUMBER}|true|false|null)"


def usual(source: Source) -> str | None:
    """Write the regular expression of a whole line, for RE2; None where a source's fields have no such form.

    A line that it matches is a JSON object with the declared keys alone, on all levels, each once, and each of a shape
    that its type can have.
    """
    kinds = [(column.name, types.parse(column.type)) for column in source.columns]
    if not kinds or sum(_fields(kind) for _, kind in kinds) > MOST_FIELDS:
        return None
    found = _object(kinds)
    return None if found is None else f"{SPACE}{found}{SPACE}"


def _fields(kind: exp.DataType | None) -> int:
    assert kind is not None
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            return 2 * _fields(kind.expressions[0])  # an element's form stands there twice
        case exp.DataType.Type.STRUCT:
            return sum(_fields(f.args["kind"]) for f in kind.expressions)
        case _:
            return 1


def _object(fields: list[tuple[str, exp.DataType | None]]) -> str | None:
    members = []
    for name, kind in fields:
        value = _value(kind)
        # A key is compared as it is written: other names may be written in several ways.
        if value is None or re.fullmatch(r"\w+", name, re.ASCII) is None:
            return None
        members.append(f'"{name}"{SPACE}:{SPACE}{value}')
    return rf"\{{{SPACE}{f'{SPACE},{SPACE}'.join(members)}{SPACE}\}}"


def _value(kind: exp.DataType | None) -> str | None:
    assert kind is not None
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            each = _value(kind.expressions[0])
            return None if each is None else rf"\[{SPACE}(?:{each}{SPACE}(?:,{SPACE}{each}{SPACE})*)?\]"
        case exp.DataType.Type.STRUCT:
            return _object([(f.name, f.args["kind"]) for f in kind.expressions])
        case _:
            return SCALAR
