"""A source's fields: from text to typed values, and the reasons why a text has no value. Pure.

Fields are read from `_json`, a struct of the source's columns whose leaves are text; in Spark with marks
(`line_grammar.readable`). In DuckDB `_values` has the typed values, and `_nested` lists the paths of texts that are
objects or lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from sqlrun.engine_api import Dialect
from sqlrun.incremental import types
from sqlrun.incremental.landing import line_types
from sqlrun.incremental.landing.line_grammar import NUMBER_MARK, TEXT_MARK
from sqlrun.incremental.landing.undeclared_fields import EACH, Path, json_path
from sqlrun.project import Column, Source
from sqlrun.transpile import writer as sql


@dataclass(frozen=True, slots=True)
class _Fault:
    """A way in which a field can be invalid: missing, or a text that its type doesn't accept."""

    reason: str
    path: Path
    kind: exp.DataType | None = None  # None: the field is missing
    is_within: bool = False  # it is a fault only where the object around the field isn't NULL


def value(column: Column, dialect: Dialect) -> str:
    """Return Spark SQL for the typed value of a column; leaves whose text isn't valid for their type are NULL."""
    text = f"_json.{sql.identifier(column.name, 'spark')}"
    return _typed(text, _kind(column), dialect, _may_lack_all(column), bool(column.inside))


def fits(column: Column) -> str:
    """Return DuckDB SQL that is true if a column's value is complete, so that no fault can apply to it.

    A nullable column may be NULL. The fields of a struct may not, unless the column may be NULL inside. Of such a
    column, a list is complete if no value in it is NULL: others are left to the faults.
    """
    name = sql.identifier(column.name, "duckdb")
    text, value, kind = f"_json.{name}", f"_values.{name}", _kind(column)
    if column.inside:
        fitting = _fits_inside(text, value, kind)
        return fitting if column.nullable else f"({text} is not null and {fitting})"
    whole = _whole(value, kind)
    return f"({text} is null or {whole})" if column.nullable else whole


def faults(column: Column, dialect: Dialect) -> list[tuple[str, str]]:
    """Return (reason, test) for each fault that a column's text can have, in the order of precedence."""
    name = column.name
    found = [] if column.nullable else [_Fault(f"{name}: missing", (name,))]
    found += _faults(_kind(column), (name,), name, bool(column.inside))
    tests = [(fault.reason, (_in_spark if dialect == "spark" else _in_duckdb)(fault)) for fault in found]
    if column.inside or not _may_lack_all(column):
        return tests
    here = f"_json.{sql.identifier(name, dialect)} is not null"
    return [(reason, f"({here} and {test})") for reason, test in tests]


def _may_lack_all(column: Column) -> bool:
    """Return whether a column is a struct that may be NULL: then it lacks all its fields, and that is no fault."""
    return column.nullable and _kind(column).this == exp.DataType.Type.STRUCT


def _kind(column: Column) -> exp.DataType:
    kind = types.parse(column.inside or column.type)
    assert kind is not None
    return kind


def _is_required(field: exp.Expr) -> bool:
    """Return whether a field of a column that may be NULL inside has `not null`."""
    return bool(field.args.get("constraints"))


def _typed(
    text: str, kind: exp.DataType, dialect: Dialect, may_lack: bool = False, is_inside: bool = False, depth: int = 0
) -> str:
    """Return Spark SQL for the typed value of a text.

    A struct that `may_lack` all its fields is NULL then, and with `is_inside` so is any other, also in arrays.
    """
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            element = f"e{depth}"
            inner = _typed(element, kind.expressions[0], dialect, False, is_inside, depth + 1)
            return f"transform({text}, {element} -> {inner})"
        case exp.DataType.Type.STRUCT:
            fields = [(sql.identifier(field.name, "spark"), field.args["kind"]) for field in kind.expressions]
            items = (
                f"{_typed(f'{text}.{name}', inner, dialect, may_lack, is_inside, depth)} as {name}"
                for name, inner in fields
            )
            found = f"struct({', '.join(items)})"
            # For Spark a struct that is written is never NULL, and its Arrow has no place for one inside of a NULL.
            return f"case when {text} is not null then {found} end" if may_lack or is_inside else found
        case _ if line_types.is_text(kind):
            return _unmarked(text) if dialect == "spark" else text
        case _:
            return line_types.value(_unmarked(text) if dialect == "spark" else text, kind)


def _unmarked(text: str) -> str:
    """Return SQL for a text of Spark's reader without the mark of an unusual line; objects and lists become NULL."""
    marked = f"left({text}, 1) in ('{TEXT_MARK}', '{NUMBER_MARK}') then substring({text}, 2)"
    return f"(case when _usual then {text} when {marked} when {text} in ('true', 'false') then {text} end)"


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


def _fits_inside(text: str, value: str, kind: exp.DataType) -> str:
    """Return DuckDB SQL that is true for a value without a fault, of a column that may be NULL inside."""
    match kind.this:
        case exp.DataType.Type.STRUCT:
            tests = []
            for field in kind.expressions:
                name = sql.identifier(field.name, "duckdb")
                tests.append(_fits_inside(f"{text}.{name}", f"{value}.{name}", field.args["kind"]))
                if _is_required(field):
                    tests.append(f"({text} is null or {text}.{name} is not null)")
            return f"({' and '.join(tests)})"
        case _:
            return f"({text} is null or {_whole(value, kind)})"


def _faults(kind: exp.DataType, path: Path, shown: str, is_inside: bool) -> Iterator[_Fault]:
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST if is_inside:
            yield from _faults(kind.expressions[0], (*path, EACH), f"{shown}[]", is_inside)
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            yield _Fault(f"{shown}: an element is missing", (*path, EACH))
            yield from _inside(kind.expressions[0], (*path, EACH), f"{shown}[]")
        case exp.DataType.Type.STRUCT if is_inside:
            for field in kind.expressions:
                below, named = (*path, field.name), f"{shown}.{field.name}"
                if _is_required(field):
                    yield _Fault(f"{named}: missing", below, is_within=True)
                yield from _faults(field.args["kind"], below, named, is_inside)
        case exp.DataType.Type.STRUCT:
            for field in kind.expressions:
                yield from _inside(field.args["kind"], (*path, field.name), f"{shown}.{field.name}")
        case _:
            yield _Fault(f"{shown}: not of type {types.text(kind)}", path, kind)


def _inside(kind: exp.DataType, path: Path, shown: str) -> Iterator[_Fault]:
    """Return the faults of a nested field, which is required; a missing struct lacks all its fields."""
    if kind.this != exp.DataType.Type.STRUCT:
        yield _Fault(f"{shown}: missing", path)
    yield from _faults(kind, path, shown, is_inside=False)


def _in_spark(fault: _Fault) -> str:
    def test(text: str, path: Path, depth: int) -> str:
        if not path:
            missing = f"{text} is null"
            return (
                missing if fault.kind is None else f"{text} is not null and {_typed(text, fault.kind, 'spark')} is null"
            )
        if path[0] is EACH:
            return f"exists({text}, e{depth} -> {test(f'e{depth}', path[1:], depth + 1)})"
        found = test(f"{text}.{sql.identifier(path[0], 'spark')}", path[1:], depth)
        return f"{text} is not null and {found}" if fault.is_within and len(path) == 1 else found

    return test("_json", fault.path, 0)


def _in_duckdb(fault: _Fault) -> str:
    """Return DuckDB's test of a fault, by comparison with the typed values.

    Writing the casts a second time would make a text that takes long to plan. A leaf with an invalid text has no value,
    so more values than texts are NULL.
    """
    if fault.kind is not None and line_types.is_text(fault.kind):
        return f"coalesce(list_contains(_nested, {sql.string(json_path(fault.path), 'duckdb')}), false)"
    texts = _nulls("_json", fault.path, fault.is_within)
    if EACH in fault.path:
        return f"{texts} > 0" if fault.kind is None else f"{_nulls('_values', fault.path)} > {texts}"
    return texts if fault.kind is None else f"not {texts} and {_nulls('_values', fault.path)}"


def nested(source: Source) -> str:
    """Return DuckDB SQL for the paths of texts that are objects or lists: DuckDB reads these as their JSON."""
    paths = [
        json_path(fault.path)
        for column in source.columns
        for fault in _faults(_kind(column), (column.name,), "", bool(column.inside))
        if fault.kind is not None and line_types.is_text(fault.kind)
    ]
    tests = []
    for path in paths:
        text = sql.string(path, "duckdb")
        found = f"json_type(_line, {text})"
        kinds = f"list_has_any({found}, ['OBJECT', 'ARRAY'])" if "[*]" in path else f"{found} in ('OBJECT', 'ARRAY')"
        tests.append(f"case when {kinds} then {text} end")
    return f"nullif(list_filter([{', '.join(tests)}]::varchar[], lambda p: p is not null), []::varchar[])"


def _nulls(value: str, path: Path, is_within: bool = False, depth: int = 0) -> str:
    """Return DuckDB SQL for the number of NULLs at a path, or whether the field is NULL if the path has no array.

    With `is_within`, a field of an object that is NULL doesn't count.
    """
    around = ""
    while path and path[0] is not EACH:
        around, value, path = value, f"{value}.{sql.identifier(str(path[0]), 'duckdb')}", path[1:]
    if not path:
        return f"({around} is not null and {value} is null)" if is_within else f"({value} is null)"
    element, rest = f"e{depth}", path[1:]
    inner = _nulls(element, rest, is_within, depth + 1)
    if EACH in rest:
        return f"list_sum(list_transform({value}, lambda {element}: {inner}))"
    return f"len(list_filter({value}, lambda {element}: {inner}))"
