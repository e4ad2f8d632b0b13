"""Partition by values that can't name a folder: a hidden column names the partition. Pure.

In Delta's log an empty text is NULL, and writers name a partition's folder after its value. So `''`,
`__HIVE_DEFAULT_PARTITION__`, a text of 300 bytes or a time after year 9999 would read back as another value, or not at
all. All writers agree about days, whole numbers and booleans. Every other type gets a hidden column of ASCII letters,
digits and a hash: `_part_1` for the first column of `partition_by`. The column itself stays in the data files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlrun.engine_api import Append, Dialect, Load, Merge, Overwrite, Replace, Statement, StoredColumn
from sqlrun.transpile.writer import identifier, string

# Types whose values all writers name alike.
PLAIN = {"int", "bigint", "smallint", "tinyint", "boolean", "date"}
TIMES = {"timestamp", "timestamp_ntz", "timestampntz"}
# Number of letters and digits of a text that its partition's name shows.
SHOWN = 24


def may_part(kind: str) -> bool:
    """Return whether a table can be partitioned by a column of this type.

    >>> [may_part(kind) for kind in ("string", "decimal(10,2)", "double", "array<int>")]
    [True, False, False, False]
    """
    return kind in PLAIN | TIMES | {"string"}


def hidden(columns: Sequence[StoredColumn], partition_by: Iterable[str]) -> dict[str, str]:
    """Return the hidden column of each partition column that needs one.

    >>> hidden([StoredColumn("city", "string"), StoredColumn("day", "date")], ["day", "city"])
    {'city': '_part_2'}
    """
    kinds = {column.name: column.type for column in columns}
    return {name: f"_part_{n}" for n, name in enumerate(partition_by, 1) if kinds[name] not in PLAIN}


def stored(
    columns: tuple[StoredColumn, ...], partition_by: tuple[str, ...]
) -> tuple[tuple[StoredColumn, ...], tuple[str, ...]]:
    """Return a table's columns including hidden ones, and the columns that partition its files."""
    names = hidden(columns, partition_by)
    added = (StoredColumn(name, "string") for name in names.values())
    return (*columns, *added), tuple(names.get(name, name) for name in partition_by)


def filled(
    statement: Statement, columns: Sequence[StoredColumn], partition_by: Sequence[str], dialect: Dialect
) -> Statement:
    """Return a statement that writes the hidden columns, and reads and replaces partitions by them."""
    names = hidden(columns, partition_by)
    kinds = {column.name: column.type for column in columns}
    if dialect == "spark":
        statement = _guarded(statement, [name for name in partition_by if kinds[name] == "date"])
    if not names:
        return statement
    match statement:
        case Append():
            return Append(_with(statement.sql, names, kinds, dialect))
        case Replace():
            return Replace(_with(statement.sql, names, kinds, dialect))
        case Overwrite():
            items = (
                f"{name_of(identifier(name, dialect), kinds[name], dialect)} as {identifier(names[name], dialect)}"
                if name in names
                else identifier(name, dialect)
                for name in partition_by
            )
            partitions = f"select distinct {', '.join(items)} from ({statement.partitions}) as _touched"
            return Overwrite(_with(statement.sql, names, kinds, dialect), partitions)
        case Merge():
            return _merged(statement, names, kinds, dialect)
        case Load():
            raise AssertionError("seeds have no partitions")


def _guarded(statement: Statement, days: Sequence[str]) -> Statement:
    """Make Spark fail at a day that Delta's log can't represent (SR736); DuckDB's writer checks its rows itself."""
    if not days:
        return statement
    match statement:
        case Append() | Replace() | Overwrite():
            listed = ", ".join(identifier(name, "spark") for name in days)
            items = ", ".join(f"{_day(identifier(n, 'spark'), n)} as {identifier(n, 'spark')}" for n in days)
            return replace(statement, sql=f"select * except ({listed}), {items} from ({statement.sql})")
        case Merge():
            update = tuple((name, _day(text, name) if name in days else text) for name, text in statement.update)
            insert = tuple((name, _day(text, name) if name in days else text) for name, text in statement.insert)
            return replace(statement, update=update, insert=insert)
        case Load():
            return statement


def _day(value: str, name: str) -> str:
    message = f"SR736 the partition column `{name}` must be in years 1 to 9999. Filter such rows, or limit the value"
    inside = f"({value}) is null or ({value}) between date '0001-01-01' and date '9999-12-31'"
    return f"if({inside}, {value}, raise_error({string(message, 'spark')}))"


def _merged(statement: Merge, names: Mapping[str, str], kinds: Mapping[str, str], dialect: Dialect) -> Merge:
    # A column of the key never changes, so its hidden column is inserted but never updated.
    updates, inserts = dict(statement.update), dict(statement.insert)
    update = [
        (part, name_of(updates[name], kinds[name], dialect))
        for name, part in names.items()
        if name in updates and name not in statement.key
    ]
    insert = [(part, name_of(inserts[name], kinds[name], dialect)) for name, part in names.items() if name in inserts]
    named = {name: names[name] for name in statement.prune.partitions if name in names}
    return replace(
        statement,
        delta=_with(statement.delta, named, kinds, dialect) if named else statement.delta,
        update=(*statement.update, *update),
        insert=(*statement.insert, *insert),
        prune=replace(statement.prune, partitions=tuple(names.get(name, name) for name in statement.prune.partitions)),
    )


def with_parts(sql: str, columns: Sequence[StoredColumn], partition_by: Sequence[str], dialect: Dialect) -> str:
    """Return a query over a table's columns with the hidden columns added."""
    names = hidden(columns, partition_by)
    return _with(sql, names, {column.name: column.type for column in columns}, dialect) if names else sql


def _with(sql: str, names: Mapping[str, str], kinds: Mapping[str, str], dialect: Dialect) -> str:
    items = (
        f"{name_of(f'_parted.{identifier(name, dialect)}', kinds[name], dialect)} as {identifier(part, dialect)}"
        for name, part in names.items()
    )
    return f"select _parted.*, {', '.join(items)} from ({sql}) as _parted"


def name_of(value: str, kind: str, dialect: Dialect) -> str:
    """Return SQL for the name of a value's partition: NULL for NULL, and different names for different values.

    >>> print(name_of("t.city", "string", "duckdb"))
    substr(regexp_replace((t.city), '[^A-Za-z0-9]+', '', 'g'), 1, 24) || '-' || md5((t.city))
    >>> print(name_of("t.at", "timestamp", "spark"))
    concat('t', cast(unix_micros(cast((t.at) as timestamp)) as string))
    """
    spark = dialect == "spark"
    if kind == "string":
        every = "" if spark else ", 'g'"
        shown = f"substr(regexp_replace(({value}), '[^A-Za-z0-9]+', ''{every}), 1, {SHOWN})"
        return f"concat({shown}, '-', md5(({value})))" if spark else f"{shown} || '-' || md5(({value}))"
    assert kind in TIMES, kind
    micros = f"unix_micros(cast(({value}) as timestamp))" if spark else f"epoch_us({value})"
    return f"concat('t', cast({micros} as string))" if spark else f"'t' || cast({micros} as varchar)"
