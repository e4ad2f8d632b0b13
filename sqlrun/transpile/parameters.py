"""Named parameters of a statement, the times of a tick, and their values as literals. Pure.

A statement is written once for all ticks of its kind: it names the times `$as_of` and `$previous` on DuckDB, `:as_of`
and `:previous` on Spark. An engine replaces them by values before it parses a statement (decision 39).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Literal, cast

from sqlglot import exp

from sqlrun.engine_api import Append, Dialect, Load, Merge, Overwrite, Replace, Statement, Write
from sqlrun.transpile import writer

Name = Literal["as_of", "previous"]
# A time is a literal of its own, or the text that a cast parses.
Form = Literal["", "_text", "_day"]
MARKS: Mapping[Dialect, str] = {"duckdb": "$", "spark": ":"}
PARAMETER = r"(as_of|previous)(_text|_day)?(?!\w)"
# Strings, quoted names and comments are separate tokens, so that nothing inside them is a parameter. Each branch begins
# with a different character, so that the search skips all other characters at once.
TOKENS: Mapping[Dialect, re.Pattern[str]] = {
    "duckdb": re.compile(
        r"""'(?:(?<=\b[eE]')(?:\\.|[^'\\])*|[^']*)'|"[^"]*"|--[^\n]*|/\*.*?\*/|\$(?<!\w\$)""" + PARAMETER, re.DOTALL
    ),
    "spark": re.compile(
        r"""'(?:(?<=\b[rR]')[^']*|(?:\\.|[^'\\])*)'|"(?:(?<=\b[rR]")[^"]*|(?:\\.|[^"\\])*)"|`[^`]*`"""
        r"""|--[^\n]*|/\*.*?\*/|:(?<!::)""" + PARAMETER,
        re.DOTALL,
    ),
}


def timestamp(name: Name, dialect: Dialect) -> str:
    """Return the parameter for a time's literal.

    >>> timestamp("as_of", "duckdb"), timestamp("previous", "spark")
    ('$as_of', ':previous')
    """
    return MARKS[dialect] + name


def node(name: Name, form: Form) -> exp.Placeholder:
    """Return the parameter for a time's text, to be cast, as a node of a syntax tree.

    >>> node("as_of", "_day").sql("duckdb")
    '$as_of_day'
    """
    return exp.Placeholder(this=f"{name}{form}")


def named(text: str, dialect: Dialect) -> bool:
    """Return whether a text contains a parameter.

    >>> named("select $as_of", "duckdb"), named("select '$as_of', x$as_of /* $as_of */", "duckdb")
    (True, False)
    """
    return any(found[1] for found in TOKENS[dialect].finditer(text)) if _may_name(text, dialect) else False


def filled(text: str, values: Mapping[str, datetime], dialect: Dialect) -> str:
    """Return a text with the values of its parameters as literals.

    >>> noon = {"as_of": datetime(2026, 1, 31, 12, tzinfo=timezone.utc)}
    >>> filled("select '$as_of' where at > $as_of", noon, "duckdb")
    "select '$as_of' where at > timestamptz '2026-01-31 12:00:00.000000+00'"
    >>> filled("select cast(:as_of_day as date) as `:as_of`", noon, "spark")
    "select cast('2026-01-31' as date) as `:as_of`"
    """
    if not _may_name(text, dialect):
        return text

    def literal(found: re.Match[str]) -> str:
        return _literal(values[found[1]], cast(Form, found[2] or ""), dialect) if found[1] else found[0]

    return TOKENS[dialect].sub(literal, text)


def bound_write(write: Write, dialect: Dialect) -> Write:
    """Return a write whose statement has the values of its parameters as literals."""
    return replace(write, statement=bound(write.statement, write.parameters, dialect))


def bound(statement: Statement, values: Mapping[str, datetime], dialect: Dialect) -> Statement:
    """Return a statement with the values of its parameters as literals."""

    def fill(text: str) -> str:
        return filled(text, values, dialect)

    match statement:
        case Append(sql=sql):
            return Append(fill(sql))
        case Replace(sql=sql):
            return Replace(fill(sql))
        case Overwrite(sql=sql, partitions=partitions):
            return Overwrite(fill(sql), fill(partitions))
        case Merge():
            return replace(
                statement,
                delta=fill(statement.delta),
                update=tuple((name, fill(text)) for name, text in statement.update),
                insert=tuple((name, fill(text)) for name, text in statement.insert),
                delete_when=fill(statement.delete_when),
                update_when=fill(statement.update_when),
                insert_when=fill(statement.insert_when),
            )
        case Load():
            return statement


def _may_name(text: str, dialect: Dialect) -> bool:
    mark = MARKS[dialect]
    return f"{mark}as_of" in text or f"{mark}previous" in text


def _literal(value: datetime, form: Form, dialect: Dialect) -> str:
    utc = value.astimezone(timezone.utc).replace(tzinfo=None)
    match form:
        case "":
            return writer.timestamp(value, dialect)
        case "_text":
            return writer.string(f"{utc.isoformat(' ', 'microseconds')}+00:00", dialect)
        case "_day":
            return writer.string(utc.date().isoformat(), dialect)
