"""Validate the column types of contracts: Spark SQL types that can be stored, as can the names of fields. Pure."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrun.errors import Problem
from sqlrun.load.forbidden_names import ANOTHER, column_fault
from sqlrun.project import Column, Model, Project, Seed, Source
from sqlrun.transpile import spark_types
from sqlrun.transpile.dialect import DIALECT

# Spark SQL's names of types and of an interval's fields. The parser also reads other engines' names.
NAMES = frozenset(
    {
        "boolean", "byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint", "float", "real",
        "double",
        "dec", "decimal", "numeric", "date", "timestamp", "timestamp_ntz", "timestamp_ltz", "string", "char",
        "character",
        "varchar", "binary", "void", "null", "array", "map", "struct", "variant", "interval", "year", "month", "day",
        "hour", "minute", "second",
    }
)  # fmt: skip
# A name that ends a type: the name of a struct's field has a colon or a type after it.
_NAME = re.compile(r"(?<![\w`])[a-z_]\w*(?![\w`])(?!\s*:)(?!\s+[a-z`])", re.IGNORECASE)
_SIZED = re.compile(r"\b(?:char|character|varchar)\b(?!\s*\()(?!\s*:)", re.IGNORECASE)
# What Spark SQL calls the types of other engines.
MEANT = {
    "text": "string", "varchar": "string", "char": "string", "nvarchar": "string", "uuid": "string", "json": "string",
    "datetime": "timestamp", "timestamptz": "timestamp", "time": "string", "bool": "boolean", "number": "decimal(18,2)",
    "int64": "bigint", "int32": "int", "int4": "int", "int8": "bigint", "float64": "double", "float8": "double",
    "bytes": "binary", "bytea": "binary", "blob": "binary",
}  # fmt: skip

TYPES = ("string", "int", "bigint", "decimal(18,2)", "date", "timestamp", "boolean", "double", "smallint")


def problems(project: Project) -> Iterable[Problem]:
    """Yield problems: types that Spark SQL or Delta doesn't have (SR309), and fields with invalid names (SR738)."""
    listed: tuple[Model | Seed | Source, ...] = (*project.models, *project.seeds, *project.sources)
    # A type that could not be inferred is another problem.
    for column in (column for noun in listed for column in noun.columns if column.type):
        if not is_type(column.type):
            meant = MEANT.get(column.type.partition("(")[0].strip())
            near = [meant] if meant else difflib.get_close_matches(column.type, TYPES, 1)
            hint = "Use a Spark SQL type: string, int, bigint, decimal(18,2), date, timestamp, boolean, "
            hint += "array<...>, struct<name:type,...>." + (f" Did you mean `{near[0]}`?" if near else "")
            yield Problem("SR309", column.place, f"unknown type `{column.type}` of column `{column.name}`", hint)
        elif _has_interval(column.type):
            message = f"column `{column.name}` is `{column.type}`, which a Delta table can't store"
            hint = "Use bigint, for a number of seconds: timestampdiff(second, begin, end)."
            yield Problem("SR309", column.place, message, hint)
        elif fault := _field_fault(column.type):
            yield Problem("SR738", column.place, f"a field name in column `{column.name}` {fault}", ANOTHER)


def types_of(columns: Iterable[Column]) -> dict[str, str]:
    """Return the type of each column; `string` for an invalid one, which `problems` reports."""
    return {column.name: column.type if is_type(column.type) else "string" for column in columns}


@functools.lru_cache(maxsize=4096)
def _has_interval(text: str) -> bool:
    """Return whether a type is an interval, or has one inside it."""
    if "interval" not in text.lower():
        return False
    parts = exp.DataType.build(text, dialect=DIALECT).find_all(exp.DataType)
    return any(part.this == exp.DType.INTERVAL or isinstance(part.this, exp.Interval) for part in parts)


@functools.lru_cache(maxsize=4096)
def _field_fault(text: str) -> str:
    """Return what is wrong with a field's name in a type; "" if all names are valid."""
    left = [spark_types.read(text)] if "struct" in text else []
    for kind in left:
        if kind is not None:
            fault = next(filter(None, map(column_fault, kind.fields)), "")
            if fault:
                return fault
            left.extend(kind.parts)
    return ""


@functools.lru_cache(maxsize=4096)  # a project has many columns but few types
def is_type(text: str) -> bool:
    """Return whether a text is one type of Spark SQL and nothing after it.

    >>> is_type("array<struct<text:string>>"), is_type("text"), is_type("datetime"), is_type("varchar")
    (True, False, False, False)
    """
    plain = re.sub("`[^`]*`", "``", text)
    if _SIZED.search(plain) or any(name.lower() not in NAMES for name in _NAME.findall(plain)):
        return False
    # sqlglot's own reader of types stops at the first end.
    try:
        kind = exp.DataType.build(text, dialect=DIALECT)
        statements = sqlglot.parse(f"select cast(null as {text}\n)", read=DIALECT)
    except (SqlglotError, ValueError, RecursionError):
        return False
    cast_ = statements[0].expressions[0] if len(statements) == 1 and isinstance(statements[0], exp.Select) else None
    if not isinstance(cast_, exp.Cast) or {key for key, value in cast_.args.items() if value} != {"this", "to"}:
        return False
    return not any(part.this == exp.DataType.Type.USERDEFINED for part in kind.find_all(exp.DataType))
