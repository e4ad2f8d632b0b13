"""Files of a partition, written by DuckDB: new rows with remaining rows, and change rows. Shell: DuckDB, files.

Both are read from the session's table `_hits`, which has a row for each changed row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Any

from sqlrun.engine_api import StoredColumn, TableSpec, Write
from sqlrun.engines.delta import deletion_vectors
from sqlrun.engines.delta import stats as delta_stats
from sqlrun.engines.delta.commit import File
from sqlrun.engines.delta.file_layout import ROW_GROUP
from sqlrun.engines.duckdb import scan as duckdb_scan
from sqlrun.engines.duckdb.row_order import RowOrder
from sqlrun.engines.duckdb.scan import listed
from sqlrun.storage.stages import Stage
from sqlrun.transpile.writer import identifier, names, string, type_name

# Additional columns of `_hits`: the operation, and a row's file and position.
OP, FILE, ROW = '"_sqlrun.op"', '"_sqlrun.file"', '"_sqlrun.row"'
LAYOUT = "format parquet, compression snappy, return_stats, overwrite_or_ignore"
LARGEST = "file_size_bytes 134217728"
# Maximum number of rows that one statement writes to several partitions: it holds them in memory.
MOST_AT_ONCE = 100_000
ANY_ORDER = RowOrder()


def old(name: str) -> str:
    """Return the name of the column of `_hits` with a column's previous value."""
    return identifier(f"_sqlrun.old.{name}", "duckdb")


def at_once(write: Write, partitions: Collection[tuple[str | None, ...]], count: int) -> bool:
    """Return whether one statement can write `count` rows of several partitions."""
    types = {column.name: column.type for column in write.table.columns}
    kinds = [types[name] for name in write.table.partition_by]
    alike = all(
        delta_stats.is_spelled_alike(kind, text)
        for partition in partitions
        for kind, text in zip(kinds, partition, strict=True)
    )
    return len(partitions) > 1 and count <= MOST_AT_ONCE and alike


def rows(
    session: Any,
    write: Write,
    files: duckdb_scan.Values,
    deleted: deletion_vectors.Deleted,
    hits: Collection[str],
    new: str,
    whole: bool = False,
    order: RowOrder = ANY_ORDER,
) -> str:
    """Return the query of a partition's new files: inserted rows, and the remaining rows of `files` with their values.

    `hits`: the files that lose rows. `whole`: of several partitions, with the columns that files don't store.
    """
    columns = write.table.columns if whole else _stored(write)
    inserted = f"select {duckdb_scan.names(columns)} from _hits where {OP} <> 'd' and {new}"
    items = ", ".join(_typed(identifier(c.name, "duckdb"), c) for c in columns)
    hit = duckdb_scan.Positions(frozenset(hits), f"select {FILE} as file, {ROW} as row from _hits")

    def remaining(some: list[str], name: str) -> list[str]:
        if not some:
            return []
        values = {file: files[file] for file in some} if whole else {}
        sources = duckdb_scan.live(session, some, values, write.table.columns, deleted, name, without=hit)
        return [f"select {items} from {source}" for source in sources]

    others = [file for file in files if file not in order.sorted_files]
    # The order is that of the whole union.
    unsorted = " union all ".join([*remaining(others, "_copied"), inserted]) + order.clause
    kept = remaining([file for file in files if file in order.sorted_files], "_copied_in_order")
    return " union all ".join([*kept, f"({unsorted})"]) if kept else unsorted


def changes(write: Write, files: list[str], new: str, whole: bool = False) -> str:
    """Return the query of the change rows of a partition whose `files` lose rows, or of a whole merge.

    `whole`: of all partitions, with the columns that files don't store.
    """
    columns = write.table.columns if whole else _stored(write)
    listing = duckdb_scan.names(columns)
    olds = ", ".join(f"{_typed(old(c.name), c)}" for c in columns)
    inserted = (
        f"select {listing}, case {OP} when 'i' then 'insert' else 'update_postimage' end as _change_type "
        f"from _hits where {OP} <> 'd' and {new}"
    )
    if not files:
        return inserted
    # Planning a list of paths takes longer than reading the rows.
    left = f"{FILE} is not null" if whole else f"{FILE} in ({listed(files)})"
    return (
        f"{inserted} union all select {olds}, case {OP} when 'd' then 'delete' else 'update_preimage' end "
        f"from _hits where {left}"
    )


def _stored(write: Write) -> tuple[StoredColumn, ...]:
    """Return the columns that files store: the log has those of partitions."""
    return tuple(c for c in write.table.columns if c.name not in write.table.partition_by)


def _typed(name: str, column: Any) -> str:
    return f"cast({name} as {type_name(column.type, 'duckdb')}) as {identifier(column.name, 'duckdb')}"


def parquet_version(table: TableSpec) -> str:
    """Return the version of Parquet's encodings for a table's files, as COPY spells it.

    `v2` stores texts as lengths and bytes, and integers as differences: such a file takes less time to scan
    (docs/decisions/0069-encodings-of-large-tables.md). A table without deletion vectors is for all readers, also old
    ones. Floating-point numbers would be split into streams of bytes, which Spark's vectorized reader doesn't read.

    >>> total = StoredColumn("total", "decimal(18,2)")
    >>> parquet_version(TableSpec("orders", "orders", (total,)))
    'v2'
    >>> parquet_version(TableSpec("orders", "orders", (total, StoredColumn("at", "array<struct<x:double>>"))))
    'v1'
    """
    kinds = {kind for column in table.columns for _, kind in delta_stats.leaves(column)}
    return "v2" if table.vectors and kinds.isdisjoint({*delta_stats.FLOATS, ""}) else "v1"


def copied(
    session: Any,
    write: Write,
    sql: str,
    below: str,
    values: Mapping[str, str | None] | None,
    done: list[str],
    stage: Stage,
    rows_of_each: int | None = None,
) -> list[File]:
    """Write rows to a partition's folder; a file without rows is left out. They are in place after `stage.wait()`.

    `values` None: complete rows of several partitions, each written to its own folder (see `at_once`).
    `rows_of_each`: the number of rows of each file, somewhat more in the first ones; None: at most 128 MB for each.
    """
    root = PurePosixPath(stage.root)
    folder = str(root / below / delta_stats.folder(values or {}))
    stage.make_folder(folder)
    target = string(folder, "duckdb")
    name = "cdc" if below else "part"
    # A thread's last row group isn't full.
    limit = f"row_groups_per_file {rows_of_each // ROW_GROUP + 2}" if rows_of_each else LARGEST
    how = f"partition_by ({names(write.table.partition_by, 'duckdb')})" if values is None else limit
    settings = f"{LAYOUT}, row_group_size {ROW_GROUP}, {how}, filename_pattern '{name}-{{uuid}}'"
    files = []
    for file, rows, size, _, found, keys, *_ in _run_copy(session, write, f"copy ({sql}) to {target}", settings, stage):
        if not rows:
            stage.drop(file)
            continue
        done.append(stage.finish(file))
        stats = "" if below else delta_stats.stats(rows, found, write.table.columns)
        files.append(
            File(str(PurePosixPath(file).relative_to(root)), keys if values is None else values, size, rows, stats)
        )
    return files


def _run_copy(session: Any, write: Write, copy: str, settings: str, stage: Stage) -> list[Any]:
    """Run COPY; return a row for each file: path, rows, bytes, footer's bytes, statistics by column, partition.

    DuckDB's second encodings have the difference of two neighbours with 64 bits, but delta-rs reads that of 32-bit
    integers with 32. If all are less than 2^31 apart, so are neighbours in any order; else COPY runs again with the
    first encodings.
    """
    version = parquet_version(write.table)
    written = session.execute(f"{copy} ({settings}, parquet_version {version})").fetchall()
    leaves = [leaf for column in _stored(write) for leaf in delta_stats.leaves(column)]
    ranges = ((kind, found.get(path)) for _, _, _, _, found, *_ in written for path, kind in leaves)
    if version == "v2" and not all(delta_stats.is_narrow(kind, known) for kind, known in ranges):
        for file, *_ in written:
            stage.drop(file)
        written = session.execute(f"{copy} ({settings}, parquet_version v1)").fetchall()
    return list(written)
