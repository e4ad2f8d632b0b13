"""The usual form of a source's lines as one regular expression, a fast path for most lines. Pure.

Most lines of a source are alike: one JSON object with exactly the declared fields, each once and in their order. A
regular expression tests that in one pass, while tests of keys and types parse the line's JSON once each. A line that
doesn't match may still be valid: it takes the slow path.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sqlrun.engine_api import Dialect
from sqlrun.incremental import types
from sqlrun.incremental.landing import line_grammar, line_types
from sqlrun.incremental.landing.line_grammar import Tokens
from sqlrun.project import Source

# Maximum number of fields: a longer expression exceeds RE2's memory limit and would be slower than the tests.
MOST_FIELDS = 64


def usual(source: Source, dialect: Dialect) -> str | None:
    """Return the regular expression of a whole line; None if a source's fields have no such form.

    A line that matches is a JSON object with exactly the declared keys on all levels, each once and each of a shape
    that its type can have. Its numbers are ones that every reader returns unchanged.
    """
    kinds = [(column.name, types.parse(column.type)) for column in source.columns]
    if not kinds or sum(_fields(kind) for _, kind in kinds) > MOST_FIELDS:
        return None
    known = line_grammar.tokens(dialect)
    found = _object(kinds, known, dialect)
    return None if found is None else f"{known.space}{found}{known.space}"


def _fields(kind: exp.DataType | None) -> int:
    assert kind is not None
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            return 2 * _fields(kind.expressions[0])  # the pattern of an element occurs twice
        case exp.DataType.Type.STRUCT:
            return sum(_fields(f.args["kind"]) for f in kind.expressions)
        case _:
            return 1


def _object(fields: list[tuple[str, exp.DataType | None]], known: Tokens, dialect: Dialect) -> str | None:
    members, space = [], known.space
    for name, kind in fields:
        value = _value(kind, known, dialect)
        # A key is compared as it is written, so only names that can be written in one way are allowed.
        if value is None or re.fullmatch(r"\w+", name, re.ASCII) is None:
            return None
        members.append(f'"{name}"{space}:{space}{value}')
    return rf"\{{{space}{f'{space},{space}'.join(members)}{space}\}}"


def _value(kind: exp.DataType | None, known: Tokens, dialect: Dialect) -> str | None:
    assert kind is not None
    space = known.space
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            each = _value(kind.expressions[0], known, dialect)
            more = f"(?:,{space}{each}{space}){known.more}"
            return None if each is None else rf"\[{space}(?:{each}{space}{more}){known.maybe}\]"
        case exp.DataType.Type.STRUCT:
            return _object([(f.name, f.args["kind"]) for f in kind.expressions], known, dialect)
        case _:
            # No escapes: a text with one may be ill-formed. JSON doesn't allow control characters in a text.
            text = rf'"[^"\\\x00-\x1f]{known.more}"'
            return rf"(?:{text}|{line_types.usual(kind, dialect)}|true|false|null)"
