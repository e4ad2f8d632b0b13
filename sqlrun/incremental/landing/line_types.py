"""The texts that each type accepts, defined once for both engines. Pure.

A number is its text in the line, quoted or not: 11.100 has three digits after the point, and 1e2 isn't a whole number.
The form is a regular expression that means the same to Java and RE2. The value must also be in the type's range.
"""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrun.engine_api import Dialect
from sqlrun.incremental import types
from sqlrun.incremental.algebra import Type
from sqlrun.incremental.landing import time_range
from sqlrun.transpile import writer as sql

_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DAY = f"{_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIME = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.][0-9]{1,6})?"
_OFFSET = "(?:Z|[+-](?:(?:0[0-9]|1[0-7]):[0-5][0-9]|18:00))"
FORMS = {
    "tinyint": "[+-]?[0-9]{1,3}",
    "smallint": "[+-]?[0-9]{1,5}",
    "int": "[+-]?[0-9]{1,10}",
    "bigint": "[+-]?[0-9]{1,19}",
    "boolean": "true|false",
    "float": "[+-]?[0-9]+(?:[.][0-9]+)?(?:[eE][+-]?[0-9]{1,3})?",
    "double": "[+-]?[0-9]+(?:[.][0-9]+)?(?:[eE][+-]?[0-9]{1,3})?",
    "date": _DAY,
    "timestamp": f"{_DAY}[T ]{_TIME}{_OFFSET}?",
}
LARGEST = {"double": "1.7976931348623157E308", "float": "3.4028234663852886E38"}
NAMES = f"string, {', '.join(FORMS)}, decimal(p, s), array<...>, struct<...>"


def is_text(kind: exp.DataType) -> bool:
    """Return whether a type accepts every text, number and boolean as it is written."""
    return types.text(kind) in ("string", "varchar")


def known(kind: str) -> bool:
    """Return whether a field of a line may have this type.

    >>> known("array<struct<a:int>>"), known("map<string,int>"), known("array<map<string,int>>"), known("nonsense")
    (True, False, False, False)
    """
    try:
        parsed = types.parse(kind)
    except SqlglotError:
        return False
    return parsed is not None and _known(parsed)


def _known(kind: exp.DataType) -> bool:
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            return (
                len(kind.expressions) == 1
                and isinstance(kind.expressions[0], exp.DataType)
                and _known(*kind.expressions)
            )
        case exp.DataType.Type.STRUCT:
            fields = [f.args.get("kind") for f in kind.expressions]
            return bool(fields) and all(isinstance(field, exp.DataType) and _known(field) for field in fields)
        case _:
            return is_text(kind) or kind.this == exp.DataType.Type.DECIMAL or types.text(kind) in FORMS


@lru_cache(256)
def form(kind: str) -> str:
    """Return the regular expression of a scalar type's texts."""
    size = types.decimal(Type(kind))
    if size is None or kind in FORMS:
        return FORMS[kind]
    digits, after = size
    point = f"(?:[.][0-9]{{1,{after}}})?" if after else ""
    return f"[+-]?[0-9]{{1,{max(1, digits - after)}}}{point}"


def value(text: str, kind: exp.DataType) -> str:
    """Return Spark SQL for the value of a text; NULL if the type doesn't accept the text."""
    name = types.text(kind)
    cast = f"try_cast({text} as {name})"
    whole = sql.string(rf"\A(?:{form(name)})\z", "spark")
    tests = [f"{text} rlike {whole}"]
    if name in LARGEST:
        tests.append(f"abs({cast}) <= cast('{LARGEST[name]}' as double)")
    if name == "timestamp":
        # An offset may move the first or the last day of the calendar out of the range.
        first, last = (sql.timestamp(end, "spark") for end in (time_range.FIRST_TIME, time_range.LAST_TIME))
        tests.append(f"(not {text} rlike '^(0001-01-01|9999-12-31)' or {cast} between {first} and {last})")
    return f"case when {' and '.join(tests)} then {cast} end"


def usual(kind: exp.DataType, dialect: Dialect) -> str:
    """Return the form of the numbers that an engine's JSON reader returns unchanged, to the precision of the type.

    Both readers are exact for whole numbers of 18 digits. They read a fraction as a double and rewrite it: DuckDB
    preserves values of up to 15 digits, Spark writes small ones without an exponent.
    """
    more = "+" if dialect == "spark" else ""
    whole = f"(?:0|-?[1-9][0-9]{{0,17}}{more})"
    size = types.decimal(Type(types.text(kind)))
    before, after = (5, 2) if dialect == "spark" else (10, 4)
    digits = min(size[1] if size else after, after)
    if digits == 0 or (kind.this != exp.DataType.Type.DECIMAL and types.text(kind) not in LARGEST):
        return whole
    fraction = f"-?(?:0|[1-9][0-9]{{0,{before}}}{more})[.][0-9]{{1,{digits}}}{more}"
    return f"(?:{fraction}|{whole})"
