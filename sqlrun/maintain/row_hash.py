"""A number computed from a row: from a text that both engines write alike, or by DuckDB's own hash function. Pure.

In the text, values that the engines format differently are normalized: times are microseconds, dates are days, texts
have their length before them. FLOAT and DOUBLE columns are left out, because their digits depend on the engine.

DuckDB's `hash` takes a third of the time of the text's MD5 hash, but another version of DuckDB may compute other
numbers (decision 71). `DUCKDB_PROBE` detects that.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from sqlglot import exp

from sqlrun.engine_api import Dialect, StoredColumn
from sqlrun.incremental import types
from sqlrun.transpile.writer import identifier, type_name

Kind = exp.DataType.Type
INEXACT = (Kind.FLOAT, Kind.DOUBLE)
# Number of hexadecimal digits of a hash that are used: their number fits in a BIGINT.
DIGITS = 15
# A query of one number that depends on how DuckDB hashes values of each type, alone, nested and together.
DUCKDB_PROBE = """
select hash(
    null, '', 'short', 'longer than twelve bytes', true, 7::tinyint, 7::smallint, 7::integer, 7::bigint, 7::hugeint,
    7.5::decimal(4, 1), 7.5::decimal(9, 1), 7.5::decimal(18, 1), 7.5::decimal(38, 1), 0.1::float, 0.1::double,
    date '1969-12-31', timestamptz '1969-12-31 23:59:59.999999+00', 'ab'::blob, ['a', null], [{'a': 1, 'b': 'c'}],
    {'a': {'b': null}}
) as number
"""


def number(columns: Iterable[StoredColumn], dialect: Dialect, salt: str = "") -> str:
    """Return SQL for a row's number, 0 to 16^15 - 1: the first digits of the MD5 hash of its text.

    Equal rows have equal numbers on both engines; another salt gives other numbers.
    """
    text = f"md5({row(columns, dialect, salt)})"
    if dialect == "spark":
        return f"cast(conv(substr({text}, 1, {DIGITS}), 16, 10) as decimal(20, 0))"
    return f"cast('0x' || substr({text}, 1, {DIGITS}) as bigint)"


def duckdb_number(columns: Iterable[StoredColumn]) -> str:
    """Return SQL for a row's number by DuckDB's hash function, 0 to 2^60 - 1, with all columns.

    The casts make a file that stores another type count as the same values. A map counts by its text, because its
    entries have no order.

    >>> duckdb_number([StoredColumn("n", "bigint")])
    'cast(hash(cast("n" as BIGINT)) >> 4 as bigint)'
    """
    return _duckdb_number(tuple(columns))


@functools.lru_cache(1024)
def _duckdb_number(columns: tuple[StoredColumn, ...]) -> str:
    items = []
    for column in columns:
        value, kind = identifier(column.name, "duckdb"), types.parse(column.type)
        assert kind is not None
        is_map = any(one.this == Kind.MAP for one in kind.find_all(exp.DataType))
        items.append(
            _text(value, kind, "duckdb", 0) if is_map else f"cast({value} as {type_name(column.type, 'duckdb')})"
        )
    return f"cast(hash({', '.join(items)}) >> {64 - 4 * DIGITS} as bigint)"


def row(columns: Iterable[StoredColumn], dialect: Dialect, salt: str = "") -> str:
    """Return SQL for the text of a row of columns.

    >>> print(row([StoredColumn("n", "bigint")], "duckdb"))
    concat('', coalesce(cast("n" as varchar), '~'), '|')
    """
    return _row(tuple(columns), dialect, salt)


@functools.lru_cache(1024)  # the same in each tick
def _row(columns: tuple[StoredColumn, ...], dialect: Dialect, salt: str) -> str:
    items = [f"'{salt}'"]
    for column in columns:
        kind = types.parse(column.type)
        assert kind is not None
        if kind.this not in INEXACT:
            items += [*_pieces(identifier(column.name, dialect), kind, dialect), "'|'"]
    return f"concat({', '.join(items)})"


def _pieces(value: str, kind: exp.DataType, dialect: Dialect, depth: int = 0) -> list[str]:
    """Return SQL of texts that together are a value's, or '~' for NULL.

    On DuckDB they are several: its concat() ignores NULLs, and a text that is written directly isn't copied again.
    """
    if dialect == "duckdb" and kind.this in (Kind.ARRAY, Kind.LIST):
        elements = _elements(value, kind.expressions[0], dialect, depth)
        return [_unless_null(value, "'['"), elements, f"case when {value} is not null then ']' end"]
    if dialect == "duckdb" and kind.this == Kind.STRUCT:
        return [_unless_null(value, _struct(value, kind, dialect, depth))]
    if dialect == "duckdb" and _is_text(kind):
        return [f"strlen({value})", _unless_null(value, "':'"), value]
    return [f"coalesce({_text(value, kind, dialect, depth)}, '~')"]


def _unless_null(value: str, text: str) -> str:
    return f"case when {value} is null then '~' else {text} end"


def _is_text(kind: exp.DataType) -> bool:
    return types.text(kind) == "string" or kind.this in exp.DataType.TEXT_TYPES


def _text(value: str, kind: exp.DataType, dialect: Dialect, depth: int) -> str:
    """Return SQL for the text of a value, NULL for NULL."""
    spark = dialect == "spark"
    match kind.this:
        case Kind.ARRAY | Kind.LIST:
            joined = _elements(value, kind.expressions[0], dialect, depth)
            return f"case when {value} is not null then concat('[', {joined}, ']') end"
        case Kind.MAP:
            entry = exp.DataType(this=Kind.STRUCT, expressions=_fields(*kind.expressions))
            entries = f"map_entries({value})"
            joined = _elements(entries, entry, dialect, depth, ordered=True)
            return f"case when {entries} is not null then concat('[', {joined}, ']') end"
        case Kind.STRUCT:
            return f"case when {value} is not null then {_struct(value, kind, dialect, depth)} end"
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.TIMESTAMPLTZ | Kind.TIMESTAMPNTZ | Kind.DATETIME:
            made = f"unix_micros(cast({value} as timestamp))" if spark else f"epoch_us({value})"
            return f"cast({made} as {'string' if spark else 'varchar'})"
        case Kind.DATE:
            made = f"unix_date({value})" if spark else f"date_diff('day', date '1970-01-01', {value})"
            return f"cast({made} as {'string' if spark else 'varchar'})"
        case Kind.BINARY | Kind.VARBINARY:
            return f"hex({value})"
        case _ if spark and _is_text(kind):
            # `||` is NULL if one part is NULL.
            return f"(cast(octet_length({value}) as string) || ':' || {value})"
        case _:
            return f"cast({value} as {'string' if spark else 'varchar'})"


def _fields(key: exp.DataType, value: exp.DataType) -> list[exp.ColumnDef]:
    return [exp.ColumnDef(this=exp.to_identifier(name), kind=kind) for name, kind in (("key", key), ("value", value))]


def _struct(value: str, kind: exp.DataType, dialect: Dialect, depth: int) -> str:
    """Return SQL for the text of a struct that isn't NULL."""
    parts = [
        ", ".join(_pieces(f"{value}.{identifier(f.name, dialect)}", f.args["kind"], dialect, depth))
        for f in kind.expressions
        if f.args["kind"].this not in INEXACT
    ]
    joined = ", '|', ".join(parts) or "''"
    return f"concat('(', {joined}, ')')"


def _elements(value: str, inner: exp.DataType, dialect: Dialect, depth: int, *, ordered: bool = False) -> str:
    """Return SQL for the texts of an array's elements, sorted if `ordered`: a map has no order itself."""
    name = f"_e{depth}"
    pieces = ["''"] if inner.this in INEXACT else _pieces(name, inner, dialect, depth + 1)
    element = pieces[0] if len(pieces) == 1 else f"concat({', '.join(pieces)})"
    if dialect == "spark":
        texts = f"transform({value}, {name} -> {element})"
        texts = f"array_sort({texts})" if ordered else texts
        return f"array_join({texts}, ',')"
    texts = f"list_transform({value}, lambda {name}: {element})"
    texts = f"list_sort({texts})" if ordered else texts
    return f"array_to_string({texts}, ',')"
