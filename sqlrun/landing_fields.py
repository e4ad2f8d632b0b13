"""A source's fields, which are text at first: their typed values, and what is wrong with those that have none. Pure.

Fields are read from `_json`, a struct of the source's columns whose leaves are text. In DuckDB `_values` has the typed
ones beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from sqlrun.engines.protocol import Dialect
from sqlrun.incremental import sql, types
from sqlrun.incremental.algebra import Type
from sqlrun.model import Column
from sqlrun.rescue import EACH, Path

# What a value's text must look like before it is cast; the same strictness on every engine.
LOOKS = {
    "int": "^[+-]?[0-9]{1,10}$",
    "bigint": "^[+-]?[0-9]{1,19}$",
    "smallint": "^[+-]?[0-9]{1,5}$",
    "tinyint": "^[+-]?[0-9]{1,3}$",
    "boolean": "^(true|false)$",
    "double": "^[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]{1,3})?$",
    "date": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "timestamp": "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})?$",
}


@dataclass(frozen=True, slots=True)
class _Fault:
    """What can be wrong with a field: it is missing, or its text doesn't look like its type."""

    reason: str
    path: Path
    kind: exp.DataType | None = None  # None: it is missing


def value(column: Column) -> str:
    """Write the typed value of a column, in Spark SQL; leaves whose text doesn't look like their type are NULL."""
    return _typed(f"_json.{sql.identifier(column.name, 'spark')}", _kind(column))


def fits(column: Column) -> str:
    """Write a test, in DuckDB, that a column's value is whole: then nothing is wrong with it.

    A column may be NULL where it says so; the fields of a struct may not, nor those of one that is NULL.
    """
    whole, name = _whole(f"_values.{sql.identifier(column.name, 'duckdb')}", _kind(column)), column.name
    may_lack = column.nullable and _kind(column).this != exp.DataType.Type.STRUCT
    return f"(_json.{sql.identifier(name, 'duckdb')} is null or {whole})" if may_lack else whole


def faults(column: Column, dialect: Dialect) -> list[tuple[str, str]]:
    """List (reason, test) for the ways in which a column's text doesn't fit its type, in the order of their weight."""
    name = column.name
    found = [] if column.nullable else [_Fault(f"{name}: missing", (name,))]
    found += _faults(_kind(column), (name,), name)
    return [(fault.reason, (_in_spark if dialect == "spark" else _in_duckdb)(fault)) for fault in found]


def _kind(column: Column) -> exp.DataType:
    kind = types.parse(column.type)
    assert kind is not None
    return kind


def _typed(text: str, kind: exp.DataType, depth: int = 0) -> str:
    name = types.text(kind)
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            element = f"e{depth}"
            return f"transform({text}, {element} -> {_typed(element, kind.expressions[0], depth + 1)})"
        case exp.DataType.Type.STRUCT:
            fields = ", ".join(
                f"{_typed(f'{text}.`{f.name}`', f.args['kind'], depth)} as `{f.name}`" for f in kind.expressions
            )
            return f"struct({fields})"
        case _ if _is_text(kind):
            return text
        case _:
            return f"case when {text} rlike '{_looks(kind)}' then try_cast({text} as {name}) end"


def _is_text(kind: exp.DataType) -> bool:
    return types.text(kind) in ("string", "varchar")


def _looks(kind: exp.DataType) -> str:
    size = types.decimal(Type(types.text(kind)))
    if kind.this == exp.DataType.Type.DECIMAL and size is not None:
        fraction = f"([.][0-9]{{1,{size[1]}}})?" if size[1] else ""
        return f"^[+-]?[0-9]{{1,{max(1, size[0] - size[1])}}}{fraction}$"
    return LOOKS.get(types.text(kind), "^.*$")


def _whole(value: str, kind: exp.DataType, depth: int = 0) -> str:
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            inner = _whole(f"e{depth}", kind.expressions[0], depth + 1)
            return f"coalesce(len(list_filter({value}, lambda e{depth}: not ({inner}))) = 0, false)"
        case exp.DataType.Type.STRUCT:
            fields = (_whole(f'{value}."{f.name}"', f.args["kind"], depth) for f in kind.expressions)
            return f"({' and '.join(fields)})"
        case _:
            return f"{value} is not null"


def _faults(kind: exp.DataType, path: Path, shown: str) -> Iterator[_Fault]:
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            yield _Fault(f"{shown}: an element is missing", (*path, EACH))
            yield from _inside(kind.expressions[0], (*path, EACH), f"{shown}[]")
        case exp.DataType.Type.STRUCT:
            for field in kind.expressions:
                yield from _inside(field.args["kind"], (*path, field.name), f"{shown}.{field.name}")
        case _ if not _is_text(kind):
            yield _Fault(f"{shown}: not of type {types.text(kind)}", path, kind)


def _inside(kind: exp.DataType, path: Path, shown: str) -> Iterator[_Fault]:
    """What may be part of another must be there; a struct that isn't lacks all its fields."""
    if kind.this != exp.DataType.Type.STRUCT:
        yield _Fault(f"{shown}: missing", path)
    yield from _faults(kind, path, shown)


def _in_spark(fault: _Fault) -> str:
    def test(text: str, path: Path, depth: int) -> str:
        if not path:
            missing = f"{text} is null"
            return missing if fault.kind is None else f"{text} is not null and {_typed(text, fault.kind)} is null"
        if path[0] is EACH:
            return f"exists({text}, e{depth} -> {test(f'e{depth}', path[1:], depth + 1)})"
        return test(f"{text}.{sql.identifier(path[0], 'spark')}", path[1:], depth)

    return test("_json", fault.path, 0)


def _in_duckdb(fault: _Fault) -> str:
    """Compare with the typed values, which are there: writing them once more makes a text that takes long to plan.

    A leaf whose text doesn't fit has no value: then more values than texts are NULL.
    """
    texts = _nulls("_json", fault.path)
    if EACH in fault.path:
        return f"{texts} > 0" if fault.kind is None else f"{_nulls('_values', fault.path)} > {texts}"
    return texts if fault.kind is None else f"not {texts} and {_nulls('_values', fault.path)}"


def _nulls(value: str, path: Path, depth: int = 0) -> str:
    """Write how many of the fields at a path are NULL, in DuckDB; of a path without arrays, whether its field is."""
    while path and path[0] is not EACH:
        value, path = f"{value}.{sql.identifier(str(path[0]), 'duckdb')}", path[1:]
    if not path:
        return f"({value} is null)"
    element, rest = f"e{depth}", path[1:]
    inner = _nulls(element, rest, depth + 1)
    if EACH in rest:
        return f"list_sum(list_transform({value}, lambda {element}: {inner}))"
    return f"len(list_filter({value}, lambda {element}: {inner}))"
