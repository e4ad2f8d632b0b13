"""Statements on DuckDB: it computes the rows, and it or delta-rs writes them. Shell: DuckDB and Delta files."""

from __future__ import annotations

import dataclasses
from datetime import date, datetime, timezone
from pathlib import PurePosixPath
from typing import Any

from sqlrun.engine_api import Merge, Overwrite, Write
from sqlrun.engines.delta import answers
from sqlrun.engines.delta import stats as delta_stats
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.merge_sql import operation, same
from sqlrun.engines.duckdb import merge as duckdb_merge
from sqlrun.engines.duckdb import scan as duckdb_scan
from sqlrun.errors import EngineError
from sqlrun.runtime import arrow_rows
from sqlrun.runtime.far_times import ordered
from sqlrun.transpile.writer import identifier, string

# (key column, least, greatest) of a delta's key values.
Ranges = list[tuple[str, Any, Any]]
MOST_LITERALS = 400


def append(session: Any, table: Any, sql: str, commit: Any) -> int:
    """Append the rows of a query; return their number."""
    count = _made(session, "_rows", sql)
    _require_days(session, table, "_rows")
    if count:
        _write(table, _reader(session, "select * from _rows"), "append", commit)
    return count


def append_table(session: Any, table: Any, name: str, commit: Any) -> None:
    """Append the rows of a table of the session, in a commit even if there are none."""
    _require_days(session, table, name)
    _write(table, _reader(session, f"select * from {name}"), "append", commit)


def replace(session: Any, table: Any, sql: str, commit: Any) -> int:
    """Replace a table's rows by those of a query; return their number."""
    count = _made(session, "_rows", sql)
    _require_days(session, table, "_rows")
    _write(table, _reader(session, "select * from _rows"), "overwrite", commit)
    return max(1, count)


def overwrite(session: Any, table: Any, statement: Overwrite, partition_by: tuple[str, ...], commit: Any) -> int:
    """Replace the partitions that a query's rows belong to by these rows; return their number."""
    replaced = _values(session, statement.partitions)
    if not replaced:
        return 0
    count = _made(session, "_rows", statement.sql)
    _require_days(session, table, "_rows")
    each = [
        " and ".join(_partition_condition(name, v) for name, v in zip(partition_by, row, strict=True))
        for row in replaced
    ]
    rows = session.sql("select * from _rows").to_arrow_table()
    _write(table, rows, "overwrite", commit, predicate=" or ".join(f"({condition})" for condition in each))
    return max(1, count)


def _partition_condition(name: str, value: Any) -> str:
    """Return the condition that a partition column has a value."""
    column = identifier(name, "duckdb")
    if value is None:
        return f"{column} is null"
    text = str(value).lower() if isinstance(value, bool) else _literal(value)
    if text is None:
        raise EngineError(f"invalid partition value of {name}: {type(value).__name__} {value}")
    return f"{column} = {text}"


def load(table: Any, rows: tuple[tuple[object, ...], ...], commit: Any) -> int:
    """Replace a table's rows by rows of Python values."""
    import pyarrow as pa

    schema = pa.schema(table.schema().to_arrow())
    columns = list(zip(*rows, strict=True)) if rows else [() for _ in schema]
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)]
    _write(table, pa.table(arrays, schema=schema), "overwrite", commit)
    return max(1, len(rows))


def merge(session: Any, table: Any, write: Write, statement: Merge, commit: Any, reads: duckdb_scan.Reads) -> int:
    """Execute a MERGE: join the delta with the target in DuckDB, then write the rows that differ."""
    changed = _made(session, "s", statement.delta)
    if not changed:
        return 0
    statement = _comparing(session, statement)
    ranges, partitions = _ranges(session, statement), _partitions(session, statement)
    target_files = delta_table.files_at(table, {key for key, _, _ in ranges})
    files = list(filter(_keeper(partitions, ranges), target_files))
    plan = duckdb_merge.prepare(session, table, write, statement, files, changed)
    if plan is not None:
        reads.add(files)
        if plan.fits:
            written = duckdb_merge.carry_out(session, table, write, statement, plan)
            if written:
                paths = (file["path"] for file in target_files)
                duckdb_merge.keep_merged_rows(session, table, write, statement, changed, paths)
            return written
        session.execute(f"create or replace temp view _apply as {duckdb_merge.applied(write, statement)}")
    else:
        applied = _applied(session, table, write, statement, files, reads)
        session.execute(f"create or replace temp table _apply as {applied}")
    kinds = dict(session.execute("select _op, count(*) from _apply group by _op").fetchall())
    if not kinds:
        return 0
    _require_days(session, table, "_apply")
    write.may_commit()
    if set(kinds) == {"i"}:
        _write(table, _reader(session, "select * exclude (_op) from _apply"), "append", commit)
        return int(kinds["i"])
    rows = session.sql("select * from _apply").to_arrow_table()
    _merge(table, rows, write, statement, _literals(partitions, ranges), commit)
    return int(sum(kinds.values()))


def _comparing(session: Any, statement: Merge) -> Merge:
    """Return the statement with `=` for each key column of `s` without NULL: DuckDB then reads matched rows alone.

    A null-safe comparison passes no keys to the scan of the target, so DuckDB would decode every row of it.
    """
    if not statement.null_safe:
        return statement
    names = [identifier(key, "duckdb") for key in statement.null_safe]
    (found,) = session.execute(f"select {', '.join(f'count({name}) < count(*)' for name in names)} from s").fetchall()
    unsure = tuple(key for key, has_nulls in zip(statement.null_safe, found, strict=True) if has_nulls)
    return dataclasses.replace(statement, null_safe=unsure)


def _applied(session: Any, table: Any, write: Write, statement: Merge, files: list[dict[str, Any]], reads: Any) -> str:
    """Return the query of each row's new values and its operation: i(nsert), u(pdate), d(elete)."""
    columns = write.table.columns
    target = duckdb_scan.scan(session, table, files, columns, reads, "_target", "")
    on = " and ".join(same(statement))
    updates, inserts = dict(statement.update), dict(statement.insert)
    items = []
    for column in columns:
        name = identifier(column.name, "duckdb")
        unchanged = f"t.{name}" if column.name not in statement.key else f"s.{name}"
        items.append(
            f"case when t._there is null then {inserts.get(column.name, 'null')} "
            f"else {updates.get(column.name, unchanged)} end as {name}"
        )
    op = operation(statement, "t._there is null")
    joined = f"from s left join (select *, true as _there from ({target})) as t on {on}"
    once = "distinct " if statement.repeats else ""
    return f"select {once}* from (select {', '.join(items)}, {op} as _op {joined}) where _op is not null"


def _ranges(session: Any, statement: Merge) -> Ranges:
    """Return the ranges of key values to read: (key column, least, greatest) for each value of the group column."""
    found = []
    for key, group in statement.prune.ranges:
        k, g = identifier(key, "duckdb"), identifier(group, "duckdb")
        ends = _values(session, f"select min({k}) as low, max({k}) as high from s group by {g}")
        if any(low is None for low, _ in ends):  # NULL is in no range
            return []
        found += [(key, low, high) for low, high in ends]
    return found


def _values(session: Any, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query; DuckDB itself returns a text for a time outside Python's range."""
    table = session.sql(sql).to_arrow_table()
    return list(zip(*(arrow_rows.values(column) for column in table.columns), strict=True))


def _partitions(session: Any, statement: Merge) -> dict[str, set[Any]]:
    """Return the partition values of a delta."""
    found = {}
    for column in statement.prune.partitions:
        values = _values(session, f"select distinct {identifier(column, 'duckdb')} from s")
        found[column] = {ordered(value) for (value,) in values}
    return found


def _keeper(partitions: dict[str, set[Any]], ranges: Ranges) -> Any:
    """Return a filter for files: whether, by partition values and statistics, one can have an affected row."""
    near = duckdb_scan.overlapping(ranges) if ranges else None

    def keep(row: dict[str, Any]) -> bool:
        for column, values in partitions.items():
            if ordered(row.get(f"partition.{column}")) not in values:
                return False
        return near is None or near(row)

    return keep


def _literals(partitions: dict[str, set[Any]], ranges: Ranges) -> list[str]:
    """Return conditions that prune the target, so that delta-rs opens only matching files."""
    found = []
    for column, values in partitions.items():
        texts = [_literal(value) for value in values]
        if texts and all(texts) and len(texts) <= MOST_LITERALS:
            found.append(f"t.{identifier(column, 'duckdb')} in ({', '.join(str(text) for text in texts)})")
    bounds = [(f"t.{identifier(key, 'duckdb')}", _literal(low), _literal(high)) for key, low, high in ranges]
    if bounds and len(bounds) <= MOST_LITERALS and all(low and high for _, low, high in bounds):
        found.append("(" + " or ".join(f"{name} between {low} and {high}" for name, low, high in bounds) + ")")
    return found


def _literal(value: Any) -> str | None:
    """Return a value as a literal of DataFusion's SQL; None for a type that doesn't prune."""
    match value:
        case bool() | None:
            return None
        case str():
            return string(value, "duckdb")
        case int():
            return str(value)
        case datetime():
            text = value.astimezone(timezone.utc).replace(tzinfo=None).isoformat("T", "microseconds")
            return f"arrow_cast('{text}', 'Timestamp(Microsecond, Some(\"UTC\"))')"
        case date():
            return f"arrow_cast('{value.isoformat()}', 'Date32')"
        case _:
            return None


def _merge(table: Any, source: Any, write: Write, statement: Merge, literals: list[str], commit: Any) -> None:
    predicate = " and ".join([*same(statement), *literals])
    names = [c.name for c in write.table.columns]
    values = {identifier(n, "duckdb"): f"s.{identifier(n, 'duckdb')}" for n in names}
    updates = {n: e for n, e in values.items() if n.strip('"') not in statement.key}
    run = (
        table.merge(
            source.select([*names, "_op"]),
            predicate,
            source_alias="s",
            target_alias="t",
            commit_properties=commit,
            post_commithook_properties=delta_table.hooks(),
        )
        .when_matched_delete("s._op = 'd'")
        .when_matched_update(updates, "s._op = 'u'")
        .when_not_matched_insert(values, "s._op = 'i'")
    )
    answers.received(table, commit, run.execute)


def _write(table: Any, data: Any, mode: Any, commit: Any, predicate: str | None = None) -> None:
    from deltalake import write_deltalake

    hooks = delta_table.hooks()

    def write() -> None:
        write_deltalake(
            table, data, mode=mode, predicate=predicate, commit_properties=commit, post_commithook_properties=hooks
        )

    answers.received(table, commit, write)


def _require_days(session: Any, table: Any, name: str) -> None:
    """Reject rows with a partition day that Delta's log can't name (SR736)."""
    parts = table.metadata().partition_columns
    for field in table.schema().fields if parts else ():
        if field.name in parts and str(field.type.type) == "date":
            day = identifier(field.name, "duckdb")
            outside = f"{day} < date '0001-01-01' or {day} > date '9999-12-31'"
            sql = f"select cast({day} as varchar) from {name} where {outside} limit 1"
            for (text,) in session.execute(sql).fetchall():
                raise delta_stats.no_day(
                    table.metadata().name or PurePosixPath(table.table_uri).parent.name, field.name, text
                )


def _reader(session: Any, sql: str) -> Any:
    return session.sql(sql).to_arrow_reader(100_000)


def _made(session: Any, name: str, sql: str) -> int:
    """Store the rows of a query in a temporary table; return their number."""
    return int(session.execute(f"create or replace temp table {name} as {sql}").fetchall()[0][0])
