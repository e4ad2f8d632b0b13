"""A few rows appended to a table in a commit that sqlrun writes itself. Shell: Delta files.

delta-rs lists the log before its commit, and lists and reads it after the commit: six answers of a store, one after the
other. Here a file of rows and the commit are two.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from sqlrun.engine_api import Append, StoredColumn, TableSpec, Write
from sqlrun.engines.delta import commit as delta_commit
from sqlrun.engines.delta import foreign_commits
from sqlrun.engines.delta import stats as delta_stats
from sqlrun.engines.delta.commit import Change, File
from sqlrun.runtime import arrow_rows
from sqlrun.storage.factory import storage_of

if TYPE_CHECKING:
    from deltalake import DeltaTable

Rows = Sequence[Mapping[str, Any]]


def write_of(
    table: TableSpec, base: int, tick: int, app_id: str = "", metadata: Mapping[str, str] | None = None
) -> Write:
    """Return the write of a few rows as the version after `base`; without `app_id`, its commit has no transaction."""
    return Write(table, base, tick, app_id, (), Append(""), metadata or {})


def append(table: DeltaTable, write: Write, rows: Rows) -> bool:
    """Append rows to an open table as the version after `write.base`; False if another commit has this version.

    Only for tables that are `commit.ours`, without partitions and nested columns. The open table reads the log at its
    next use.
    """
    file = _written(table, write.table, rows)
    metrics = {"num_added_files": 1, "num_removed_files": 0, "num_added_rows": len(rows)}
    done = delta_commit.was_committed(table, write, Change("WRITE", {"mode": "Append"}, metrics, (file,)))
    if not done:
        storage_of(write.table.path).delete(f"{write.table.path}/{file.path}")
    return done


def appended(table: DeltaTable, spec: TableSpec, rows: Rows, tick: int) -> int | None:
    """Append rows to an open system table behind the version that it has read; return the new version.

    None if nothing was written: another commit came behind that version, or the table isn't `commit.ours`.
    """
    write = write_of(spec, table.version(), tick, metadata={foreign_commits.BY: "book"})
    return write.base + 1 if delta_commit.ours(table, write) and append(table, write, rows) else None


def _written(table: DeltaTable, spec: TableSpec, rows: Rows) -> File:
    """Write rows to a new file in a table's folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    memory, name = pa.BufferOutputStream(), f"part-{uuid.uuid4()}.parquet"
    columns = arrow_rows.table_of(arrow_rows.made(rows, table.schema().to_arrow()))
    pq.write_table(columns, memory, compression="snappy", store_schema=False)
    content = memory.getvalue().to_pybytes()
    storage_of(spec.path).put(f"{spec.path}/{name}", content, synced=False)
    return File(name, {}, len(content), len(rows), stats(rows, spec.columns))


def stats(rows: Rows, columns: Sequence[StoredColumn]) -> str:
    """Return the statistics of a file of rows as Delta's JSON.

    >>> stats([{"tick": 1, "kind": "b"}, {"tick": 3, "kind": None}], [StoredColumn("tick", "bigint")])
    '{"numRecords":2,"minValues":{"tick":1},"maxValues":{"tick":3},"nullCount":{"tick":0}}'
    """
    found = {}
    for column in columns:
        values = [row.get(column.name) for row in rows]
        known = [value for value in values if value is not None]
        about = {"null_count": str(len(values) - len(known))}
        if known and not isinstance(known[0], float):  # NaN has no place in an order
            about |= {"min": _text(min(known)), "max": _text(max(known))}
            about |= {"min_is_exact": "true", "max_is_exact": "true"}
        found[delta_stats.quoted(column.name)] = about
    return delta_stats.stats(len(rows), found, columns)


def _text(value: object) -> str:
    """Return a value as DuckDB's statistics have it."""
    if isinstance(value, datetime):
        return f"{value.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f}+00"
    return str(value)
